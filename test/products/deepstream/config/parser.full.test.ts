import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it, test } from 'vitest';
import type { Layout } from '../../../../src/products/deepstream/config/detector-outputs.js';
import {
  parserFile,
  parserFunction,
  parserLibrary,
  parserMakefile,
  parserSource,
} from '../../../../src/products/deepstream/config/parser-source.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-parser-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const fakes = fileURLToPath(new URL('../../../fakes/deepstream-includes', import.meta.url));
/** Folders of DeepStream's and TensorRT's own headers, with colons; else ours, which declare the same. */
const theirs = process.env.TRTFORGE_DEEPSTREAM_INCLUDES;
const includes = (theirs ?? fakes).split(':').map((path) => `-I${path}`);

/** Compiles the parser of a layout, and calls it on a network of 100 x 50 pixels and two classes. */
function parsed(layout: Layout, background: boolean, outputs: Readonly<Record<string, readonly number[][]>>) {
  const name = `net-${layout.kind}${background ? '.b' : ''}`;
  const source = join(folder, parserFile(name));
  const program = join(folder, name);
  writeFileSync(source, parserSource(name, layout, background));
  // Their macro that checks the prototype calls itself, which newer compilers warn of.
  const warnings = ['-std=c++17', '-Wall', ...(theirs === undefined ? ['-Werror'] : [])];
  const caller = [`-DFUNCTION=${parserFunction(name)}`, join(fakes, 'call-parser.cpp')];
  execFileSync('g++', [...warnings, ...includes, ...caller, source, '-o', program]);
  const input = Object.entries(outputs).map(([output, rows]) => {
    return [output, rows.length, rows[0]!.length, ...rows.flat()].join(' ');
  });
  const { stdout, status } = spawnSync(program, { input: input.join('\n'), encoding: 'utf8' });
  const objects = stdout.trim().split('\n').filter(Boolean);
  return { status, objects: objects.map((line) => line.split(' ').map(Number)) };
}

describe('the parse function that is written', () => {
  it('reads columns of box and scores, and clips to the picture', () => {
    const layout: Layout = { kind: 'boxes', scores: 'out', boxes: 'out', classes: 2 };
    const columns = [
      [20, 10, 20, 10, 0.1, 0.9],
      [95, 45, 20, 20, 0.5, 0.2],
      [50, 25, 10, 10, 0.2, 0.1],
    ];
    const rows = columns[0]!.map((_, channel) => columns.map((column) => column[channel]!));
    expect(parsed(layout, false, { out: rows })).toEqual({
      status: 0,
      objects: [
        [1, 0.9, 10, 5, 20, 10],
        [0, 0.5, 85, 35, 15, 15],
      ],
    });
  });

  it('reads rows of corners, score and class', () => {
    const layout: Layout = { kind: 'end-to-end', scores: 'out', boxes: 'out', classes: null };
    const rows = [
      [10, 5, 30, 15, 0.9, 1],
      [10, 5, 30, 15, 0.9, 2],
      [10, 5, 30, 15, 0.1, 0],
      [30, 5, 10, 15, 0.9, 0],
    ];
    expect(parsed(layout, false, { out: rows }).objects).toEqual([[1, 0.9, 10, 5, 20, 10]]);
  });

  it.each([
    [false, [[-5, 2]], [[1, 0.880797, 10, 5, 20, 10]]],
    [true, [[-5, 2, 0]], [[1, 0.88009, 10, 5, 20, 10]]],
    [true, [[-5, 0, 3]], []],
  ])('reads logits and boxes of DETR, background %s', (background, logits, objects) => {
    const layout: Layout = { kind: 'detr', scores: 'logits', boxes: 'pred_boxes', classes: 2 };
    const outputs = { pred_boxes: [[0.2, 0.2, 0.2, 0.2]], logits };
    expect(parsed(layout, background, outputs)).toEqual({ status: 0, objects });
  });

  it('fails where an output is missing', () => {
    const layout: Layout = { kind: 'boxes', scores: 'out', boxes: 'out', classes: 2 };
    expect(parsed(layout, false, { other: [[1, 2]] }).status).toBe(1);
  });
});

test('the Makefile builds the library that the configuration names', () => {
  const layout: Layout = { kind: 'boxes', scores: 'out', boxes: 'out', classes: 2 };
  writeFileSync(join(folder, parserFile('net')), parserSource('net', layout, false));
  writeFileSync(join(folder, 'Makefile'), parserMakefile('net'));
  execFileSync('make', ['-C', folder, `CXXFLAGS=${includes.join(' ')}`]);
  expect(execFileSync('nm', ['-D', join(folder, parserLibrary('net'))], { encoding: 'utf8' })).toContain(
    `T ${parserFunction('net')}`,
  );
});
