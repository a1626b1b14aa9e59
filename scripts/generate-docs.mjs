// Writes what can be derived from the code: docs/errors.md from the catalogue, docs/command-line.md from the option tables,
// docs/migrating.md from the tables of other tools' flags, docs/versions.md from the table of facts, docs/library.md from the types,
// schemas/*.json from the zod schemas. `npm run docs`; a test compares the committed files with what this writes.
//   node scripts/generate-docs.mjs [--into FOLDER]
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { behaviour, products as names } from '../dist/behaviour/facts.js';
import { rangeText } from '../dist/behaviour/versions.js';
import { tools } from '../dist/cli/foreign-flag.js';
import { foreignFlags } from '../dist/cli/migrate/tables.js';
import { catalogue } from '../dist/errors.js';
import { products } from '../dist/registry.js';
import { libraryPage } from './library-page.mjs';

const into = process.argv.indexOf('--into');
const root = into < 0 ? fileURLToPath(new URL('..', import.meta.url)) : process.argv[into + 1];

function errorsPage() {
  const ofProducts = products.flatMap(({ errors = [] }) => errors);
  const ofCore = Object.keys(catalogue).filter((code) => !ofProducts.includes(code));
  const rows = [...ofCore, ...ofProducts].map((code) => {
    const { exitCode, meaning, remedy } = catalogue[code];
    return `## ${code}\n\nExit code ${exitCode}. ${meaning}\n\n**What to do:** ${remedy}\n`;
  });
  return [
    '# Errors\n',
    'This page lists every error code with its meaning and remedy. An error has a stable code, a message with the name of the file, tensor or node, and a remedy;',
    'with `--json` it is `{"error": {"code", "message", "remedy"}}`. Generated from `src/errors.ts` by `npm run docs`.\n',
    'Exit codes: 0 pass · 1 a gate or comparison failed · 2 bad usage or bad input · 3 not possible on this machine · 4 inconclusive · 5 internal error.\n',
    ...rows,
  ].join('\n');
}

const cell = (text) => text.replaceAll('|', '\\|').replaceAll('\n', ' ');

function optionRow(spec) {
  const facts = [
    spec.choices === undefined ? '' : `one of ${spec.choices.map((word) => `\`${word}\``).join(', ')}`,
    spec.required === undefined ? '' : 'required',
    spec.repeat ? 'may be repeated' : '',
    spec.env === undefined ? '' : `environment \`${spec.env}\``,
  ].filter((fact) => fact !== '');
  const described = [spec.describe, ...facts].join('; ');
  return `| \`${cell(spec.flags)}\` | ${cell(described)} | ${spec.default === undefined ? '' : `\`${cell(String(spec.default))}\``} |`;
}

const rows = (specs) =>
  specs.length === 0 ? [] : ['| option | meaning | default |', '|---|---|---|', ...specs.map(optionRow), ''];

const jsonSchema = async (schema, io = 'output') =>
  z.toJSONSchema(await schema(), { io, unrepresentable: 'any' });

/** `trtforge.verify/1` is schemas/verify.json. */
const resultName = (schema) => /^trtforge\.(.+)\/\d+$/.exec(schema.properties.schema.const)[1];

async function verbSection({ path, summary, load }) {
  const command = await load();
  const result = resultName(await jsonSchema(command.schema));
  const argumentsText = (command.arguments ?? [])
    .map(({ name, optional, many }) =>
      optional ? `[${name}${many ? '...' : ''}]` : `${name}${many ? '...' : ''}`,
    )
    .join(' ');
  const options = Object.values(command.options);
  const keys = options.filter(({ configOnly }) => configOnly);
  const examples = command.examples?.length ? ['```', ...command.examples, '```', ''] : [];
  const argumentLines = (command.arguments ?? []).map(({ name, describe }) => `- \`${name}\`: ${describe}`);
  return [
    `### trtforge ${path} ${argumentsText}`.trimEnd(),
    '',
    `${summary.charAt(0).toUpperCase()}${summary.slice(1)}. Result: [\`${result}\`](../schemas/${result}.json).`,
    '',
    ...(argumentLines.length ? [...argumentLines, ''] : []),
    ...rows(options.filter(({ configOnly }) => !configOnly)),
    ...(keys.length === 0 ? [] : ['Keys of the configuration file:', '', ...rows(keys)]),
    ...examples,
  ];
}

