import { describe, expect, it } from 'vitest';
import type { RunRequest } from '../../../src/engines/run/options.js';
import { runFile } from '../../../src/engines/run/run-file.js';
import { TrtforgeError } from '../../../src/errors.js';
import { ignoreEvents } from '../../../src/events.js';
import { attribute, GraphBuilder as Graph, type GraphBuilder } from '../../../src/formats/onnx/index.js';
import { writeNpy } from '../../../src/formats/tensor/npy.js';
import { benchModel } from '../../../src/quality/bench/bench-model.js';
import { defaultMode } from '../../../src/quality/bench/options.js';
import { verifyModel } from '../../../src/quality/verify/verify.js';
import { floats, ids, modelFile } from '../../engines/runtime/onnxruntime/models.js';

type Describe = (graph: GraphBuilder) => void;
const ints = (...values: number[]) => attribute.ints(values);
const weight = (...shape: number[]) =>
  floats(
    'float32',
    shape,
    Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => Math.sin(i)),
  );

/** Halves twice and doubles twice, and adds what came before: only sides of a multiple of 4 fit. */
const unet =
  (channelsLast: boolean): Describe =>
  (graph) => {
    graph.input('x', 'float32', channelsLast ? ['n', null, null, 3] : ['n', 3, null, null]);
    graph.initializer('w', weight(3, 3, 4, 4));
    graph.initializer('scales', floats('float32', [4], [1, 1, 2, 2]));
    const planes = channelsLast
      ? graph.node('Transpose', { inputs: ['x'], outputs: ['t'], attributes: { perm: ints(0, 3, 1, 2) } })
      : 'x';
    const half = (from: string, to: string) =>
      graph.node('Conv', {
        inputs: [from, 'w'],
        outputs: [to],
        attributes: { strides: ints(2, 2), pads: ints(1, 1, 1, 1) },
      });
    const quarter = half(half(planes, 'a'), 'b');
    // 33 pixels at least: what the sides of 8 of a thumbnail are not.
    graph.initializer('large', weight(3, 3, 9, 9));
    graph.node('Conv', {
      inputs: [quarter, 'large'],
      outputs: ['c'],
      attributes: { pads: ints(4, 4, 4, 4) },
    });
    graph.node('Conv', { inputs: ['c', 'large'], outputs: ['small'] });
    graph.node('Resize', { inputs: ['b', '', 'scales'], outputs: ['up'] });
    graph.node('Add', { inputs: ['up', 'a'], outputs: ['sum'] });
    graph.node('GlobalAveragePool', { inputs: ['small'], outputs: ['one'] });
    graph.node('Mul', { inputs: ['sum', 'one'], outputs: ['y'] });
    graph.output('y', 'float32', null);
  };

/** A transform as exporters write it: padding by reflection, then one long filter. */
const spectrum =
  (length: string | null): Describe =>
  (graph) => {
    graph.input('input', 'float32', [null, length]);
    graph.input('state', 'float32', [2, null, 4]);
    graph.initializer('pads', ids([4], [0, 64, 0, 64]));
    graph.initializer('axis', ids([1], [1]));
    graph.initializer('w', weight(4, 1, 256));
    graph.node('Pad', {
      inputs: ['input', 'pads'],
      outputs: ['padded'],
      attributes: { mode: attribute.string('reflect') },
    });
    graph.node('Unsqueeze', { inputs: ['padded', 'axis'], outputs: ['planes'] });
    graph.node('Conv', {
      inputs: ['planes', 'w'],
      outputs: ['s'],
      attributes: { strides: ints(128) },
    });
    graph.node('ReduceMean', {
      inputs: ['s'],
      outputs: ['mean'],
      attributes: { axes: ints(2), keepdims: attribute.int(0) },
    });
    graph.node('Add', { inputs: ['mean', 'state'], outputs: ['y'] });
    graph.output('y', 'float32', null);
  };

/** The signal is chosen in the bodies of an If, and filtered outside. */
const chosen: Describe = (graph) => {
  graph.input('loud', 'bool', []);
  graph.input('input', 'float32', ['batch', 'sequence']);
  graph.initializer('axis', ids([1], [1]));
  graph.initializer('w', weight(4, 1, 256));
  const bodies = ['then', 'else'].map((name) => {
    const body = new Graph(name);
    body.node('Identity', { inputs: ['input'], outputs: [`${name} signal`] });
    body.output(`${name} signal`, 'float32', null);
    return body;
  });
  graph.node('If', {
    inputs: ['loud'],
    outputs: ['signal'],
    attributes: { then_branch: attribute.body(bodies[0]!), else_branch: attribute.body(bodies[1]!) },
  });
  graph.node('Unsqueeze', { inputs: ['signal', 'axis'], outputs: ['planes'] });
  graph.node('Conv', { inputs: ['planes', 'w'], outputs: ['y'] });
  graph.output('y', 'float32', null);
};

