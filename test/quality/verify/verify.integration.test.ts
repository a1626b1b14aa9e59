import { describe, expect, it } from 'vitest';
import type { WorkEvent } from '../../../src/events.js';
import {
  type AttributeValue,
  attribute,
  GraphBuilder,
  type ModelSpec,
} from '../../../src/formats/onnx/index.js';
import { tensorFrom } from '../../../src/formats/tensor/tensor.js';
import type { VerifyRequest } from '../../../src/quality/verify/options.js';
import { type VerifyResult, verifyResultSchema } from '../../../src/quality/verify/result.js';
import { verifyModel } from '../../../src/quality/verify/verify.js';
import { castTo, floats, modelFile } from '../../engines/runtime/onnxruntime/models.js';
import { inProcessBackEnd } from '../../support/in-process-back-end.js';

/** y = x * w, one weight an element. */
const scale = (weights: readonly number[], more: (graph: GraphBuilder) => void = () => {}) =>
  modelFile((graph) => {
    graph.input('x', 'float32', ['n', weights.length]);
    graph.initializer('w', floats('float32', [weights.length], weights));
    graph.node('Mul', { inputs: ['x', 'w'], outputs: ['y'] });
    graph.output('y', 'float32', ['n', weights.length]);
    more(graph);
  });

type Verify = (reference: string, candidate: string, more?: Partial<VerifyRequest>) => Promise<VerifyResult>;
const verify: Verify = (reference, candidate, more) =>
  verifyModel({ reference, candidate, threads: 1, ...more }, { backEnds: [inProcessBackEnd()] });
/** As users run models: what takes 16 bits, begins with a seed, and what ONNX Runtime says of a file. */
const verifyInChild: Verify = (reference, candidate, more) =>
  verifyModel({ reference, candidate, threads: 1, ...more });

describe('a model compared with another', () => {
  it('passes when they compute the same, with everything that decides it stated', async () => {
    const reference = await scale([1, 2, 3]);
    const events: WorkEvent[] = [];
    const result = await verifyModel(
      {
        reference,
        candidate: await scale([1, 2, 3]),
        threads: 1,
        seed: 4,
        samples: 2,
        shapes: new Map([['x', [5, 3]]]),
      },
      { emit: (event) => events.push(event) },
    );
    expect(verifyResultSchema.parse(result)).toEqual(result);
    expect(result).toMatchObject({
      outcome: 'pass',
      precision: 'fp32',
      verdicts: { contract: 'pass', numeric: 'pass', task: null },
      // Four extremes before those that were asked for.
      samples: 6,
      failures: [],
      inputs: [{ name: 'x', shape: [5, 3], from: 'normal, mean 0, deviation 1' }],
    });
    expect(result.outputs[0]).toMatchObject({
      name: 'y',
      elements: 30,
      pass: true,
      histogram: { zeros: 30 },
    });
    expect(result.repeat).toBeNull();
    expect(events.filter((event) => event.type === 'progress')).toHaveLength(12);
  });

  it('gives the same result for the same seed and another for another', async () => {
    const [reference, candidate] = [await scale([1, 2, 3]), await scale([1, 2, 3.001])];
    const first = await verify(reference, candidate);
    expect(await verify(reference, candidate)).toEqual(first);
    expect((await verify(reference, candidate, { seed: 1 })).outputs).not.toEqual(first.outputs);
  });

  it('compares outputs of float64 in float64', async () => {
    const added = (amount: number) =>
      modelFile((graph) => {
        graph.input('x', 'float64', ['n', 3]);
        graph.initializer('w', tensorFrom('float64', [3], Float64Array.of(0, 0, amount)));
        graph.node('Add', { inputs: ['x', 'w'], outputs: ['y'] });
        graph.output('y', 'float64', ['n', 3]);
      });
    const [reference, candidate] = [await added(0), await added(1e-13)];
    const atol = (value: number) => [{ name: null, value }];
    const more = { shapes: new Map([['x', [700, 3]]]) };
    expect(await verify(reference, candidate, { ...more, atol: atol(2e-13) })).toMatchObject({
      outcome: 'pass',
      outputs: [{ dtype: 'float64', elements: 6300, histogram: { zeros: 4200 } }],
    });
    const failed = await verify(reference, candidate, { ...more, atol: atol(5e-14) });
    expect(failed.outcome).toBe('fail');
    expect(failed.failures.map(({ chunk }) => chunk)).toEqual(expect.arrayContaining([4, 5, 6]));
  });

  it('fails with the place of the largest error', async () => {
    const result = await verify(await scale([1, 2, 3]), await scale([1, 2, 3.5]));
    expect(result.outcome).toBe('fail');
    expect(result.failures.map(({ chunk, tensor, kind }) => [chunk, tensor, kind])).toEqual(
      expect.arrayContaining([4, 5, 6].map((chunk) => [chunk, 'y', 'outside-tolerance'])),
    );
    expect(result.reasons[0]).toMatch(/where the reference is .* \(sample \d+, element \[\d+, 2\]\)/);
  });

  it("takes the user's tolerance, for all outputs or one", async () => {
    const [reference, candidate] = [await scale([1, 2, 3]), await scale([1, 2, 3.1])];
    const loose = { rtol: [{ name: 'y', value: 0.05 }] };
    expect((await verify(reference, candidate, loose)).outcome).toBe('pass');
    const strict = {
      rtol: [
        { name: null, value: 0.05 },
        { name: 'y', value: 0.01 },
      ],
    };
    const result = await verify(reference, candidate, strict);
    expect(result.outcome).toBe('fail');
    expect(result.outputs[0]?.checks[0]?.statistic).toBe('max beyond rtol');
  });
});

