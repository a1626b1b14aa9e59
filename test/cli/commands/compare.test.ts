import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { writeOutputs } from '../../../src/engines/run/run-file.js';
import { writeNpy } from '../../../src/formats/tensor/npy.js';
import { writeNpz } from '../../../src/formats/tensor/npz.js';
import {
  float32Values,
  floatTensor,
  integerTensor,
  type Tensor,
  tensorFrom,
} from '../../../src/formats/tensor/tensor.js';
import { compareOutputs } from '../../../src/quality/verify/compare.js';
import type { CompareRequest } from '../../../src/quality/verify/options.js';
import { type CompareResult, compareResultSchema } from '../../../src/quality/verify/result.js';
import { type Answer, trtforge } from '../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-compare-'));
const polygraphy = (name: string) =>
  fileURLToPath(new URL(`../../fixtures/polygraphy/${name}`, import.meta.url));

const ramp = Float32Array.from({ length: 24 }, (_, i) => i / 8 - 1);
const y = tensorFrom('float32', [2, 3, 4], ramp);
const close = tensorFrom(
  'float32',
  [2, 3, 4],
  ramp.map((value) => value + 1e-4),
);
const classes = integerTensor('int64', [4], [1, 2, 3, 4]);

function npz(name: string, tensors: Readonly<Record<string, Tensor>>, compress = false): string {
  const path = join(folder, `${name}.npz`);
  writeNpz(path, new Map(Object.entries(tensors)), { compress });
  return path;
}

const reference = npz('reference', { y, classes });
const near = npz('near', { y: close, classes });

const compare = (...args: string[]) => trtforge(['compare', ...args]);

async function answer(...args: string[]): Promise<CompareResult & Answer> {
  return (await compare(...args, '--json')).json();
}