/** Edges name atoms by number, and the features of an edge are as many as the edges. */
const graphNet: Describe = (graph) => {
  graph.input('element', 'float32', ['num_atoms', 3]);
  graph.input('edges', 'int64', [2, 'num_edges']);
  graph.input('distance', 'float32', ['num_edges', 1]);
  graph.input('target', 'int64', ['num_residues']);
  graph.initializer('zero', ids([], [0]));
  graph.node('Gather', { inputs: ['edges', 'zero'], outputs: ['from'] });
  graph.node('Gather', { inputs: ['element', 'from'], outputs: ['gathered'] });
  graph.node('Mul', { inputs: ['gathered', 'distance'], outputs: ['messages'] });
  graph.node('Relu', { inputs: ['messages'], outputs: ['relu'] });
  // Nothing says how far these indices reach: they are below 10, and so must be the number of edges.
  graph.node('Gather', { inputs: ['relu', 'target'], outputs: ['y'] });
  graph.output('y', 'float32', null);
};

const negative: Describe = (graph) => {
  graph.input('x', 'float32', [-1, 3, -1, -1]);
  graph.node('Relu', { inputs: ['x'], outputs: ['y'] });
  graph.output('y', 'float32', [-1, 3, -1, -1]);
};

const run = async (describe: Describe, more: Partial<RunRequest> = {}) =>
  runFile({ file: await modelFile(describe), sources: [{ kind: 'random' }], ...more });

const refused = async (work: Promise<unknown>): Promise<TrtforgeError> => {
  const error = await work.catch((reason: unknown) => reason);
  if (error instanceof TrtforgeError) return error;
  throw new Error(`a TrtforgeError was expected, not ${String(error)}`);
};

describe('sizes that are not passed are guessed until the model runs', () => {
  it.each<[string, Describe, Record<string, [number[], number[] | undefined]>]>([
    [
      'an image',
      unet(false),
      {
        x: [
          [1, 3, 224, 224],
          [0, 2, 3],
        ],
      },
    ],
    [
      'an image with its channels last',
      unet(true),
      {
        x: [
          [1, 224, 224, 3],
          [0, 1, 2],
        ],
      },
    ],
    [
      'sound, and the batch of a state',
      spectrum(null),
      {
        input: [
          [1, 16_000],
          [0, 1],
        ],
        state: [[2, 1, 4], [1]],
      },
    ],
    [
      'sound by what the graph does, whatever the symbol',
      spectrum('sequence'),
      {
        input: [
          [1, 16_000],
          [0, 1],
        ],
        state: [[2, 1, 4], [1]],
      },
    ],
    [
      'sound that comes out of an If',
      chosen,
      {
        loud: [[], undefined],
        input: [
          [1, 16_000],
          [0, 1],
        ],
      },
    ],
    [
      'indices that must agree, at the second guess',
      graphNet,
      {
        element: [[32, 3], [0]],
        edges: [[2, 32], [1]],
        distance: [[32, 1], [0]],
        target: [[32], [0]],
      },
    ],
    [
      'dimensions of -1',
      negative,
      {
        x: [
          [1, 3, 224, 224],
          [0, 2, 3],
        ],
      },
    ],
  ])('%s', async (_what, describe, expected) => {
    const { inputs } = await run(describe);
    expect(Object.fromEntries(inputs.map((input) => [input.name, [input.shape, input.guessedAxes]]))).toEqual(
      expected,
    );
  });

  it('by verify as well, which states which axes it guessed', async () => {
    const model = await modelFile(graphNet);
    const { inputs, outcome } = await verifyModel({ reference: model, candidate: model, samples: 2 });
    expect(outcome).toBe('pass');
    expect(inputs.map(({ shape, guessedAxes }) => [shape[0], guessedAxes])).toEqual([
      [32, [0]],
      [2, [1]],
      [32, [0]],
      [32, [0]],
    ]);
  });

  it('and by bench', async () => {
    const model = await modelFile(spectrum(null));
    const { runs, warnings } = await benchModel(
      {
        model,
        pace: { ...defaultMode, warmUpMs: 1, durationMs: 10 },
        shapes: { kind: 'batches', batches: [1, 3] },
        inputs: { seed: 0, ranges: [], files: [] },
        samples: undefined,
      },
      { emit: ignoreEvents, signal: new AbortController().signal, environment: process.env },
    );
    expect(runs.map(({ shapes }) => shapes.map(({ shape }) => shape))).toEqual([
      [
        [1, 16_000],
        [2, 1, 4],
      ],
      [
        [3, 16_000],
        [2, 3, 4],
      ],
    ]);
    expect(warnings.join()).toContain('--shapes input:1x16000');
  });

  it('but not where they are passed: then the rest follows from them', async () => {
    const { inputs } = await run(spectrum(null), { shapes: new Map([['input', [2, 500]]]) });
    expect(inputs.map(({ shape, guessedAxes }) => [shape, guessedAxes])).toEqual([
      [[2, 500], undefined],
      [[2, 2, 4], undefined],
    ]);
  });
});