describe('tolerances that would decide nothing are rejected', () => {
  it.each([
    ['NaN, which nothing is larger than', { atol: [{ name: null, value: Number.NaN }] }, /is NaN/],
    ['one below zero', { rtol: [{ name: 'y', value: -1 }] }, /for y is -1/],
    ['one for an output that is not there', { atol: [{ name: 'x2', value: 1 }] }, /no output x2; it has y/],
  ])('%s', async (_case, wishes, message) => {
    const model = await scale([1, 2, 3]);
    await expect(verify(model, model, wishes)).rejects.toThrow(
      expect.objectContaining({ code: 'TF_USAGE', message: expect.stringMatching(message) }),
    );
  });
});

describe('16-bit candidates', () => {
  /** x * 2000 * 2000 / 2000 / 2000 in half precision: overflows in the middle. */
  const detour = modelFile((graph) => {
    graph.input('x', 'float32', [4, 8]);
    graph.initializer('k', floats('float16', [], [2000]));
    graph.node('Cast', { inputs: ['x'], outputs: ['x0'], attributes: castTo('float16') });
    graph.node('Mul', { inputs: ['x0', 'k'], outputs: ['x1'] });
    graph.node('Mul', { inputs: ['x1', 'k'], outputs: ['x2'] });
    graph.node('Div', { inputs: ['x2', 'k'], outputs: ['x3'] });
    graph.node('Div', { inputs: ['x3', 'k'], outputs: ['x4'] });
    graph.node('Cast', { inputs: ['x4'], outputs: ['y'], attributes: castTo('float32') });
    graph.output('y', 'float32', [4, 8]);
  });
  const identity = modelFile((graph) => {
    graph.input('x', 'float32', [4, 8]);
    graph.node('Identity', { inputs: ['x'], outputs: ['y'] });
    graph.output('y', 'float32', [4, 8]);
  });

  it('fail when they overflow inside, as they would on a GPU', async () => {
    const result = await verify(await identity, await detour);
    expect(result).toMatchObject({ outcome: 'fail', precision: 'fp16', verdicts: { numeric: 'fail' } });
    expect(result.roundedValues).toBe(5);
    expect(result.failures[0]?.kind).toBe('non-finite');
    expect(result.reasons[0]).toMatch(/NaN or infinite/);
    expect(JSON.parse(JSON.stringify(result))).toEqual(result);
  });

  it('pass within the bounds of their precision, and take inputs of their own type', async () => {
    const half = await modelFile((graph) => {
      graph.input('x', 'float16', [4, 8]);
      graph.node('Identity', { inputs: ['x'], outputs: ['y'] });
      graph.output('y', 'float16', [4, 8]);
    });
    const result = await verifyInChild(await identity, half);
    expect(result).toMatchObject({ outcome: 'pass', precision: 'fp16' });
    expect(result.outputs[0]).toMatchObject({ dtype: 'float32', candidateDtype: 'float16' });
    expect(await verifyInChild(await identity, half, { precision: 'fp32' })).toMatchObject({
      outcome: 'fail',
    });
  });
});

describe('no verdict is better than a wrong one', () => {
  it.each([
    ['a reference of NaN everywhere', Number.NaN, {}, /only NaN and infinity/],
    ['a constant reference', 0, {}, /would accept zeros/],
    ['a tolerance that zeros would pass', 0.02, { atol: [{ name: null, value: 1 }] }, /would accept zeros/],
  ])('%s is inconclusive', async (_case, weight, more, reason) => {
    const reference = await scale([weight, weight]);
    const result = await verify(reference, reference, more);
    expect(result).toMatchObject({ outcome: 'inconclusive', verdicts: { numeric: 'inconclusive' } });
    expect(result.reasons[0]).toMatch(reason);
  });
});

