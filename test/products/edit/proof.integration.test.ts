import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { TrtforgeError } from '../../../src/errors.js';
import { applySteps } from '../../../src/products/edit/edit.js';
import type { Editing } from '../../../src/products/edit/edited-model.js';
import { type Step, stepsOf } from '../../../src/products/edit/steps/steps.js';
import { floats, ids, modelFile } from '../../engines/runtime/onnxruntime/models.js';
import { writeVariant } from '../../models/kind.js';
import { kinds } from '../../models/kinds.js';
import { inProcessBackEnd } from '../../support/in-process-back-end.js';
import { mutations } from '../../support/mutations.js';
import { runs } from '../../support/runs.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-edit-proof-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let count = 0;
const fresh = () => join(folder, `${count++}.onnx`);
const fold = () => stepsOf({ fold: true }, ['fold']);
/** Steps on ONNX Runtime in this process. */
const edited = (model: string, steps: readonly Step[], output = fresh()) =>
  applySteps({ model, output, steps, threads: 1 }, { backEnds: [inProcessBackEnd(true)] });

type Promised = 'bits' | 'rounding';
const network = () =>
  modelFile((g) => {
    g.input('x', 'float32', ['batch', 4]);
    g.initializer(
      'w',
      floats(
        'float32',
        [4, 4],
        Array.from({ length: 16 }, (_, at) => Math.sin(at)),
      ),
    );
    g.node('MatMul', { inputs: ['x', 'w'], outputs: ['h'] });
    g.node('Relu', { inputs: ['h'], outputs: ['r'] });
    g.initializer('shape', ids([2], [0, 4]));
    g.node('Reshape', { inputs: ['r', 'shape'], outputs: ['s'] });
    g.node('Sigmoid', { inputs: ['s'], outputs: ['y'] });
    g.node('Neg', { inputs: ['s'], outputs: ['z'] });
    g.output('y', 'float32', ['batch', 4]);
    g.output('z', 'float32', ['batch', 4]);
  });

const planted = (promise: Promised, spoil: (editing: Editing) => void): Step => ({
  text: '--planted',
  apply: (editing) => {
    if (promise === 'rounding') editing.isRounded = true;
    spoil(editing);
    return 'spoiled';
  },
});
const weight = (change: (values: Float32Array) => void) => (editing: Editing) => {
  const tensor = editing.graph.initializer.find(({ name }) => name === 'w')!;
  const bytes = new Uint8Array(tensor.rawData);
  change(new Float32Array(bytes.buffer));
  tensor.rawData = bytes;
};
const node =
  (operator: string, change: (found: Editing['graph']['node'][number]) => void) => (editing: Editing) =>
    change(editing.graph.node.find(({ opType }) => opType === operator)!);

describe('a step that is wrong leaves no file', () => {
  it.each<[string, Promised, (editing: Editing) => void]>([
    ['the last bit of one weight', 'bits', weight((values) => new Uint32Array(values.buffer)[5]!++)],
    ['one weight by a thousandth', 'rounding', weight((values) => (values[5]! += 1e-3))],
    ['another activation', 'rounding', node('Relu', (relu) => (relu.opType = 'Elu'))],
    [
      'outputs that are swapped',
      'bits',
      (editing) => {
        const [y, z] = editing.graph.node.slice(-2);
        [y!.output, z!.output] = [z!.output, y!.output];
      },
    ],
    [
      'a batch that is stored',
      'bits',
      (editing) => {
        const shape = editing.graph.initializer.find(({ name }) => name === 'shape')!;
        shape.rawData = new Uint8Array(BigInt64Array.of(8n, 4n).buffer);
      },
    ],
    [
      'an axis that only a batch of 1 has',
      'rounding',
      node('Neg', (neg) => {
        neg.opType = 'ReduceMean';
        neg.attribute = [];
      }),
    ],
    ['an operator that does not run', 'rounding', node('Relu', (relu) => (relu.opType = 'Softplus2'))],
  ])('%s', async (_, promise, spoil) => {
    const output = fresh();
    const result = await edited(await network(), [planted(promise, spoil)], output);
    expect(result).toMatchObject({ output: null, proof: { outcome: 'fail' } });
    expect(result.proof.reasons).not.toEqual([]);
    expect(existsSync(output)).toBe(false);
  });

  it('and what stood there stays', async () => {
    const output = fresh();
    await edited(await network(), fold(), output);
    const before = readFileSync(output);
    await edited(
      await network(),
      [
        planted(
          'bits',
          weight((values) => (values[0] = 9)),
        ),
      ],
      output,
    );
    expect(readFileSync(output)).toEqual(before);
  });

  it('while the same step passes where it spoils nothing', async () => {
    const nothing = planted('bits', () => {});
    expect((await edited(await network(), [nothing])).proof).toMatchObject({
      outcome: 'pass',
      found: 'bits',
    });
  });

  it('a model that draws its numbers is not judged', async () => {
    const random = await modelFile((g) => {
      g.input('x', 'float32', [4]);
      g.node('RandomNormalLike', { inputs: ['x'], outputs: ['r'] });
      g.node('Add', { inputs: ['x', 'r'], outputs: ['y'] });
      g.output('y', 'float32', [4]);
    });
    const result = await edited(random, [
      planted(
        'bits',
        node('Add', (add) => (add.opType = 'Sub')),
      ),
    ]);
    expect(result).toMatchObject({ output: null, proof: { outcome: 'inconclusive' } });
  });

  it('an output without an original is listed, and the others decide', async () => {
    const step = planted('bits', (editing) => {
      editing.outputs.set('z', { source: null });
    });
    expect((await edited(await network(), [step])).proof).toMatchObject({ outcome: 'pass', unproven: ['z'] });
  });
});