async function commandLinePage() {
  const lines = [
    '# Command line',
    '',
    'This page lists every command with its arguments, options and result. Generated from the option tables by `npm run docs`; `trtforge COMMAND --help all` prints the same.',
    '',
    '| option of every command | meaning |',
    '|---|---|',
    '| `--json` | exactly one JSON object on stdout |',
    '| `--events` | progress as JSON lines on stderr |',
    '| `--quiet`, `--verbose` | nothing but the result; also the verbose lines of the library |',
    '| `--log-file FILE` | the JSON lines of `--events` in a file |',
    '| `--config FILE`, `--print-config` | the configuration file; prints the options as resolved |',
    '| `--force` | results replace files of another kind or edited ones, but never an input; `deepstream config` and `triton export` write what DeepStream or Triton cannot serve, with a warning |',
    '',
    'Commands that build for minutes, download or remove take `--dry-run`: it decides everything, prints the steps ([`plan`](../schemas/plan.json)) and ends. What ends a run before its work ends the dry run, with the same code.',
    '',
    'Warnings that are equal but for a name are one line of text with their number; `--json`, `--events` and `--log-file` have each.',
    '',
    "A configuration file `trtforge.config.{json,yaml}` has option names as keys, at the top level or under a command's name. Flags override the file, and the file overrides the environment.",
    'A file found in the working folder sets no option that decides which code runs or whose engines are trusted; pass it with `--config` for that ([security](../SECURITY.md)).',
    '',
    'SIGINT (Ctrl-C) and SIGTERM end a command with `TF_CANCELLED`, exit code 4, and with `--json` its object. A second signal ends it at once.',
    'In the first 40 to 80 ms, while Node starts, a signal ends the process without output.',
    '',
  ];
  const verbs = products.flatMap((product) => product.verbs);
  for (const group of new Set(verbs.map((verb) => verb.group))) {
    lines.push(`## ${group}`, '');
    for (const verb of verbs.filter((each) => each.group === group)) lines.push(...(await verbSection(verb)));
  }
  return `${lines.join('\n').trimEnd()}\n`;
}

const whose = {
  trtexec: 'trtexec',
  polygraphy: 'Polygraphy',
  modelopt: 'ModelOpt AutoCast and quantization',
  yolo: 'Ultralytics and other exporters',
  onnxsim: 'onnxsim',
  onnxslim: 'OnnxSlim',
  'polygraphy surgeon': 'polygraphy surgeon',
  'bundle script': 'build scripts of speech exporters',
  'streaming script': 'scripts of streaming encoders',
  'detector script': "auto-quantize-model's evaluators of detectors",
};

const sameAnswer = (a, b) =>
  ['ours', 'why', 'values', 'verbs'].every((key) => String(a[key]) === String(b[key]));

/** Flags that stand together and have one answer are one row. */
function migratedRows(rows) {
  const groups = [];
  for (const row of rows) {
    const last = groups.at(-1);
    if (last !== undefined && sameAnswer(last[0], row)) last.push(row);
    else groups.push([row]);
  }
  return groups.map(migratedRow);
}

function migratedRow(group) {
  const [{ ours, values, verbs, why }] = group;
  const written = group
    .map(({ flag, takesValue, only }) => `${flag}${only ? ` ${only}` : takesValue ? ' VALUE' : ''}`)
    .map((flag) => `\`${flag}\``)
    .join(', ');
  const text = ours
    .map((template) =>
      template === '' ? 'the default' : `\`${template.replaceAll('{value}', values ? '…' : 'VALUE')}\``,
    )
    .join(' or ');
  const of = verbs?.length ? ` (${verbs.join(', ')})` : '';
  return `| ${written} | ${text === '' ? 'none' : cell(text + of)} | ${cell(why)} |`;
}

