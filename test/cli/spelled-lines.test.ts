import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { wrongLines } from '../support/spelled-lines.js';

const root = join(import.meta.dirname, '../..');
const source = join(root, 'src');
/** These pages repeat the source. */
const GENERATED = /(?:command-line|errors|migrating)\.md$/;

test('every command line in the source is one of today: remedies, examples, help, comments', () => {
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('.ts'),
  );
  expect(files.length).toBeGreaterThan(300);
  const wrong = files.flatMap((path) =>
    wrongLines(readFileSync(join(source, path), 'utf8')).map((line) => `${path}: ${line}`),
  );
  expect(wrong).toEqual([]);
});

test('every command line in the pages is one of today, besides recorded evidence', () => {
  const pages = ['README.md', ...readdirSync(join(root, 'docs')).map((name) => join('docs', name))].filter(
    (path) => path.endsWith('.md') && !GENERATED.test(path),
  );
  const wrong = pages.flatMap((path) =>
    wrongLines(readFileSync(join(root, path), 'utf8')).map((line) => `${path}: ${line}`),
  );
  expect(wrong).toEqual([]);
});

test('a verb that its family lacks and an option that its verb does not take are found', () => {
  expect(
    wrongLines('Run `trtforge stream streams m.onnx`, then `trtforge verify a --against b`.'),
  ).toHaveLength(1);
  expect(wrongLines("'trtforge verify a --reference r'")).toEqual([expect.stringContaining('--reference')]);
  expect(wrongLines('trtforge stream check m.onnx --contract c; trtforge knows it')).toEqual([]);
});