describe('trtforge compare', () => {
  it('prints a table, what decided, the worst elements, and how to repeat it', async () => {
    const { exitCode, out } = await compare(near, reference);
    expect(exitCode).toBe(1);
    expect(out).toMatch(/output +type +max +mean +p99 +max rel +cosine +PSNR +outside/);
    expect(out).toMatch(/FAIL +y +float32 \[2, 3, 4\]/);
    expect(out).toMatch(/max is 1\.00e-4, above the limit/);
    expect(out).toMatch(/\[\d, \d, \d\]: .* off by 1\.00e-4/);
    expect(out).toContain(`To repeat: trtforge compare ${near} ${reference}`);
  });

  it('--report shows where in the worst output the error is, and report renders it again', async () => {
    const off = tensorFrom(
      'float32',
      [2, 3, 4],
      ramp.map((value, i) => value + (i === 23 ? 1 : 0)),
    );
    const both = npz('both', { y, z: y, classes });
    const worse = npz('worse', { y: close, z: off, classes });
    const page = join(folder, 'compare.html');
    const { errorMap, ...result } = await answer(worse, both, '--report', page);
    expect(errorMap).toMatchObject({
      tensor: 'z',
      rows: { axis: 1, size: 3 },
      columns: { axis: 2, size: 4 },
    });
    const cells = errorMap!.cells.flat();
    expect([cells.filter((cell) => cell === 0).length, cells[11]]).toEqual([11, 0.5]);
    expect(readFileSync(page, 'utf8')).toContain('Error of z');
    const file = join(folder, 'compare.json');
    writeFileSync(file, JSON.stringify({ ...result, errorMap }));
    const again = await trtforge(['report', file, '-o', join(folder, 'again.html')]);
    expect(readFileSync(again.out, 'utf8')).toContain('Error of z');
    expect(await answer(worse, both)).not.toHaveProperty('errorMap');
    expect(await answer(both, both, '--report', page)).not.toHaveProperty('errorMap');
  });

  it('answers in JSON of its schema', async () => {
    const result = await answer(near, reference, '--atol', '1e-3');
    expect(compareResultSchema.safeParse(result).error).toBeUndefined();
    expect(result).toMatchObject({
      schema: 'trtforge.compare/1',
      exitCode: 0,
      outcome: 'pass',
      runs: 1,
      verdicts: { contract: 'pass', numeric: 'pass' },
      candidate: { format: 'npz', unmatched: [] },
    });
  });

  it.each([
    ['tolerances for one output among several', ['--atol', '1e-9,y:1e-3'], 0],
    ['checks that hold', ['--check', 'cosine=0.999,psnr=40', '--check', 'y:snr=20'], 0],
    ['one check that does not hold', ['--check', 'cosine=0.999,l2=1e-6'], 1],
    ['a tolerance that cannot fail', ['--atol', '10'], 4],
    ['the same, allowed', ['--atol', '10', '--allow-loose'], 0],
    ['what the usual FP16 limits allow', ['--precision', 'fp16'], 0],
    ['a tolerance for an output that is not there', ['--atol', 'z:1'], 2],
    ['a check that is none', ['--check', 'median=3'], 2],
    ['a check that nothing could pass', ['--check', 'cosine=2'], 2],
    ['a renaming that is none', ['--map', 'y'], 2],
    ['a renaming of nothing', ['--map', 'q=y'], 2],
    ['an output that is not there', ['--outputs', 'q'], 2],
    ['a runner of files that tell none', ['--runner-a', 'trt-runner'], 2],
  ])('exits as it should with %s', async (_case, words, code) => {
    expect((await compare(near, reference, ...words)).exitCode).toBe(code);
  });

  it('repeats by the command that it prints', async () => {
    const { repeat } = await answer(
      near,
      reference,
      '--atol',
      '1e-9,y:1e-3',
      '--check',
      'y:cosine=0.9,max',
      '--allow-loose',
    );
    expect(repeat).toContain('--atol 1e-9,y:1e-3 --check y:cosine=0.9,max --allow-loose');
    expect((await answer(...(repeat ?? '').split(' ').slice(2))).repeat).toContain(repeat);
  });

  it('compares float64 as such: errors that float32 does not see count, also where only one side is float64', async () => {
    const off = ramp.length * 300;
    const reference64 = tensorFrom(
      'float64',
      [off],
      Float64Array.from({ length: off }, (_, i) => Math.cos(i)),
    );
    const candidate64 = tensorFrom(
      'float64',
      [off],
      Float64Array.from({ length: off }, (_, i) => Math.cos(i) + (i % 2) * 1e-12),
    );
    const [a, b] = [npz('candidate64', { y: candidate64 }), npz('reference64', { y: reference64 })];
    const result = await answer(a, b, '--atol', '1e-13');
    expect(result).toMatchObject({ outcome: 'fail', warnings: [] });
    const [output] = result.outputs;
    expect(output?.statistics).toContainEqual({ name: 'max', amount: expect.closeTo(1e-12, 15) });
    expect(output?.statistics).toContainEqual({ name: 'outside tolerance', amount: off / 2 });
    expect(output?.histogram).toMatchObject({ zeros: off / 2 });
    expect(await answer(a, b, '--atol', '2e-12')).toMatchObject({ outcome: 'pass' });
    const narrow = npz('narrow', { y: floatTensor('float32', [off], float32Values(reference64)) });
    const mixed = await answer(narrow, b, '--allow-dtype-difference');
    const max = mixed.outputs[0]?.statistics.find(({ name }) => name === 'max')?.amount;
    expect(max).toBeGreaterThan(1e-8);
    expect(max).toBeLessThan(2 ** -25);
  });

  it('names what only one side has: missing outputs fail, more of them do not', async () => {
    const more = npz('more', { y, classes, extra: classes });
    expect(await answer(more, reference)).toMatchObject({
      outcome: 'pass',
      candidate: { unmatched: ['extra'] },
    });
    const result = await answer(reference, more);
    expect(result).toMatchObject({ outcome: 'fail', reference: { unmatched: ['extra'] } });
    expect(result.reasons).toContain('The candidate has no output extra.');
  });

  it('compares outputs of other names when their pairs are passed', async () => {
    const renamed = npz('renamed', { output_0: y, labels: classes });
    expect((await compare(renamed, reference)).exitCode).toBe(2);
    expect(
      (await compare(renamed, reference, '--map', 'output_0=y', '--map', 'labels=classes')).exitCode,
    ).toBe(0);
  });

  it('fails on other shapes without broadcasting, and on other types unless they are allowed', async () => {
    const row = npz('row', { y: tensorFrom('float32', [1, 24], ramp), classes });
    expect(await answer(row, reference)).toMatchObject({
      outcome: 'fail',
      reasons: ['y is [1, 24] in the candidate and [2, 3, 4] in the reference.'],
    });
    const half = npz('half', { y: floatTensor('float16', [2, 3, 4], ramp), classes });
    expect((await answer(half, reference)).reasons[0]).toMatch(/y is float16 in the candidate and float32/);
    expect((await compare(half, reference, '--allow-dtype-difference', '--precision', 'fp16')).exitCode).toBe(
      0,
    );
  });

  it('reads npy files and folders, compressed archives, column-major and big-endian arrays alike', async () => {
    const out = join(folder, 'out');
    mkdirSync(out);
    writeNpy(join(out, 'y.npy'), y);
    writeNpy(join(out, 'classes.npy'), classes);
    const tensors = (name: string) =>
      fileURLToPath(new URL(`../../fixtures/tensors/${name}`, import.meta.url));
    expect((await compare(out, reference)).exitCode).toBe(0);
    expect((await compare(npz('compressed', { y, classes }, true), out)).exitCode).toBe(0);
    for (const name of ['float32-fortran', 'float32-big-endian', 'version-3', 'float64']) {
      const words = ['--map', `${name}=float32`, '--allow-dtype-difference'];
      expect(await compare(tensors(`${name}.npy`), tensors('float32.npy'), ...words)).toMatchObject({
        exitCode: 0,
      });
    }
  });

  it('knows outputs that run wrote into a folder by their own names', async () => {
    const names = ['/encoder/y:0', '.hidden', 'a b', '100%', 'größe', 'plain'];
    const tensors = new Map(names.map((name) => [name, y]));
    const out = join(folder, 'named');
    writeOutputs(tensors, out);
    expect(readdirSync(out)).toContain('%2Fencoder%2Fy%3A0.npy');
    const result = await answer(out, npz('named', Object.fromEntries(tensors)));
    expect(result.outputs.map(({ name }) => name)).toEqual(names);
    expect(result).toMatchObject({ outcome: 'pass', candidate: { unmatched: [] } });
  });

  it('leaves the name of a file alone that does not have this form', async () => {
    const out = mkdtempSync(join(folder, 'foreign-'));
    for (const name of ['50%', 'a%20b', 'x%2fy']) writeNpy(join(out, `${name}.npy`), y);
    expect((await answer(out, out)).outputs.map(({ name }) => name)).toEqual(['50%', 'a b', 'x%2fy']);
  });

  it.each<[string, Partial<CompareRequest>]>([
    ['a tolerance of NaN', { atol: [{ name: null, value: Number.NaN }] }],
    ['a tolerance below zero', { rtol: [{ name: null, value: -1 }] }],
    ['an infinite tolerance', { atol: [{ name: 'y', value: Number.POSITIVE_INFINITY }] }],
    ['a threshold of NaN', { checks: [{ name: null, kind: 'cosine', threshold: Number.NaN }] }],
  ])('never passes by %s, which only the library takes', async (_case, rules) => {
    const request = { candidate: near, reference, ...rules };
    await expect(compareOutputs(request)).rejects.toMatchObject({ code: 'TF_USAGE' });
  });

  it('states the type of void elements', async () => {
    const half = floatTensor('bfloat16', [24], ramp);
    const path = npz('bfloat16', { y: half });
    expect(await compare(path, path)).toMatchObject({ exitCode: 2 });
    expect((await compare(path, path, '--void-type', 'bfloat16')).exitCode).toBe(0);
  });

  it('matches runs of Polygraphy in order, from a file or a folder of them', async () => {
    const same = await answer(polygraphy('runs'), polygraphy('results.json'), '--allow-loose');
    expect(same).toMatchObject({ outcome: 'pass', runs: 2, reference: { runner: 'onnxrt-runner' } });
    const off = await answer(polygraphy('other.json'), polygraphy('results.json'), '--outputs', 'logits');
    expect(off).toMatchObject({ outcome: 'fail', failures: [{ run: 0 }, { run: 1 }] });
    expect((await compare(polygraphy('two-runners.json'), polygraphy('results.json'))).err).toMatch(
      /several runners: onnxrt-runner, trt-runner/,
    );
    const two = polygraphy('two-runners.json');
    const between = [two, two, '--runner-a', 'trt-runner', '--runner-b', 'onnxrt-runner'];
    expect((await compare(...between, '--atol', '0.05', '--allow-loose')).exitCode).toBe(0);
    expect((await compare(two, two, '--runner-a', 'nobody')).exitCode).toBe(2);
  });

  it("reads trtexec's exports, whose types and last digits are unknown", async () => {
    const path = join(folder, 'trtexec.json');
    const values = Array.from(ramp, (value) => value.toPrecision(6)).join(', ');
    writeFileSync(path, `[\n  { "name" : "y", "dimensions" : "2x3x4", "values" : [ ${values} ] }\n]\n`);
    const result = await answer(path, reference, '--outputs', 'y');
    expect(result).toMatchObject({ outcome: 'pass', candidate: { format: 'trtexec' } });
    expect(result.warnings[0]).toMatch(/six significant digits/);
    // 0.1 is not what float32 holds, but what trtexec prints of it.
    const tenth = npz('tenth', { y: tensorFrom('float32', [2], Float32Array.of(0.1, 0.7)) });
    writeFileSync(path, '[\n  { "name" : "y", "dimensions" : "2", "values" : [ 0.1, 0.7 ] }\n]\n');
    expect((await answer(path, tenth, '--atol', '0')).outputs[0]?.histogram.zeros).toBe(2);
    expect((await answer(tenth, path, '--atol', '0')).outputs[0]?.histogram.zeros).toBe(2);
  });

  it('never passes an archive whose elements were damaged after it was written', async () => {
    const many = tensorFrom(
      'float32',
      [100_000],
      Float32Array.from({ length: 100_000 }, (_, i) => Math.sin(i)),
    );
    const path = npz('whole', { y, many });
    const bytes = readFileSync(path);
    bytes[300_000]! ^= 1;
    const damaged = join(folder, 'damaged.npz');
    writeFileSync(damaged, bytes);
    const words = ['--precision', 'fp16', '--json'];
    expect((await compare(path, path, ...words)).exitCode).toBe(0);
    for (const pair of [
      [damaged, path],
      [path, damaged],
    ] as const) {
      const { exitCode, json } = await compare(...pair, ...words);
      expect(exitCode).toBe(2);
      const { error } = json();
      expect(error).toMatchObject({ code: 'TF_ARCHIVE_INVALID' });
      expect(error?.message).toContain('its member many.npy is damaged');
    }
  });

  it.each([
    ['a file that is not there', () => join(folder, 'nothing.npz'), 'TF_FILE_NOT_FOUND'],
    [
      'text',
      () => {
        writeFileSync(join(folder, 'text.txt'), 'hello, this is no tensor');
        return join(folder, 'text.txt');
      },
      'TF_TENSOR_FILE_INVALID',
    ],
    ['an archive without a tensor', () => npz('none', {}), 'TF_TENSOR_FILE_INVALID'],
    [
      "Polygraphy's inputs without one",
      () => {
        writeFileSync(join(folder, 'no-inputs.json'), '[]');
        return join(folder, 'no-inputs.json');
      },
      'TF_TENSOR_FILE_INVALID',
    ],
    ['an empty folder', () => mkdtempSync(join(folder, 'empty-')), 'TF_TENSOR_FILE_INVALID'],
    [
      'a folder of mixed files',
      () => {
        const mixed = mkdtempSync(join(folder, 'mixed-'));
        writeFileSync(join(mixed, 'a.npy'), '');
        writeFileSync(join(mixed, 'b.npz'), '');
        return mixed;
      },
      'TF_TENSOR_FILE_INVALID',
    ],
  ])('rejects %s', async (_case, make, code) => {
    const { exitCode, json } = await compare(make(), reference, '--json');
    expect(exitCode).toBe(2);
    expect(json()).toMatchObject({ error: { code } });
  });
});
