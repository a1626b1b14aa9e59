// docs/library.md: every function of the package's entries, from its types and comments. Part of `npm run docs`.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { API, SignatureKind, SymbolFlags } from 'typescript/unstable/sync';

const TITLE = `# The library

This page has every function of \`trtforge\` and of the entries of its products. Generated from their types and comments by \`npm run docs\`.

Every function gives a promise, but for those that say otherwise. Long work takes \`{ emit, signal, environment }\`: \`emit\` gets events while it runs, \`signal\` is an AbortSignal that stops it, \`environment\` is read in the place of \`process.env\`. A call that is aborted rejects with \`TF_CANCELLED\`, whose \`cause\` is the signal's reason. Every failure is a \`TrtforgeError\` with a \`code\` ([errors](errors.md)), a message and a \`remedy\`. Results are plain data with a \`schema\` field, and \`schemas/\` has the JSON Schema of each.

Where an option is by name (\`shapes\`, the inputs of a run) it may be an object or a Map. trtforge starts files of its own: keep it out of bundles (\`esbuild --external:trtforge\`; in Rollup, Vite and webpack: external).
`;

const ENTRIES = [
  ['trtforge', 'src/index.ts'],
  ['trtforge/edit', 'src/products/edit/index.ts'],
  ['trtforge/bundle', 'src/products/bundle/index.ts'],
  ['trtforge/streaming', 'src/products/streaming/index.ts'],
  ['trtforge/evaluation', 'src/products/evaluation/index.ts'],
  ['trtforge/deepstream', 'src/products/deepstream/index.ts'],
  ['trtforge/triton', 'src/products/triton/index.ts'],
  ['trtforge/fleet', 'src/products/fleet/index.ts'],
  ['trtforge/trtexec', 'src/tensorrt/trtexec/index.ts'],
  ['trtforge/onnx', 'src/formats/onnx/index.ts'],
];
const LONGEST = 120;

const cell = (text) => text.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ').trim();

export function libraryPage(root) {
  const api = new API();
  try {
    const [project] = api.updateSnapshot({ openProject: join(root, 'tsconfig.json') }).getProjects();
    return pageOf(project, root);
  } finally {
    api.close();
  }
}

function pageOf({ program, checker }, root) {
  const types = new Map();
  const shown = (type) =>
    checker
      .typeToString(type)
      .replaceAll(' | undefined', '')
      .replaceAll(/Plain<(\w+)>/g, '$1')
      .replaceAll(/\bargs_0\b/g, 'request')
      .replaceAll(/\bargs_1\b/g, 'options');
  const commentOf = (symbol) => symbol.getDocumentationComment(checker).trim();

  /** Keeps the options that a signature names, for the tables below. */
  function noteOptions(type) {
    for (const part of type.getTypes?.() ?? [type]) {
      const name = /^(?:Plain<|Partial<)?(\w*(?:Options|Request|Context))>?$/.exec(
        checker.typeToString(part),
      )?.[1];
      if (name !== undefined && !types.has(name)) types.set(name, checker.getPropertiesOfType(part));
    }
  }

  /** What `atDoor` made has its comment where the function that it calls is declared. */
  function functionSection(name, symbol, signature) {
    for (const parameter of signature.getParameters()) {
      const type = checker.getTypeOfSymbol(parameter);
      // The functions of `trtforge` have their arguments as one tuple.
      for (const each of parameter.name === 'args' ? checker.getTypeArguments(type) : [type])
        noteOptions(each);
    }
    const result = checker.getReturnTypeOfSignature(signature);
    const [given] = checker.typeToString(result).startsWith('Promise<')
      ? checker.getTypeArguments(result)
      : [result];
    const schema = checker.getPropertyOfType(given, 'schema');
    const file = /"trtforge\.(.+)\/\d+"/.exec(
      schema === undefined ? '' : shown(checker.getTypeOfSymbol(schema)),
    )?.[1];
    const isPublished = file !== undefined && existsSync(join(root, `schemas/${file}.json`));
    const declared = shown(checker.getTypeOfSymbol(symbol)).replaceAll(/\s+/g, ' ');
    return [
      `### ${name}\n`,
      `${commentOf(symbol) || commentOf(checker.getTypeOfSymbol(symbol).getSymbol())}\n`,
      `\`${declared}\`\n`,
      ...(isPublished ? [`Its result is \`schemas/${file}.json\`.\n`] : []),
    ];
  }

  function optionsSection([name, properties]) {
    const rows = properties.map((property) => {
      const type = shown(checker.getTypeOfSymbol(property));
      const isOptional = (property.flags & SymbolFlags.Optional) !== 0;
      return `| \`${property.name}${isOptional ? '?' : ''}\` | ${type.length > LONGEST ? '' : `\`${cell(type)}\``} | ${cell(commentOf(property))} |`;
    });
    return [`### ${name}\n`, '| name | type | meaning |', '|---|---|---|', ...rows, ''];
  }

  const sections = ENTRIES.flatMap(([entry, path]) => {
    const module = checker.getSymbolAtLocation(program.getSourceFile(join(root, path)));
    const functions = checker.getExportsOfModule(module).flatMap((exported) => {
      const symbol =
        (exported.flags & SymbolFlags.Alias) === 0 ? exported : checker.getAliasedSymbol(exported);
      if ((symbol.flags & SymbolFlags.Value) === 0) return [];
      const [signature] = checker.getSignaturesOfType(checker.getTypeOfSymbol(symbol), SignatureKind.Call);
      return signature === undefined ? [] : functionSection(exported.name, symbol, signature);
    });
    const imported = [...functions.join('\n').matchAll(/^### (\w+)/gm)].map(([, name]) => name);
    const has = functions.some((line) => line.includes('```ts'));
    return [
      `## ${entry}\n`,
      ...(has ? [`\`\`\`ts\nimport { ${imported.join(', ')} } from '${entry}';\n\`\`\`\n`] : []),
      ...functions,
    ];
  });
  const tables = [...types].sort(([a], [b]) => (a < b ? -1 : 1)).flatMap(optionsSection);
  return [TITLE, ...sections, '## Options\n', ...tables].join('\n');
}
