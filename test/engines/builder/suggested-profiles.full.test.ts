import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildAddon } from '../../../scripts/build-native.mjs';
import { buildPlan } from '../../../src/engines/builder/build-supervised.js';
import { resolveBuild } from '../../../src/engines/builder/resolve-build.js';
import { TrtforgeError } from '../../../src/errors.js';
import { ignoreEvents, type WorkEvent } from '../../../src/events.js';
import { attribute, type GraphBuilder } from '../../../src/formats/onnx/index.js';
import { describeWith } from '../../support/needs.js';
import { castTo, floats, ids, modelFile } from '../runtime/onnxruntime/models.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-suggested-'));
beforeAll(async () => {
  await buildAddon({ say: () => {} });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Describe = (graph: GraphBuilder) => void;
const weight = (...shape: number[]) =>
  floats(
    'float32',
    shape,
    Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => Math.sin(i)),
  );
const ints = (...values: number[]) => attribute.ints(values);

/** A filter of 351 samples, as exported transforms have; the state has its batch, without a name, in the second axis. */
const sound: Describe = (graph) => {
  graph.input('input', 'float32', [null, 'sequence']);
  graph.input('state', 'float32', [2, null, 4]);
  graph.initializer('axis', ids([1], [1]));
  graph.initializer('w', weight(4, 1, 351));
  graph.node('Unsqueeze', { inputs: ['input', 'axis'], outputs: ['planes'] });
  graph.node('Conv', { inputs: ['planes', 'w'], outputs: ['s'], attributes: { strides: ints(128) } });
  graph.node('ReduceMean', {
    inputs: ['s'],
    outputs: ['mean'],
    attributes: { axes: ints(2), keepdims: attribute.int(0) },
  });
  graph.node('Add', { inputs: ['mean', 'state'], outputs: ['y'] });
  graph.output('y', 'float32', null);
};

const image =
  (...shape: (number | string | null)[]): Describe =>
  (graph) => {
    graph.input('x', 'float32', shape);
    graph.initializer('w', weight(4, 3, 7, 7));
    const planes =
      shape[1] === 3
        ? 'x'
        : graph.node('Transpose', { inputs: ['x'], outputs: ['t'], attributes: { perm: ints(0, 3, 1, 2) } });
    graph.node('Conv', { inputs: [planes, 'w'], outputs: ['c'], attributes: { strides: ints(4, 4) } });
    graph.node('Conv', { inputs: ['c', 'v'], outputs: ['y'] });
    graph.initializer('v', weight(4, 4, 7, 7));
    graph.output('y', 'float32', null);
  };

/** 64 positions in a table, of which the model takes as many as there are tokens. */
const positions: Describe = (graph) => {
  graph.input('input_ids', 'int64', ['batch', 'seq']);
  graph.input('attention_mask', 'int64', ['batch', 'seq']);
  graph.initializer('words', weight(100, 8));
  graph.initializer('table', weight(1, 64, 8));
  graph.initializer('one', ids([], [1]));
  for (const axis of [0, 1, 2]) graph.initializer(`axis${axis}`, ids([1], [axis]));
  graph.node('Gather', { inputs: ['words', 'input_ids'], outputs: ['w'] });
  graph.node('Shape', { inputs: ['input_ids'], outputs: ['s'] });
  graph.node('Gather', { inputs: ['s', 'one'], outputs: ['length'] });
  graph.node('Unsqueeze', { inputs: ['length', 'axis0'], outputs: ['end'] });
  graph.node('Slice', { inputs: ['table', 'axis0', 'end', 'axis1'], outputs: ['p'] });
  graph.node('Add', { inputs: ['w', 'p'], outputs: ['sum'] });
  graph.node('Cast', { inputs: ['attention_mask'], outputs: ['m'], attributes: castTo('float32') });
  graph.node('Unsqueeze', { inputs: ['m', 'axis2'], outputs: ['mask'] });
  graph.node('Mul', { inputs: ['sum', 'mask'], outputs: ['y'] });
  graph.output('y', 'float32', null);
};

const topK =
  (rows: number | string): Describe =>
  (graph) => {
    graph.input('x', 'float32', [rows, 16]);
    graph.input('k', 'int64', [1]);
    graph.node('TopK', { inputs: ['x', 'k'], outputs: ['values', 'indices'] });
    graph.output('values', 'float32', null);
  };

async function build(path: string, profiles: readonly string[] = [], dims: Record<string, string> = {}) {
  const warnings: string[] = [];
  const emit = (event: WorkEvent) => {
    if (event.type === 'log' && event.source === 'trtforge' && event.severity === 'warning')
      warnings.push(event.message);
  };
  const prepared = await resolveBuild(
    { model: path, target: 'tensorrt-rtx:sm_89', profiles, dims },
    { emit },
  );
  const outcome = await buildPlan(
    prepared,
    { modelPath: path, planPath: join(folder, 'plan') },
    { emit: ignoreEvents },
  );
  return { outcome, warnings, profiles: prepared.identity.recipe.profiles };
}

const refused = async (work: Promise<unknown>): Promise<TrtforgeError> => {
  const error = await work.catch((reason: unknown) => reason);
  if (error instanceof TrtforgeError) return error;
  throw new Error(`a TrtforgeError was expected, not ${String(error)}`);
};

describeWith('toolchain', 'a suggested profile builds as it is printed', () => {
  test.each<[string, Describe, (string | RegExp)[]]>([
    ['sound and a state', sound, ['input:1x512/8x16000/32x160000', 'state:2x1x4/2x8x4/2x32x4']],
    ['an image', image('n', 3, null, null), ['x:1x3x224x224/8x3x224x224/32x3x640x640']],
    ['an image, channels last', image(-1, -1, -1, 3), ['x:1x224x224x3/8x224x224x3/32x640x640x3']],
    ['an image whose axes have one placeholder', image('?', 3, '?', '?'), ['x:32x3x32x32/']],
    ['positions of a table', positions, ['input_ids:1x1/8x64/32x64', 'attention_mask:1x1/8x64/32x64']],
    ['values of a shape tensor', topK('n'), ['x:1x16/8x16/32x16', 'k=1/1/1']],
  ])('%s', async (_what, describe, parts) => {
    const path = await modelFile(describe);
    const error = await refused(build(path));
    expect(error.code).toBe('TF_PROFILE_MISSING');
    const suggestion = String(error.details?.suggestion);
    for (const part of parts) expect(suggestion).toContain(part);
    expect((await build(path, [suggestion])).outcome.bytes).toBeGreaterThan(1000);
    // Dimensions with names are set by them.
    const named = [...error.remedy.matchAll(/--dim ([^\s=]+)=([\d/]+)/g)].map(([, name, sizes]) => [
      name,
      sizes,
    ]);
    const [, printed] = /--profile '?([^\s']*[^\s'.])/.exec(error.remedy) ?? [];
    if (named.length === 0) expect(printed).toBe(suggestion);
    else {
      const { profiles } = await build(path, [], Object.fromEntries(named));
      expect(profiles).toEqual((await build(path, [suggestion])).profiles);
    }
  });

  test('so does the range of values that the refusal of a shape tensor has', async () => {
    for (const [rows, given] of [
      [4, []],
      ['n', ['x:1x16']],
    ] as const) {
      const path = await modelFile(topK(rows));
      const error = await refused(build(path, given));
      expect(error.code).toBe('TF_PROFILE_INVALID');
      const [values] = /k=[\dx]+\/[\dx]+\/[\dx]+/.exec(error.message) ?? [];
      expect((await build(path, [[...given, values].join(',')])).outcome.bytes).toBeGreaterThan(1000);
    }
  });

  test('a range of one input serves the others with its symbols', async () => {
    const { profiles } = await build(await modelFile(positions), ['input_ids:1x1/8x16/8x64']);
    expect(profiles[0]?.attention_mask).toEqual(profiles[0]?.input_ids);
  });

  test('an input without a shape is built as the library takes it, and that is reported', async () => {
    const path = await modelFile((graph) => {
      graph.input('x', 'float32', [2, 4]);
      graph.input('scale', 'float32', null);
      graph.node('Mul', { inputs: ['x', 'scale'], outputs: ['y'] });
      graph.output('y', 'float32', null);
    });
    const { outcome, warnings } = await build(path);
    expect(outcome.inputs.find(({ name }) => name === 'scale')?.shape).toEqual([]);
    expect(warnings.join()).toContain('scale');
  });
});
