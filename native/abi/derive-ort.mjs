#!/usr/bin/env node
// Derives native/abi/ort.json, the places of ONNX Runtime's functions in its C table (struct OrtApi), from the public header onnxruntime_c_api.h.
//   node native/abi/derive-ort.mjs HEADER…                     compare headers (one a version, any order) with the committed table
//   node native/abi/derive-ort.mjs --write [--add NAME,…] HEADER…   write the table again, with more functions
// Exit code 0 where all agree, 1 where something differs.
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { OLDEST_ORT_MINOR as OLDEST_MINOR, readOrtTable } from './slots-header.mjs';

const ortTablePath = new URL('./ort.json', import.meta.url);

/** Every function of a header in the order of the table, and the version of the header. */
export function readOrtHeader(text) {
  const version = Number(/#define ORT_API_VERSION (\d+)/.exec(text)?.[1]);
  const body = /^struct OrtApi \{$([\s\S]*?)^\};$/m.exec(text)?.[1];
  if (body === undefined || Number.isNaN(version)) throw new Error('This is not onnxruntime_c_api.h.');
  const plain = body
    .replace(/\/\*[\s\S]*?\*\//g, ' ')
    .replace(/\/\/.*$/gm, ' ')
    // The table is the same with and without training.
    .replace(/^#.*$/gm, ' ');
  const functions = plain
    .split(';')
    .map((each) => each.replace(/\s+/g, ' ').trim())
    .filter((each) => each !== '' && !each.endsWith('= delete'))
    .map(functionOf);
  return { version, functions };
}

function functionOf(declaration) {
  const released = /^ORT_CLASS_RELEASE2?\((\w+)\)$/.exec(declaration)?.[1];
  if (released !== undefined) return { name: `Release${released}`, type: 'void(pointer)' };
  const [, name, rest] = /^ORT_API2_STATUS\((\w+),? ?(.*)\)$/.exec(declaration) ?? [];
  if (name !== undefined) return { name, type: `pointer(${typesOf(rest)})` };
  const [, returned, called, passed] = /^ORT_API_T\(([^,]+), (\w+),? ?(.*)\)$/.exec(declaration) ?? [];
  if (called !== undefined) return { name: called, type: `${typeOf(returned)}(${typesOf(passed)})` };
  const [, result, own, taken] =
    /^(.+?)\( ?ORT_API_CALL ?\* ?(\w+)\) ?\((.*?)\)[^()]*$/.exec(declaration) ?? [];
  if (own === undefined) throw new Error(`Unknown kind of declaration: ${declaration}`);
  return { name: own, type: `${typeOf(result)}(${typesOf(taken)})` };
}

const typesOf = (list) =>
  list.trim() === '' || list.trim() === 'void' ? '' : list.split(',').map(typeOf).join(', ');

const NUMBERS = {
  size_t: 'uint64',
  int64_t: 'int64',
  uint32_t: 'uint32',
  uint64_t: 'uint64',
  int: 'int32',
  bool: 'bool',
  float: 'float',
  void: 'void',
};

/** How the machine passes it: every pointer is one but `const char*`, which is text; enumerations are int32. */
function typeOf(spelled) {
  const type = spelled
    .replace(/\b_\w+_(\([^)]*\))?/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  if (/^(const )?(char|ORTCHAR_T) ?(const )?\*( \w+)?$/.test(type) && type.includes('const')) return 'text';
  if (/[*[]/.test(type) || /^\w*(Function|Fn|Callback)\b/.test(type)) return 'pointer';
  const [base] = type.replace(/^(const|enum) /, '').split(' ');
  return NUMBERS[base] ?? 'int32';
}

/** What differs between a table and headers, a line each. */
export function differences(table, headers) {
  const lines = [];
  const sorted = [...headers].sort((a, b) => a.version - b.version);
  sorted.forEach((header, at) => {
    const older = sorted[at - 1]?.functions ?? [];
    older.forEach(({ name, type }, index) => {
      const now = header.functions[index];
      if (now?.name !== name || now.type !== type)
        lines.push(
          `1.${header.version}: place ${index} is ${now?.name} ${now?.type}, and was ${name} ${type}`,
        );
    });
    for (const [name, { index, since = OLDEST_MINOR, type }] of Object.entries(table.functions)) {
      const now = header.functions[index];
      if (header.version >= since && (now?.name !== name || now.type !== type))
        lines.push(
          `1.${header.version}: ${name} ${type} is not in place ${index}, but ${now?.name} ${now?.type}`,
        );
      if (header.version < since && since > OLDEST_MINOR && now?.name === name)
        lines.push(`1.${header.version} has ${name}, which the table has since 1.${since}`);
    }
  });
  return lines;
}

/** The table of these functions, by headers of several versions. */
export function ortTable(names, headers) {
  const sorted = [...headers]
    .filter(({ version }) => version >= OLDEST_MINOR)
    .sort((a, b) => a.version - b.version);
  const newest = sorted.at(-1);
  const entries = names.map((name) => {
    const index = newest.functions.findIndex((each) => each.name === name);
    if (index < 0) throw new Error(`1.${newest.version} has no function ${name}.`);
    const first = sorted.find(({ functions }) => functions[index]?.name === name).version;
    const since = first === OLDEST_MINOR ? {} : { since: first };
    return [name, { index, ...since, type: newest.functions[index].type }];
  });
  return {
    headers: sorted.map(({ version }) => version),
    functions: Object.fromEntries(entries.sort(([, a], [, b]) => a.index - b.index)),
  };
}

const textOf = ({ headers, functions }) =>
  `{\n  "headers": ${JSON.stringify(headers).replaceAll(',', ', ')},\n  "functions": {\n${Object.entries(
    functions,
  )
    .map(
      ([name, facts]) =>
        `    ${JSON.stringify(name)}: ${JSON.stringify(facts).replaceAll('":', '": ').replaceAll(',"', ', "').replace('{', '{ ').replace(/\}$/, ' }')}`,
    )
    .join(',\n')}\n  }\n}\n`;

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const { values, positionals } = parseArgs({
    options: { write: { type: 'boolean', default: false }, add: { type: 'string', default: '' } },
    allowPositionals: true,
  });
  const headers = positionals.map((path) => readOrtHeader(readFileSync(path, 'utf8')));
  const table = readOrtTable();
  const names = new Set([...Object.keys(table.functions), ...values.add.split(',').filter(Boolean)]);
  if (values.write) writeFileSync(ortTablePath, textOf(ortTable([...names], headers)));
  else {
    const lines = differences(table, headers);
    for (const line of lines) console.log(line);
    console.log(
      `${names.size} functions against the headers of ${headers.map(({ version }) => `1.${version}`).join(', ')}: ${lines.length} differences`,
    );
    process.exitCode = lines.length === 0 ? 0 : 1;
  }
}
