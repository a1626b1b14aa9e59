import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { transformerEncoder } from '../../../../examples/models/transformer-encoder.js';
import { writeNetwork } from '../../../../examples/models/write-network.js';
import { compareLayers } from '../../../../src/products/study/layers/compare-layers.js';
import { layerComparisonSchema } from '../../../../src/products/study/layers/result.js';
import type { VerifyRequest } from '../../../../src/quality/verify/options.js';
import { floats, modelFile } from '../../../engines/runtime/onnxruntime/models.js';
import { converted, freshPath } from '../../../formats/precision/judge.js';
import { samplePlan } from '../../../support/sample-engine.js';
import { trtforge } from '../../../support/trtforge.js';
import { plantFaults } from '../planted.js';

const encoder = freshPath();
await writeNetwork(
  encoder,
  (network) => transformerEncoder(network, { layers: 3, width: 16, heads: 2, vocabulary: 50, positions: 32 }),
  { seed: 3, external: false },
);
const planted = 'encoder.layer.1.up.bias.out';
const overflowing = freshPath();
await plantFaults(encoder, overflowing, [planted]);
const { output: typed } = await converted(overflowing);

const shapes = new Map([
  ['input_ids', [1, 8]],
  ['attention_mask', [1, 8]],
]);
const compared = (reference: string, candidate: string, more: Partial<VerifyRequest> = {}) =>
  compareLayers({ reference, candidate, samples: 1, threads: 1, shapes, ...more });

/** y = x * factor, z = y + 1, under these names. */
const twoSteps = (factor: number, [y, z]: readonly [string, string] = ['y', 'z']) =>
  modelFile((graph) => {
    graph.input('x', 'float32', [3, 4]);
    graph.initializer('factor', floats('float32', [], [factor]));
    graph.initializer('one', floats('float32', [], [1]));
    graph.node('Mul', { inputs: ['x', 'factor'], outputs: [y] });
    graph.node('Add', { inputs: [y, 'one'], outputs: [z] });
    graph.output(z, 'float32', [3, 4]);
  });

describe('the layers of two models', () => {
  it('diverge first at the tensor that overflows in 16 bits', async () => {
    const result = await compared(overflowing, typed);
    expect(layerComparisonSchema.parse(result)).toEqual(result);
    expect(result).toMatchObject({ outcome: 'fail', precision: 'fp16' });
    expect(result.firstDivergence).toBe(`${planted}/large`);
    const at = result.tensors.findIndex(({ name }) => name === result.firstDivergence);
    expect(result.tensors.slice(0, at).every(({ outcome }) => outcome !== 'fail')).toBe(true);
    expect(result.tensors[at]?.nonFinite).toMatchObject({ reference: 0 });
    expect(result.tensors[at]?.nonFinite.mismatching).toBeGreaterThan(0);
    expect(result.tensors.slice(at + 1).some(({ outcome }) => outcome === 'fail')).toBe(true);
    expect(result.maps[0]?.cells.flat()).toContain(null);
  });

  it('diverge nowhere where the models are the same, of which every tensor is compared', async () => {
    const result = await compared(encoder, encoder);
    expect(result).toMatchObject({ outcome: 'pass', diverging: 0, firstDivergence: null, worst: null });
    expect(result).toMatchObject({ onlyReference: 0, onlyCandidate: 0, maps: [] });
    expect(result.tensors.length).toBeGreaterThan(8);
    expect(result.tensors.every(({ error }) => error?.maxAbs === 0)).toBe(true);
  });

  it('are measured as their values are', async () => {
    const [reference, candidate] = [await twoSteps(2), await twoSteps(2.5)];
    const { tensors, worst, maps } = await compared(reference, candidate, { shapes: new Map() });
    const [y, z] = tensors;
    expect(tensors.map(({ name, op, outcome }) => [name, op, outcome])).toEqual([
      ['y', 'Mul', 'fail'],
      ['z', 'Add', 'fail'],
    ]);
    // 2.5 x for 2 x: the error is a quarter of the value.
    expect(y?.error?.sqnr).toBeCloseTo(20 * Math.log10(4), 4);
    expect(y?.error?.maxRelative).toBeCloseTo(0.25, 5);
    expect(y?.error?.cosine).toBeCloseTo(1, 6);
    expect(z?.error?.maxAbs).toBeCloseTo(Number(y?.error?.maxAbs), 5);
    expect(['y', 'z']).toContain(worst);
    const [map] = maps;
    expect(map).toMatchObject({ tensor: 'y', rows: { axis: 0, size: 3 }, columns: { axis: 1, size: 4 } });
    const cells = map?.cells.flat() ?? [];
    expect(Math.min(...cells.map(Number))).toBeGreaterThan(0);
    expect(Math.max(...cells.map(Number))).toBeLessThan(Number(y?.error?.maxAbs));
  });

  it('have the signal to noise and the cosine of every tensor', async () => {
    const { tensors } = await compared(await twoSteps(2), await twoSteps(2.02), { shapes: new Map() });
    expect(tensors.map(({ name, error }) => [name, error?.sqnr, error?.cosine])).toMatchObject([
      ['y', expect.closeTo(40, 2), expect.closeTo(1, 6)],
      ['z', expect.any(Number), expect.any(Number)],
    ]);
  });

  it('take a tolerance of their own', async () => {
    const [reference, candidate] = [await twoSteps(2), await twoSteps(2.5)];
    const request = { shapes: new Map(), rtol: [{ name: 'y', value: 0.3 }] };
    expect(await compared(reference, candidate, request)).toMatchObject({
      firstDivergence: 'z',
      diverging: 1,
    });
    await expect(
      compared(reference, candidate, { ...request, atol: [{ name: 'typo', value: 1 }] }),
    ).rejects.toMatchObject({ code: 'TF_USAGE' });
  });

  it('cannot be compared without a tensor of one name, nor inside an engine without layer names', async () => {
    const [reference, candidate] = [await twoSteps(2), await twoSteps(2, ['a', 'b'])];
    await expect(compared(reference, candidate, { shapes: new Map() })).rejects.toMatchObject({
      code: 'TF_VERIFY_MISMATCH',
    });
    const engine = freshPath('.engine');
    writeFileSync(engine, samplePlan());
    await expect(compared(reference, engine)).rejects.toMatchObject({ code: 'TF_PASSPORT_MISSING' });
    await expect(compared(engine, candidate)).rejects.toMatchObject({ code: 'TF_USAGE' });
  });
});

describe('trtforge compare layers', () => {
  it('prints the worst tensors and the first that diverges, and writes the page', async () => {
    const page = freshPath('/layers.html');
    const args = ['--shapes', 'input_ids:1x8', '--shapes', 'attention_mask:1x8', '--samples', '1'];
    const line = ['compare', 'layers', typed, '--against', overflowing, '--threads', '1', ...args];
    const { exitCode, out } = await trtforge([...line, '--report', page]);
    expect(exitCode).toBe(1);
    expect(out).toContain(`${planted}/large (Mul ${planted}/up) first`);
    const html = readFileSync(page, 'utf8');
    expect(html.match(/<svg class="chart"/g)?.length).toBeGreaterThanOrEqual(2);
    expect(html).toContain('not finite</title>');
    const { exitCode: code, json } = await trtforge([...line, '--json']);
    expect(code).toBe(1);
    expect(layerComparisonSchema.safeParse(json()).success).toBe(true);
  });
});
