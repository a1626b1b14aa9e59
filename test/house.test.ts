import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const source = fileURLToPath(new URL('../src', import.meta.url));

/** A room imports only rooms that stand before it here. */
const ROOMS = [
  'errors.ts',
  'events.ts',
  'version.ts',
  'system',
  'tensor',
  'onnx',
  'precision',
  'toolchain',
  'trtexec',
  'engine',
  'store',
  'runtime',
  'verify',
  'bench',
  'bundle',
  'stream',
  'diagnose',
  'gate',
  'report',
  'forge',
  'cli',
  'commands',
  'index.ts',
  'main.ts',
];

/** Files that may be imported lazily by --version and --help; none of them may pull in zod, protobuf or ONNX Runtime. */
const LIGHT = ['main.ts', 'version.ts', 'errors.ts', 'events.ts', 'commands/registry.ts'];

const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((path) =>
  path.endsWith('.ts'),
);
const roomOf = (path: string) => path.split('/')[0] ?? '';

function importsOf(path: string, pattern = /(?:from|import\()\s*'(\.[^']+)'/g): readonly string[] {
  const text = readFileSync(join(source, path), 'utf8');
  return [...text.matchAll(pattern)].map((match) => match[1] ?? '');
}

const target = (path: string, imported: string) =>
  relative(source, resolve(source, dirname(path), imported)).replace(/\.js$/, '.ts');

describe('the house', () => {
  test('has only the rooms it says it has', () => {
    expect([...new Set(files.map(roomOf))].filter((room) => !ROOMS.includes(room))).toEqual([]);
  });

  test('no room imports one that stands below it', () => {
    const wrong = files.flatMap((path) =>
      importsOf(path)
        .map((imported) => target(path, imported))
        .filter((to) => ROOMS.indexOf(roomOf(to)) > ROOMS.indexOf(roomOf(path)))
        .map((to) => `${path} imports ${to}`),
    );
    expect(wrong).toEqual([]);
  });

  test('starting the command line loads nothing heavy', () => {
    const heavy = LIGHT.flatMap((path) =>
      importsOf(path, /^import (?!type)[^;]*from '((?:zod|@bufbuild|onnxruntime)[^']*)'/gm),
    );
    expect(heavy).toEqual([]);
  });

  test('only the command line and its doors speak to the console', () => {
    const loud = files.filter((path) =>
      /^(?! \*).*\bconsole\.(log|error|warn)\(/m.test(readFileSync(join(source, path), 'utf8')),
    );
    expect(loud).toEqual([]);
  });
});