describe('a reference that does not repeat itself', () => {
  /** y = x + noise, and z = x * weight, which no noise reaches. */
  const noisy = (noise: (graph: GraphBuilder) => void, weight = 2, spec: ModelSpec = {}) =>
    modelFile((graph) => {
      graph.input('x', 'float32', [8, 16]);
      noise(graph);
      graph.node('Add', { inputs: ['x', 'noise'], outputs: ['y'] });
      graph.initializer('w', floats('float32', [], [weight]));
      graph.node('Mul', { inputs: ['x', 'w'], outputs: ['z'] });
      graph.output('y', 'float32', null);
      graph.output('z', 'float32', null);
    }, spec);
  const normal =
    (more: Record<string, AttributeValue> = {}) =>
    (graph: GraphBuilder) =>
      graph.node('RandomNormalLike', { name: 'draw', inputs: ['x'], outputs: ['noise'], attributes: more });
  const dropout = (training: boolean) => (graph: GraphBuilder) => {
    graph.initializer('ratio', floats('float32', [], [0.5]));
    graph.initializer('training', tensorFrom('bool', [], Uint8Array.of(training ? 1 : 0)));
    graph.node('Dropout', { name: 'drop', inputs: ['x', 'ratio', 'training'], outputs: ['noise'] });
  };
  const inBody = (graph: GraphBuilder) => {
    graph.initializer('yes', tensorFrom('bool', [], Uint8Array.of(1)));
    const body = new GraphBuilder('body');
    body.node('RandomUniformLike', { inputs: ['x'], outputs: ['inner'] });
    body.output('inner', 'float32', null);
    graph.node('If', {
      inputs: ['yes'],
      outputs: ['noise'],
      attributes: { then_branch: attribute.body(body), else_branch: attribute.body(body) },
    });
  };
  /** Of another opset than the model's, so that only running it shows what it does. */
  const inFunction: ModelSpec = {
    opset: 18,
    opsets: { 'ai.test': 1 },
    functions: [
      {
        domain: 'ai.test',
        name: 'Noise',
        inputs: ['value'],
        outputs: ['out'],
        opsets: { '': 17 },
        nodes: (() => {
          const graph = new GraphBuilder('Noise');
          graph.node('RandomNormalLike', { inputs: ['value'], outputs: ['out'] });
          return graph;
        })(),
      },
    ],
  };
  const called = (graph: GraphBuilder) =>
    graph.node('Noise', { domain: 'ai.test', inputs: ['x'], outputs: ['noise'] });

  it.each<[string, (graph: GraphBuilder) => void, ModelSpec]>([
    ['RandomNormalLike', normal(), {}],
    ['Dropout in training mode', dropout(true), {}],
    ['a body', inBody, {}],
    ['what only a second run shows', called, inFunction],
  ])('is inconclusive against itself: %s', async (_case, noise, spec) => {
    const model = await noisy(noise, 2, spec);
    const result = await verify(model, model);
    expect(result).toMatchObject({ outcome: 'inconclusive', verdicts: { numeric: 'inconclusive' } });
    expect(result.outputs.map(({ name, outcome, pass }) => [name, outcome, pass])).toEqual([
      ['y', 'inconclusive', false],
      ['z', 'pass', true],
    ]);
    expect(result.failures).toEqual([]);
    expect(result.reasons).toHaveLength(1);
  });

  it.each<[string, (graph: GraphBuilder) => void]>([
    ['a seed', normal({ seed: attribute.float(3) })],
    ['Dropout that is off', dropout(false)],
  ])('passes against itself where it repeats: %s', async (_case, noise) => {
    const model = await noisy(noise);
    expect((await verifyInChild(model, model)).outcome).toBe('pass');
  });

  it('still fails in an output that no random number reaches', async () => {
    const result = await verifyInChild(await noisy(normal()), await noisy(normal(), 2.1));
    expect(result).toMatchObject({ outcome: 'fail' });
    expect(new Set(result.failures.map(({ tensor }) => tensor))).toEqual(new Set(['z']));
    expect(result.outputs.map(({ outcome }) => outcome)).toEqual(['inconclusive', 'fail']);
  });

  it('is inconclusive where its shapes do not repeat', async () => {
    const model = await modelFile((graph) => {
      graph.input('x', 'float32', [400]);
      graph.node('RandomNormalLike', { inputs: ['x'], outputs: ['noise'] });
      graph.node('Relu', { inputs: ['noise'], outputs: ['positive'] });
      graph.node('NonZero', { inputs: ['positive'], outputs: ['y'] });
      graph.output('y', 'int64', null);
    });
    expect(await verify(model, model)).toMatchObject({
      outcome: 'inconclusive',
      verdicts: { contract: 'inconclusive' },
    });
  });
});

