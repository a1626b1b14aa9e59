// Prints what the house costs beside the last release: lines of src by room, files, verbs, options, what rooms know of each other; and short files that belong into their only importer.
//   npm run size [-- --record NAME]    writes docs/size.json, at a release
//   npm run size -- --doors            lists the files that other rooms import, by room
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const record = join(root, 'docs', 'size.json');
/** A file below this with one importer beside it is a part of that importer, unless both together have more lines than a file may, or the importer is a list (a seam: one format, one file). */
const SHORT = 60;
const LONGEST = 400;

const files = readdirSync(join(root, 'src'), { recursive: true })
  .filter((path) => path.endsWith('.ts'))
  .sort();
const texts = new Map(files.map((path) => [path, readFileSync(join(root, 'src', path), 'utf8')]));
const linesOf = (path) => texts.get(path).split('\n').length - 1;

/** `formats`, `products/bundle`; files of src itself are one room. */
const partOf = (path) => /^(?:products\/[^/]+|[^/]+)(?=\/)/.exec(path)?.[0] ?? 'src';

/** Rows of the second table of src/README.md: files with a name there are rooms. */
const ordered = [
  ...readFileSync(join(root, 'src', 'README.md'), 'utf8').matchAll(/^\| `([\w/-]+)\/` \|(.*)/gm),
]
  .flatMap(([, folder, row]) => [...row.matchAll(/`([\w-]+\.ts)`/g)].map(([, file]) => `${folder}/${file}`))
  .filter((path) => !path.startsWith('products/'));
/** `engines/store`, `products/bundle`, `cli` for its own files; each file of src itself is one. */
const roomOf = (path) =>
  ordered.includes(path) || !path.includes('/')
    ? path
    : (/^[^/]+\/[^/]+(?=\/)/.exec(path)?.[0] ?? partOf(path));

const imports = [...texts].flatMap(([from, text]) =>
  [
    ...text.matchAll(
      /(?:(?:import|export) (?:type )?(\{[^}]*\}|\*(?: as \w+)?|\w+) from|import\()\s*'(\.[^']+)\.js'(?:\)\)?\.(\w+))?/g,
    ),
  ].map(([how, list, path, one]) => ({
    from,
    to: `${join(dirname(from), path)}.ts`,
    isLater: how.startsWith('import('),
    names: list?.startsWith('{')
      ? list.match(/\w+(?: as \w+)?(?=\s*[,}])/g).map((name) => name.split(' ')[0])
      : [one ?? '*'],
  })),
);
const across = imports.filter(({ from, to }) => roomOf(from) !== roomOf(to));

/** Rooms that import each other, by way of others too: the sets that have more than one. */
function circles() {
  const next = new Map(files.map((path) => [roomOf(path), new Set()]));
  for (const { from, to } of across) next.get(roomOf(from)).add(roomOf(to));
  const reached = new Map();
  for (const room of next.keys()) {
    const seen = new Set();
    const walk = (at) => {
      for (const to of next.get(at) ?? []) if (!seen.has(to)) walk(seen.add(to) && to);
    };
    walk(room);
    reached.set(room, seen);
  }
  const inOne = [...reached.keys()].filter((room) => reached.get(room).has(room));
  return new Set(
    inOne.map((room) =>
      inOne.filter((to) => reached.get(room).has(to) && reached.get(to).has(room)).join(' '),
    ),
  );
}

const namesOf = (some) => new Set(some.flatMap(({ to, names }) => names.map((name) => `${to} ${name}`))).size;
const LOAD_OPTIONS = ['weightBudget', 'allowHostCode', 'cudaGraph', 'plugins', 'threads'];
const filesWith = (word) => files.filter((path) => new RegExp(`\\b${word}\\b`).test(texts.get(path))).length;
const TOKEN =
  /'(?:[^'\\]|\\.)*'|"[^"]*"|`(?:[^`\\]|\\.)*`|[\w$]+|=>|\?\?=?|\?\.|\.\.\.|[=!]==|&&|\|\||[<>]=|\*\*|\S/g;