const TURNS = 13;

/** Numbers that a map scatters: a last bit of the inputs moves the outputs by some hundred of theirs. Beside them a product, which nothing scatters. */
const chaotic = () =>
  modelFile((g) => {
    g.input('x', 'float32', ['batch', 64]);
    g.initializer('one', floats('float32', [], [1]));
    g.initializer('rate', floats('float32', [], [3.9]));
    g.initializer('small', floats('float32', [], [0.2]));
    g.initializer(
      'w',
      floats(
        'float32',
        [64],
        Array.from({ length: 64 }, (_, at) => (at % 16 === 0 ? 2 : Math.sin(at) / 8)),
      ),
    );
    g.initializer('zero', floats('float32', [], [0]));
    let z = g.node('Sigmoid', { inputs: ['x'], outputs: ['z'] });
    for (let turn = 0; turn < TURNS; turn++) {
      g.node('Sub', { name: `sub${turn}`, inputs: ['one', z], outputs: [`d${turn}`] });
      g.node('Mul', { name: `mul${turn}`, inputs: [z, `d${turn}`], outputs: [`p${turn}`] });
      z = g.node('Mul', { inputs: [`p${turn}`, 'rate'], outputs: [`z${turn}`] });
    }
    g.node('Mul', { inputs: ['x', 'w'], outputs: ['m'] });
    g.node('Mul', { inputs: [z, 'small'], outputs: ['scattered'] });
    g.node('Add', { inputs: ['scattered', 'm'], outputs: ['s'] });
    g.node('Add', { name: 'shift', inputs: ['s', 'zero'], outputs: ['y'] });
    g.output('y', 'float32', ['batch', 64]);
  });

describe('where a last bit of the inputs moves the original more than the limits', () => {
  const initializer = (name: string, change: (values: Float32Array) => void) => (editing: Editing) => {
    const tensor = editing.graph.initializer.find((each) => each.name === name)!;
    const values = new Float32Array(new Uint8Array(tensor.rawData).buffer);
    change(values);
    tensor.rawData = new Uint8Array(values.buffer);
  };

  it('the same arithmetic in another order passes', async () => {
    const reordered = planted('rounding', ({ graph }) => {
      for (const node of graph.node) {
        const [first, second] = node.input;
        if (node.opType === 'Mul' && second === 'rate') node.input = ['rate', first!];
      }
      // z * (1 - z) is z - z * z.
      for (let turn = 0; turn < TURNS; turn++) {
        const [sub, mul] = ['sub', 'mul'].map((stem) => graph.node.find(({ name }) => name === stem + turn)!);
        const [z] = mul!.input;
        [sub!.opType, mul!.opType] = ['Mul', 'Sub'];
        sub!.input = [z!, z!];
      }
    });
    const { proof } = await edited(await chaotic(), [reordered]);
    expect(proof).toMatchObject({ outcome: 'pass', found: 'rounding' });
    // It is that rule that decides: FP32's limits alone do not hold.
    expect(proof.outputs[0]!.largestError).toBeGreaterThan(1e-5);
  });

  it.each<[string, (editing: Editing) => void]>([
    [
      'a shift of all numbers, below what scatters the largest',
      initializer('zero', (values) => (values[0] = 2e-5)),
    ],
    [
      'a weight by a thousandth',
      initializer('w', (values) => values.set(values.map((value) => value * 1.001))),
    ],
    ['one weight by a tenth', initializer('w', (values) => (values[7]! *= 1.1))],
  ])('%s does not', async (_, spoil) => {
    const output = fresh();
    const { proof } = await edited(await chaotic(), [planted('rounding', spoil)], output);
    expect(proof.outcome).not.toBe('pass');
    expect(existsSync(output)).toBe(false);
  });
});

