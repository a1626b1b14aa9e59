import { describe, expect, it } from 'vitest';
import { attribute, type GraphBuilder } from '../../../src/formats/onnx/index.js';
import { convertModel } from '../../../src/formats/precision/convert.js';
import { writeNpy } from '../../../src/formats/tensor/npy.js';
import type { VerifyRequest } from '../../../src/quality/verify/options.js';
import { verifyModel } from '../../../src/quality/verify/verify.js';
import { floats, modelFile } from '../../engines/runtime/onnxruntime/models.js';
import { freshPath } from '../../formats/precision/judge.js';
import { inProcessBackEnd } from '../../support/in-process-back-end.js';
import { trtforge } from '../../support/trtforge.js';

const ints = (...values: number[]) => attribute.ints(values);
const weight = (shape: readonly number[], size = 1) =>
  floats(
    'float32',
    shape,
    Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, at) => size * Math.sin(1 + at * at)),
  );

/** Energies of bands of sound, as a logarithm or as they are, behind a factor. */
const bands = (isLog: boolean, factor?: number) => (graph: GraphBuilder) => {
  graph.input('sound', 'float32', [1, 1024]);
  graph.initializer('axis', floats('float32', [1], [0]));
  let wave = 'sound';
  if (factor !== undefined) {
    graph.initializer('factor', floats('float32', [], [factor]));
    wave = graph.node('Mul', { inputs: ['sound', 'factor'], outputs: ['loud'] });
  }
  graph.initializer('shape', {
    dtype: 'int64',
    shape: [3],
    bytes: new Uint8Array(new BigInt64Array([1n, 1n, -1n]).buffer),
  });
  graph.initializer('filters', weight([16, 1, 64], 2 / Math.max(1, factor ?? 1)));
  graph.node('Reshape', { inputs: [wave, 'shape'], outputs: ['plane'] });
  graph.node('Conv', { inputs: ['plane', 'filters'], outputs: ['parts'], attributes: { strides: ints(32) } });
  graph.node('Mul', { inputs: ['parts', 'parts'], outputs: ['power'] });
  graph.initializer('floor', floats('float32', [], [1]));
  const from = isLog ? 'log' : 'power';
  if (isLog) {
    graph.node('Add', { inputs: ['power', 'floor'], outputs: ['raised'] });
    graph.node('Log', { inputs: ['raised'], outputs: ['log'] });
  }
  graph.initializer('head', weight([4, 16], isLog ? 0.1 : 0.01));
  graph.node('MatMul', { inputs: ['head', `${from}`], outputs: ['y'] });
  graph.output('y', 'float32', null);
};

const pictures = (scaled: boolean) => (graph: GraphBuilder) => {
  graph.input('image', 'float32', [1, 3, 16, 16]);
  graph.initializer('w', weight([4, 3, 3, 3], 6));
  graph.initializer('byte', floats('float32', [], [255]));
  const from = scaled ? graph.node('Div', { inputs: ['image', 'byte'], outputs: ['unit'] }) : 'image';
  graph.node('Conv', { inputs: [from, 'w'], outputs: ['a'] });
  graph.node('Mul', { inputs: ['a', 'a'], outputs: ['y'] });
  graph.output('y', 'float32', null);
};

async function judged(describe: (graph: GraphBuilder) => void, more: Partial<VerifyRequest> = {}) {
  const reference = await modelFile(describe);
  const candidate = freshPath('.onnx');
  await convertModel(reference, candidate, { precision: 'fp16' }, {});
  return verifyModel({ reference, candidate, threads: 1, ...more }, { backEnds: [inProcessBackEnd()] });
}

describe('how large inputs may get', () => {
  it('audio of any level that overflows is inconclusive, and a range decides', async () => {
    const log = bands(true);
    const found = await judged(log);
    expect(found).toMatchObject({
      outcome: 'inconclusive',
      verdicts: { numeric: 'pass' },
      headRoom: { inputs: ['sound'], finiteUpTo: 100, failsAt: 32_767, isFree: true, outputs: ['y'] },
    });
    expect(found.reasons).toEqual([found.headRoom?.message]);
    const range = (most: number) => ({ ranges: [{ name: 'sound', low: -most, high: most }] });
    expect(await judged(log, range(1))).toMatchObject({ outcome: 'pass' });
    expect(await judged(log, range(32_767))).toMatchObject({ outcome: 'fail' });
  });

  it('the options that it prints decide, and find the node', async () => {
    const [model, typed, kept] = [await modelFile(bands(true)), freshPath('.onnx'), freshPath('')];
    await convertModel(model, typed, { precision: 'fp16' }, {});
    const { exitCode, out } = await trtforge(['verify', typed, '--against', model]);
    expect(exitCode).toBe(4);
    const [loud, small] = [...out.matchAll(/--val-range '([^']+)'/g)].map(([, range]) => range!);
    expect((await trtforge(['verify', typed, '--against', model, '--val-range', small!])).exitCode).toBe(0);
    const search = ['bisect', typed, '--against', model, '--val-range', loud!, '-o', kept, '--json'];
    expect((await trtforge(search)).json()).toMatchObject({ outcome: 'pass' });
  });

  it('data decide alone', async () => {
    const path = freshPath('.npy');
    writeNpy(
      path,
      floats(
        'float32',
        [4, 1024],
        Array.from({ length: 4096 }, (_, at) => Math.sin(at * at)),
      ),
    );
    const found = await judged(bands(true), { data: { files: [`sound=@${path}`] } });
    expect(found).toMatchObject({ outcome: 'pass' });
    expect(found.headRoom).toBeUndefined();
  });

  it.each<[string, (graph: GraphBuilder) => void]>([
    ['energies, which grow with the level', bands(false)],
    ['pictures of 0 to 1', pictures(false)],
  ])('what may be no range of the model is stated, and passes: %s', async (_, describe) => {
    const found = await judged(describe);
    expect(found).toMatchObject({ outcome: 'pass', reasons: [], headRoom: { isFree: false } });
    expect(found.headRoom?.failsAt).toBeGreaterThan(found.headRoom!.finiteUpTo);
  });

  it('audio that the graph itself makes louder has a level', async () => {
    expect(await judged(bands(true, 100))).toMatchObject({ outcome: 'pass', headRoom: { isFree: false } });
  });

  it.each<[string, (graph: GraphBuilder) => void, number]>([
    ['sound', bands(true, 1 / 32_768), 32_768],
    ['pictures', pictures(true), 200],
  ])('a graph that scales its input is judged on its range: %s', async (_, describe, least) => {
    const found = await judged(describe);
    expect(found).toMatchObject({ outcome: 'pass' });
    expect(found.headRoom).toBeUndefined();
    expect(found.inputs[0]?.from).toMatch(new RegExp(least === 200 ? '0 to 255' : 'deviation 8192'));
  });

  it('FP32 candidates and types of its range are not probed, or finite', async () => {
    const reference = await modelFile(bands(true));
    expect(
      (await verifyModel({ reference, candidate: reference, threads: 1 }, { backEnds: [inProcessBackEnd()] }))
        .headRoom,
    ).toBeUndefined();
    const candidate = freshPath('.onnx');
    await convertModel(reference, candidate, { precision: 'bf16' }, {});
    const found = await verifyModel({ reference, candidate, threads: 1 }, { backEnds: [inProcessBackEnd()] });
    expect(found.headRoom).toMatchObject({ finiteUpTo: 32_767, failsAt: null });
  });
});
