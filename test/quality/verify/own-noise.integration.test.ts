import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { attribute } from '../../../src/formats/onnx/index.js';
import { writeNpz } from '../../../src/formats/tensor/npz.js';
import type { VerifyRequest } from '../../../src/quality/verify/options.js';
import { verifyModel } from '../../../src/quality/verify/verify.js';
import { castTo, floats, ids, modelFile } from '../../engines/runtime/onnxruntime/models.js';
import { inProcessBackEnd } from '../../support/in-process-back-end.js';

/** Log energies of a row, normalised by their own spread: silence has none, so that any rounding decides it. `added` to the energies stands for another arithmetic. */
const pitch = (added: number, scale = 1) =>
  modelFile(
    (graph) => {
      graph.input('sound', 'float32', [1, 64]);
      graph.initializer(
        'weight',
        floats(
          'float32',
          [64, 32],
          Array.from({ length: 2048 }, (_, at) => Math.sin(at * at)),
        ),
      );
      graph.initializer(
        'bias',
        floats(
          'float32',
          [32],
          Array.from({ length: 32 }, (_, at) => 1 + added * Math.cos(at)),
        ),
      );
      graph.initializer('tiny', floats('float32', [], [1e-12]));
      graph.initializer('scale', floats('float32', [], [scale]));
      graph.initializer('axes', ids([1], [1]));
      graph.node('MatMul', { inputs: ['sound', 'weight'], outputs: ['product'] });
      graph.node('Add', { inputs: ['product', 'bias'], outputs: ['energy'] });
      graph.node('ReduceMean', {
        inputs: ['energy'],
        outputs: ['mean'],
        attributes: { axes: attribute.ints([1]), keepdims: attribute.int(1) },
      });
      graph.node('Sub', { inputs: ['energy', 'mean'], outputs: ['centred'] });
      graph.node('Mul', { inputs: ['centred', 'centred'], outputs: ['squares'] });
      graph.node('ReduceMean', {
        inputs: ['squares'],
        outputs: ['variance'],
        attributes: { axes: attribute.ints([1]), keepdims: attribute.int(1) },
      });
      graph.node('Add', { inputs: ['variance', 'tiny'], outputs: ['floored'] });
      graph.node('Sqrt', { inputs: ['floored'], outputs: ['spread'] });
      graph.node('Div', { inputs: ['centred', 'spread'], outputs: ['normal'] });
      graph.node('Mul', { inputs: ['normal', 'scale'], outputs: ['y'] });
      graph.output('y', 'float32', [1, 32]);
    },
    { opset: 17 },
  );

const verify = (reference: string, candidate: string, more: Partial<VerifyRequest> = {}) =>
  verifyModel({ reference, candidate, threads: 1, ...more }, { backEnds: [inProcessBackEnd()] });

it('a sample on which one step of FP32 moves the original beyond the limits does not decide', async () => {
  const healthy = await verify(await pitch(0), await pitch(2e-7));
  expect(healthy.outputs[0]?.unstable).toEqual([
    expect.objectContaining({
      sample: healthy.samplesFrom?.samples.findIndex(({ origin }) => origin === 'zeros'),
    }),
  ]);
  expect(healthy.outcome).toBe('pass');
  const broken = await verify(await pitch(0), await pitch(0, 0.98));
  expect(broken.outcome).toBe('fail');
});

it('limits of the caller hold as they are', async () => {
  const asked = { atol: [{ name: null, value: 1e-4 }] };
  expect((await verify(await pitch(0), await pitch(2e-7), asked)).outcome).toBe('fail');
});

it('a failure by rounding the inputs alone is named', async () => {
  /** The difference of neighbours, which stand at 100 and above. */
  const slope = (narrow: boolean) =>
    modelFile((graph) => {
      graph.input('x', 'float32', [1, 256]);
      graph.initializer('ends', ids([1], [256]));
      graph.initializer('starts', ids([1], [1]));
      graph.initializer('axes', ids([1], [1]));
      graph.initializer('zero', ids([1], [0]));
      graph.initializer('last', ids([1], [255]));
      graph.node('Identity', { inputs: ['x'], outputs: ['own'] });
      if (narrow) {
        graph.node('Cast', { inputs: ['own'], outputs: ['half'], attributes: castTo('float16') });
        graph.node('Cast', { inputs: ['half'], outputs: ['wide'], attributes: castTo('float32') });
      } else graph.node('Identity', { inputs: ['own'], outputs: ['wide'] });
      graph.node('Slice', { inputs: ['wide', 'starts', 'ends', 'axes'], outputs: ['after'] });
      graph.node('Slice', { inputs: ['wide', 'zero', 'last', 'axes'], outputs: ['before'] });
      graph.node('Sub', { inputs: ['after', 'before'], outputs: ['y'] });
      graph.output('y', 'float32', [1, 255]);
    });
  const folder = mkdtempSync(join(tmpdir(), 'trtforge-own-noise-'));
  const files = [1, 2, 3].map((seed) => {
    const path = join(folder, `${seed}.npz`);
    const values = Array.from(
      { length: 256 },
      (_, at) => 100 + 0.5 * Math.abs(Math.sin(seed * 7919 * (at + 1))),
    );
    writeNpz(path, new Map([['x', floats('float32', [1, 256], values)]]));
    return path;
  });
  const [reference, candidate] = [await slope(false), await slope(true)];
  const real = await verify(reference, candidate, { precision: 'fp16', data: { files } });
  expect(real.outcome).toBe('fail');
  expect(real.reasons.join()).toContain('Rounding the inputs to 16 bits alone');
  const ranges = [{ name: 'x', low: 100, high: 100.5 }];
  const drawn = await verify(reference, candidate, { precision: 'fp16', ranges });
  expect(drawn.outcome).toBe('inconclusive');
  expect(drawn.outputs[0]?.unstable?.length).toBeGreaterThan(0);
});

it('drawn samples that blow an output up are named, real ones are not', async () => {
  const cubed = await modelFile((graph) => {
    graph.input('distance', 'float32', [1, 64]);
    graph.initializer('near', floats('float32', [], [1e-6]));
    graph.node('Abs', { inputs: ['distance'], outputs: ['positive'] });
    graph.node('Mul', { inputs: ['positive', 'positive'], outputs: ['square'] });
    graph.node('Mul', { inputs: ['square', 'square'], outputs: ['fourth'] });
    graph.node('Add', { inputs: ['fourth', 'near'], outputs: ['floored'] });
    graph.node('Reciprocal', { inputs: ['floored'], outputs: ['y'] });
    graph.output('y', 'float32', [1, 64]);
  });
  const drawn = await verify(cubed, cubed);
  expect(drawn.outputs[0]?.blownUp?.peak).toBeGreaterThan(1000);
  const usual = await verify(cubed, cubed, { ranges: [{ name: null, low: 1, high: 2 }] });
  expect(usual.outputs[0]?.blownUp).toBeUndefined();
});