/** Without comments, and what is generated. */
function tokensPerLine() {
  const code = files
    .filter((path) => !path.endsWith('_pb.ts'))
    .flatMap((path) =>
      texts
        .get(path)
        .replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')
        .split('\n'),
    )
    .map((line) => line.match(TOKEN)?.length ?? 0)
    .filter((count) => count > 0);
  return Math.round((100 * code.reduce((sum, count) => sum + count, 0)) / code.length) / 100;
}

function measure() {
  const rooms = {};
  for (const path of files) rooms[partOf(path)] = (rooms[partOf(path)] ?? 0) + linesOf(path);
  // The page is generated from the option tables, and a test holds it to them.
  const page = readFileSync(join(root, 'docs', 'command-line.md'), 'utf8');
  const rows = [...page.matchAll(/^\| (`-[^|]+`) \|/gm)].map(([, flags]) => flags);
  return {
    lines: files.reduce((sum, path) => sum + linesOf(path), 0),
    files: files.length,
    verbs: [...page.matchAll(/^### trtforge /gm)].length,
    options: new Set(rows).size,
    'options, verb by verb': rows.length,
    'circles of rooms': circles().size,
    'door files': new Set(across.map(({ to }) => to)).size,
    'names across rooms': namesOf(across),
    'core names for leaves': namesOf(
      across.filter(({ from, to }) => from.startsWith('products/') && !to.startsWith('products/')),
    ),
    'files with a load option': LOAD_OPTIONS.map(filesWith).sort((a, b) => a - b)[2],
    'requests and options': [...texts.values()].flatMap(
      (text) => text.match(/^export (?:interface|type) \w*(?:Request|Options)\b/gm) ?? [],
    ).length,
    'tokens a code line': tokensPerLine(),
    rooms,
  };
}

function shortFiles() {
  const importers = new Map(files.map((path) => [path, []]));
  // What is loaded when it is used is a file of its own for that.
  for (const { from, to, isLater } of imports) importers.get(to)?.push(isLater ? 'later' : from);
  return files.flatMap((path) => {
    const [only, ...others] = new Set(importers.get(path));
    if (!texts.has(only) || others.length > 0 || dirname(only) !== dirname(path)) return [];
    const isPart = basename(only) !== 'index.ts' && linesOf(path) + linesOf(only) <= LONGEST;
    return isPart && linesOf(path) < SHORT
      ? [`  ${path} (${linesOf(path)}) → ${only} (${linesOf(only)})`]
      : [];
  });
}

const { rooms, ...sums } = measure();
const at = process.argv.indexOf('--record');
if (at > 0) {
  const release = process.argv[at + 1] ?? 'the last release';
  writeFileSync(record, `${JSON.stringify({ release, ...sums, rooms }, null, 2)}\n`);
}
const last = JSON.parse(readFileSync(record, 'utf8'));

const figure = (number) => (number?.toLocaleString('en') ?? '').padStart(9);
function row(name, now, before) {
  const change = now - (before ?? now);
  const difference = change === 0 ? '' : `${change > 0 ? '+' : '−'}${Math.abs(change).toLocaleString('en')}`;
  console.log(`${name.padEnd(26)}${figure(now)}${figure(before)}${difference.padStart(9)}`);
}
console.log(`${''.padEnd(26)}${'now'.padStart(9)}${last.release.padStart(9)}`);
for (const [name, now] of Object.entries(sums)) row(name, now, last[name]);
for (const name of new Set([...Object.keys(last.rooms), ...Object.keys(rooms)].sort()))
  row(`  ${name}`, rooms[name] ?? 0, last.rooms[name] ?? 0);
const short = shortFiles();
if (short.length > 0)
  console.log(`${short.length} files below ${SHORT} lines have one importer, beside them:`);
for (const line of short) console.log(line);
for (const circle of circles()) console.log(`These rooms import each other: ${circle}`);
if (process.argv.includes('--doors')) {
  const doors = [...new Set(across.map(({ to }) => to))].sort();
  for (const room of new Set(doors.map(roomOf))) {
    const own = doors.filter((path) => roomOf(path) === room);
    console.log([`${room}: ${own.length}`, ...own.map((path) => `  ${path}`)].join('\n'));
  }
}