describe('integer and boolean outputs', () => {
  const decision = (threshold: number) =>
    modelFile((graph) => {
      graph.input('x', 'float32', [100, 10]);
      graph.initializer('t', floats('float32', [], [threshold]));
      graph.node('ArgMax', { inputs: ['x'], outputs: ['best'] });
      graph.node('Greater', { inputs: ['x', 't'], outputs: ['above'] });
      graph.output('best', 'int64', null);
      graph.output('above', 'bool', null);
    });

  it('must be the same; what differs is counted', async () => {
    const same = await verify(await decision(0), await decision(0));
    expect(same.outputs.map(({ pass }) => pass)).toEqual([true, true]);
    const result = await verify(await decision(0), await decision(0.01), { samples: 1 });
    expect(result.outputs.map(({ name, pass }) => [name, pass])).toEqual([
      ['best', true],
      ['above', false],
    ]);
    expect(result.reasons[0]).toMatch(/^above: \d+ of 1000 elements differ/);
  });
});

describe('models that cannot be compared', () => {
  it('one that is not well typed is rejected, as candidate and as reference', async () => {
    const typed = (w: 'float16' | 'float32') =>
      modelFile((graph) => {
        graph.input('x', 'float16', ['n', 2]);
        graph.initializer('w', floats(w, [2, 2], [1, 0, 0, 1]));
        graph.node('MatMul', { name: 'product', inputs: ['x', 'w'], outputs: ['y'] });
        graph.output('y', 'float16', ['n', 2]);
      });
    const [good, bad] = [await typed('float16'), await typed('float32')];
    for (const [reference, candidate] of [
      [good, bad],
      [bad, good],
    ] as const) {
      await expect(verifyInChild(reference, candidate)).rejects.toMatchObject({
        code: 'TF_ONNX_GRAPH_INVALID',
        message: expect.stringContaining(bad),
      });
    }
  });

  it('a missing output breaks the contract', async () => {
    const reference = await scale([1, 2], (graph) => {
      graph.node('Relu', { inputs: ['y'], outputs: ['extra'] });
      graph.output('extra', 'float32', null);
    });
    const result = await verify(reference, await scale([1, 2]));
    expect(result).toMatchObject({ outcome: 'fail', verdicts: { contract: 'fail', numeric: 'pass' } });
    expect(result.reasons).toContain('The candidate has no output extra.');
  });

  it('so does another shape', async () => {
    const flat = await modelFile((graph) => {
      graph.input('x', 'float32', ['n', 2]);
      graph.node('Flatten', { inputs: ['x'], outputs: ['z'] });
      graph.node('Transpose', { inputs: ['z'], outputs: ['y'] });
      graph.output('y', 'float32', null);
    });
    const result = await verify(await scale([1, 1]), flat);
    expect(result).toMatchObject({ outcome: 'fail', verdicts: { contract: 'fail' } });
    expect(result.reasons[0]).toBe('y is [2, 8] in the candidate and [8, 2] in the reference.');
  });

  it('other inputs, or no output in common, are rejected', async () => {
    const other = await modelFile((graph) => {
      graph.input('z', 'float32', [2]);
      graph.node('Relu', { inputs: ['z'], outputs: ['y'] });
      graph.output('y', 'float32', null);
    });
    await expect(verify(await scale([1, 2]), other)).rejects.toThrow(/has the inputs z; .* has x/);
    const renamed = await modelFile((graph) => {
      graph.input('x', 'float32', ['n', 2]);
      graph.node('Relu', { inputs: ['x'], outputs: ['q'] });
      graph.output('q', 'float32', null);
    });
    await expect(verify(await scale([1, 2]), renamed)).rejects.toThrow(
      expect.objectContaining({ code: 'TF_VERIFY_MISMATCH' }),
    );
  });

  it('a run that is cancelled ends its child and reports it', async () => {
    const reference = await scale([1, 2]);
    await expect(
      verifyModel({ reference, candidate: reference }, { signal: AbortSignal.abort() }),
    ).rejects.toThrow(expect.objectContaining({ code: 'TF_CANCELLED' }));
  });
});