/** What has no flag, or does another thing here than in the tools and scripts that trtforge replaces. */
const differences = [
  [
    'one script exports the checkpoint and builds (`build_all.sh --export`), or records from it (`--model x.nemo`)',
    'trtforge begins with ONNX: an export needs the framework that made the checkpoint. Run the exporter before `bundle forge`, or before `stream record MODEL.onnx`, which runs the model in float32 on the CPU',
  ],
  [
    'a `timing.cache` in every output folder',
    'not with tensorrt-rtx, which measures no kernels when it builds: `timing_cache` of the report is null',
  ],
  [
    'engine and timing cache under `tmp/<task>/trt`',
    '`--cache-dir` and `--timing-cache`, or both keys in a file that `--config` names; they are two because kernel times hold for every task on a GPU',
  ],
  [
    '`batch_size=32`',
    '`--batch 1/32/32`: min, opt and max of the open first axis. `--batch 32` is that size alone',
  ],
  [
    '`fp32` in names and as a precision',
    '`as-is`: the engine has the types of the graph, and products of FP32 may be rounded to TF32. `--builder-config flags=no-tf32` is FP32 throughout',
  ],
  [
    '`source` is `local_cache`, `remote` or `built`',
    '`local`, `remote` or `built`; `why` has the stores that were asked before',
  ],
  [
    'engines end in `.trt`',
    '`.engine`, or the ending of `-o FILE`: `.trt`, `.plan`. Nothing reads the ending; header and passport decide',
  ],
  [
    'a bucket of the project as the default, engines removed after 30 days',
    'no default bucket: `ARTIFACTS_BUCKET` or `--remote` names it. Age does not make an engine wrong, since its identity names model, recipe and target; `cache gc --max-size` removes what was used least recently',
  ],
  [
    'a configuration file of another program (`arcface_tensorrt.yaml`)',
    '`trtforge.config.yaml`, whose keys are the options: one program cannot know what keys of another mean',
  ],
  [
    'a plot by matplotlib (`trt_stability_300chunks.png`)',
    '`trtforge report parity.json --format svg`, which every browser shows and most programs convert',
  ],
  [
    "the first 100 images, or 500 (auto-quantize-model's evaluators)",
    'all images unless `--max-images` is passed: figures of a part say nothing about the whole',
  ],
  [
    'memory compared with PyTorch',
    '`stream verify` and evaluations report `memory`; PyTorch has to be measured where it runs. As a [baseline](gate.md#regression) its figure is a limit like any other',
  ],
  [
    'a sign-off list',
    'a [gate](gate.md) that extends `streaming-acceptance`, with the results of `stream check`, `stream verify` and `bench`: each check is a line with its figure, and `--markdown FILE` writes the list',
  ],
  [
    'the builder has to be the TensorRT of DeepStream',
    '`deepstream size` warns where it is not, and builds: the engine may be for another machine. `--toolchain` names the one to build with',
  ],
  [
    'five charts and twelve sections about a pipeline',
    '`benchmark_data.json` has the figures that such a report reads; pipelines are not run by trtforge',
  ],
];