/** Numbers near 0 that are differences from 1, as the scores of a detector that finds nothing are: a few steps of FP32 at 1. */
const cancelling = () =>
  modelFile((g) => {
    const waves = (count: number, size: number) =>
      Array.from({ length: count }, (_, at) => size * Math.sin(at));
    g.input('x', 'float32', ['batch', 3, 16, 16]);
    g.initializer('w', floats('float32', [4, 3, 3, 3], waves(108, 0.3)));
    g.node('Conv', { inputs: ['x', 'w'], outputs: ['c'] });
    g.initializer('scale', floats('float32', [4], [0.7, 0.8, 0.9, 1.1]));
    g.initializer('shift', floats('float32', [4], [-6, -6.1, -6.2, -6.5]));
    g.initializer('mean', floats('float32', [4], waves(4, 0.1)));
    g.initializer('variance', floats('float32', [4], [1.1, 1.2, 1.3, 1.4]));
    g.node('BatchNormalization', {
      inputs: ['c', 'scale', 'shift', 'mean', 'variance'],
      outputs: ['n'],
    });
    g.node('Tanh', { inputs: ['n'], outputs: ['t'] });
    g.initializer('minus', floats('float32', [], [-1]));
    g.node('Sub', { inputs: ['minus', 't'], outputs: ['y'] });
    g.output('y', 'float32', ['batch', 4, 14, 14]);
  });

describe('where an output is what is left of a larger sum', () => {
  it('its last steps do not hinder merging', async () => {
    const { nodes, proof } = await edited(await cancelling(), fold());
    expect({ nodes, proof }).toMatchObject({
      nodes: { before: 4, after: 3 },
      proof: { outcome: 'pass', promised: 'rounding', found: 'rounding' },
    });
  });

  it.each<[string, (editing: Editing) => void]>([
    ['all weights by a thousandth', weight((values) => values.set(values.map((value) => value * 1.001)))],
    ['one weight by a tenth', weight((values) => (values[7]! *= 1.1))],
  ])('%s is found', async (_, spoil) => {
    const output = fresh();
    const { proof } = await edited(await cancelling(), [planted('rounding', spoil), ...fold()], output);
    expect(proof.outcome).not.toBe('pass');
    expect(existsSync(output)).toBe(false);
  });
});

describe('folding every kind of network', () => {
  it.each(kinds.map((kind) => [kind.name, kind] as const))('%s: nothing is lost', async (_, kind) => {
    const model = fresh();
    await writeVariant(model, kind, 1);
    const { proof, nodes } = await edited(model, fold());
    expect(proof).toMatchObject({ outcome: 'pass', reasons: [] });
    expect(nodes.after).toBeLessThanOrEqual(nodes.before);
  });
});

it('any mutation of a model is edited or rejected', async () => {
  const model = fresh();
  const original = readFileSync(await network());
  for (const bytes of mutations(original, runs(600))) {
    writeFileSync(model, bytes);
    try {
      const { proof, output } = await edited(model, [...fold(), ...stepsOf({ dead: true }, ['dead'])]);
      expect(output === null).toBe(proof.outcome !== 'pass');
      expect(proof.outcome).not.toBe('fail');
    } catch (error) {
      expect(error).toBeInstanceOf(TrtforgeError);
      expect((error as TrtforgeError).code).not.toBe('TF_INTERNAL');
    }
  }
});
