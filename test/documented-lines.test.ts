import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { catalogue } from '../src/errors.js';
import { pages } from './support/pages.js';
import {
  linesOfCode,
  linesOfPage,
  linesPrinted,
  rejectionOf,
  type TextLine,
} from './support/parsed-lines.js';
import { everyVerb, program } from './support/trtforge.js';

const root = join(import.meta.dirname, '..');

const rejected = async (lines: readonly TextLine[]) =>
  (await Promise.all(lines.map((line) => rejectionOf(program, line)))).filter((answer) => answer !== null);

test.each(pages)('every command line of %s is one that trtforge runs', async (page) => {
  expect(await rejected(linesOfPage(readFileSync(join(root, page), 'utf8')))).toEqual([]);
});

test.each(await everyVerb())('every example of `$path` is one that trtforge runs', async ({ command }) => {
  const examples = command.examples ?? [];
  const lines = examples.flatMap(linesOfCode);
  expect(lines).toHaveLength(examples.length);
  expect(await rejected(lines)).toEqual([]);
});

test.each(Object.entries(catalogue))('the remedy of %s is one that trtforge runs', async (_, { remedy }) => {
  expect(await rejected(linesPrinted(program, remedy))).toEqual([]);
});

test('a line that does not run is found, where it stands in a page, a remedy and a sentence', async () => {
  const page = '```sh\neval "$(trtforge bulid m.onnx)"\n```\nand `trtforge bench --batch=x`';
  expect(await rejected(linesOfPage(page))).toHaveLength(2);
  const printed = 'Run trtforge inspect on the model.\n  → Run: trtforge stream record m.onnx';
  expect(await rejected(linesPrinted(program, printed))).toHaveLength(2);
  expect(await rejected(linesPrinted(program, JSON.stringify({ next: ['trtforge gate'] })))).toHaveLength(1);
  expect(await rejected(linesPrinted(program, 'Run `trtforge inspect` on it: trtforge knows.'))).toEqual([]);
});