async function migratingPage() {
  const rows = await foreignFlags(products);
  return `${[
    '# Migrating from trtexec, Polygraphy and ModelOpt',
    '',
    'This page lists the flags of trtexec, Polygraphy, ModelOpt AutoCast and other build tools with their equivalents in trtforge.',
    'To translate a whole line, run `trtforge migrate`. It prints the trtforge lines, the equivalent of each flag, and the conversion that replaces what TensorRT 11 removed:',
    '',
    '```',
    "trtforge migrate 'trtexec --onnx=model.onnx --fp16 --saveEngine=model.plan --skipInference'",
    "trtforge migrate 'polygraphy run model.onnx --trt --onnxrt --fp16'",
    '```',
    '',
    'Commands of trtforge accept these flags where they have the option of the middle column: `trtforge build --onnx=model.onnx --fp16` is `trtforge build model.onnx --precision fp16`.',
    'A flag without an equivalent is `TF_USAGE` with the remedy.',
    '',
    'Three dots in the middle column replace the value in the form of trtforge. Generated from the tables in `src/cli/migrate` by `npm run docs`.',
    '',
    '## What trtforge does differently',
    '',
    'Differences without a flag. More about single tools: [bundles](bundles.md#names-in-other-build-tools), [stream sizing](deepstream.md#differences-from-the-script).',
    '',
    '| in other tools and scripts | in trtforge, and why |',
    '|---|---|',
    ...differences.map(([theirs, ours]) => `| ${cell(theirs)} | ${cell(ours)} |`),
    '',
    ...tools.flatMap((tool) => [
      `## Flags of ${whose[tool]}`,
      '',
      '| flag | trtforge | why |',
      '|---|---|---|',
      ...migratedRows(rows.filter(({ of }) => of === tool)),
      '',
    ]),
  ]
    .join('\n')
    .trimEnd()}\n`;
}

function versionsPage() {
  const driven = behaviour.generations.value.map((row) => `${names[row.product]} ${rangeText(row)}`);
  const facts = Object.entries(behaviour).map(([id, fact]) => {
    const where = Object.keys(names)
      .filter((product) => fact[product])
      .map((product) => `${names[product]} ${rangeText(fact[product])}`);
    return `| \`${id}\` | ${where.join(', ')} | ${cell(fact.holds)} | ${cell(fact.source)} |`;
  });
  return `${[
    '# What depends on the version',
    '',
    `This page lists the versions that trtforge drives, and every fact that its rules, checks and messages take from a version. Generated from \`src/behaviour/facts.ts\` by \`npm run docs\`.`,
    '',
    `Driven: ${driven.join(', ')}. A fact that was measured begins at the version that it was measured with.`,
    '',
    '| fact | versions | what holds | source |',
    '|---|---|---|---|',
    ...facts,
  ].join('\n')}\n`;
}

/** What every command prints around its result with --json; a result that a file holds may lack it. */
function framed(schema, command = { type: 'string' }) {
  const frame = {
    ok: { type: 'boolean' },
    command,
    exitCode: { type: 'integer', minimum: 0, maximum: 5 },
  };
  return { ...schema, properties: { ...frame, ...schema.properties } };
}

mkdirSync(join(root, 'docs'), { recursive: true });
mkdirSync(join(root, 'schemas'), { recursive: true });
writeFileSync(join(root, 'docs', 'errors.md'), errorsPage());
writeFileSync(join(root, 'docs', 'command-line.md'), await commandLinePage());
writeFileSync(join(root, 'docs', 'migrating.md'), await migratingPage());
writeFileSync(join(root, 'docs', 'versions.md'), versionsPage());
writeFileSync(join(root, 'docs', 'library.md'), libraryPage(fileURLToPath(new URL('..', import.meta.url))));
const write = (name, schema) =>
  writeFileSync(join(root, 'schemas', `${name}.json`), `${JSON.stringify(schema, null, 2)}\n`);
for (const { verbs, files = {}, printed = {} } of products) {
  for (const { load } of verbs) {
    const schema = await jsonSchema((await load()).schema);
    write(resultName(schema), framed(schema));
  }
  // People write contracts: what has a default may be absent.
  for (const [name, schema] of Object.entries(files))
    write(name, await jsonSchema(schema, name === 'contract' ? 'input' : 'output'));
  for (const [name, schema] of Object.entries(printed))
    write(name, framed(await jsonSchema(schema), { type: ['string', 'null'] }));
}