describe('where no guess runs', () => {
  const demanding: Describe = (graph) => {
    graph.input('x', 'float32', [null, null]);
    graph.initializer('w', weight(37, 2));
    graph.node('MatMul', { inputs: ['x', 'w'], outputs: ['y'] });
    graph.output('y', 'float32', null);
  };

  it('the error has what was tried, and the option to give', async () => {
    const error = await refused(run(demanding));
    expect(error.code).toBe('TF_ONNXRUNTIME_FAILED');
    expect(error.details?.tried).toEqual(expect.arrayContaining(['--shapes x:1x8', '--shapes x:1x512']));
    expect(error.remedy).toContain('--shapes x:1x8');
    expect(error.remedy).not.toContain('inspect');
    const { inputs } = await run(demanding, { shapes: new Map([['x', [4, 37]]]) });
    expect(inputs[0]?.shape).toEqual([4, 37]);
  });

  it('and shapes that are passed and do not suit the model are named, with the model', async () => {
    const file = await modelFile(demanding);
    const error = await refused(
      runFile({ file, sources: [{ kind: 'random' }], shapes: new Map([['x', [4, 36]]]) }),
    );
    expect(error.code).toBe('TF_ONNXRUNTIME_FAILED');
    expect(error.message).toContain(file);
    expect(error.details?.inputs).toEqual([{ name: 'x', shape: [4, 36] }]);
    expect(error.remedy).not.toContain('inspect');
  });
});

describe('shapes as files declare them', () => {
  it('a dimension of -1 takes any size, of a shape or of a file', async () => {
    const { inputs } = await run(negative, { shapes: new Map([['x', [1, 3, 48, 192]]]) });
    expect(inputs[0]?.shape).toEqual([1, 3, 48, 192]);
    const file = await modelFile(negative);
    const path = `${file}.npy`;
    writeNpy(path, weight(2, 3, 4, 5));
    const { outputs } = await runFile({ file, sources: [{ kind: 'tensor', name: 'x', path }] });
    expect(outputs[0]?.shape).toEqual([2, 3, 4, 5]);
  });

  it('an input without a shape takes the shape passed, and reports it where it has none', async () => {
    const rankless: Describe = (graph) => {
      graph.input('x', 'float32', null);
      graph.node('Relu', { inputs: ['x'], outputs: ['y'] });
      graph.output('y', 'float32', null);
    };
    const error = await refused(run(rankless));
    expect(error.code).toBe('TF_SHAPE_INVALID');
    expect(error.remedy).toContain('--shapes x:');
    const { outputs } = await run(rankless, { shapes: new Map([['x', [2, 5]]]) });
    expect(outputs[0]?.shape).toEqual([2, 5]);
  });

  it.each(['?', 'None', 'unk__7'])('axes that are all called "%s" are not one dimension', async (name) => {
    const placeholders: Describe = (graph) => {
      graph.input('x', 'float32', [name, 3, name, name]);
      graph.node('Relu', { inputs: ['x'], outputs: ['y'] });
      graph.output('y', 'float32', null);
    };
    const { outputs } = await run(placeholders, { shapes: new Map([['x', [1, 3, 48, 192]]]) });
    expect(outputs[0]?.shape).toEqual([1, 3, 48, 192]);
  });
});

describe('an open batch', () => {
  const rows =
    (sizes: readonly number[], fixed = false): Describe =>
    (graph) => {
      graph.input('x', 'float32', [null, ...sizes]);
      graph.initializer('one', ids([2], [1, sizes.reduce((product, size) => product * size, 1)]));
      graph.initializer('all', ids([2], [0, -1]));
      graph.node('Reshape', { inputs: ['x', fixed ? 'one' : 'all'], outputs: ['y'] });
      graph.output('y', 'float32', null);
    };

  it.each<[string, Describe, number]>([
    ['is several rows where they are small', rows([12]), 8],
    ['is one row where the model has no other', rows([12], true), 1],
    ['is one row where they are large', rows([3, 256, 256]), 1],
  ])('%s', async (_, describe, batch) => {
    const path = await modelFile(describe);
    const { inputs, samples, leftOut } = await verifyModel({ reference: path, candidate: path, threads: 1 });
    expect(inputs).toMatchObject([{ shape: [batch, ...inputs[0]!.shape.slice(1)], guessedAxes: [0] }]);
    expect(samples).toBeGreaterThan(3);
    expect(leftOut).toEqual([]);
    const { inputs: ran } = await runFile({ file: path, sources: [{ kind: 'random' }] });
    expect(ran[0]?.shape[0]).toBe(1);
  });
});
