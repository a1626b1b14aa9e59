// Prints what the house costs beside the last release: lines of src by room, files, verbs, options; and short files that belong into their only importer.
//   npm run size [-- --record NAME]    writes docs/size.json, at a release
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
const roomOf = (path) => /^(?:products\/[^/]+|[^/]+)(?=\/)/.exec(path)?.[0] ?? 'src';

function measure() {
  const rooms = {};
  for (const path of files) rooms[roomOf(path)] = (rooms[roomOf(path)] ?? 0) + linesOf(path);
  // The page is generated from the option tables, and a test holds it to them.
  const page = readFileSync(join(root, 'docs', 'command-line.md'), 'utf8');
  const rows = [...page.matchAll(/^\| (`-[^|]+`) \|/gm)].map(([, flags]) => flags);
  return {
    lines: files.reduce((sum, path) => sum + linesOf(path), 0),
    files: files.length,
    verbs: [...page.matchAll(/^### trtforge /gm)].length,
    options: new Set(rows).size,
    'options, verb by verb': rows.length,
    rooms,
  };
}

function shortFiles() {
  const importers = new Map(files.map((path) => [path, []]));
  // What is loaded when it is used is a file of its own for that.
  for (const [path, text] of texts)
    for (const [how, imported] of text.matchAll(/(?:from|import\()\s*'(\.[^']+)\.js'/g))
      importers.get(`${join(dirname(path), imported)}.ts`)?.push(how.startsWith('from') ? path : 'later');
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

const figure = (number) => number.toLocaleString('en').padStart(9);
function row(name, now, before) {
  const change = now - before;
  const difference = change === 0 ? '' : `${change > 0 ? '+' : '−'}${Math.abs(change).toLocaleString('en')}`;
  console.log(`${name.padEnd(24)}${figure(now)}${figure(before)}${difference.padStart(9)}`);
}
console.log(`${''.padEnd(24)}${'now'.padStart(9)}${last.release.padStart(9)}`);
for (const [name, now] of Object.entries(sums)) row(name, now, last[name]);
for (const name of new Set([...Object.keys(last.rooms), ...Object.keys(rooms)].sort()))
  row(`  ${name}`, rooms[name] ?? 0, last.rooms[name] ?? 0);
const short = shortFiles();
if (short.length > 0)
  console.log(`${short.length} files below ${SHORT} lines have one importer, beside them:`);
for (const line of short) console.log(line);
