import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { calibrationOf } from '../../../../src/engines/calibration/calibration.js';
import { onnxRuntimeCpu } from '../../../../src/engines/runtime/onnxruntime/back-ends.js';
import { lookAtMachine } from '../../../../src/forge/environment.js';
import { forge } from '../../../../src/forge/forge.js';
import type { ForgeOptions } from '../../../../src/forge/options.js';
import { GraphBuilder } from '../../../../src/formats/onnx/index.js';
import { writeNpz } from '../../../../src/formats/tensor/npz.js';
import type { Tensor } from '../../../../src/formats/tensor/tensor.js';
import { heal } from '../../../../src/products/study/heal.js';
import { type Fault, faultyEngines, in16Bits, spans } from '../../../fakes/faulty-engines.js';
import { twoGpus } from '../../../fakes/gpus.js';
import { floats, noise, written } from '../../../formats/precision/judge.js';
import { describeWith } from '../../../support/needs.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-heal-engine-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const WIDTH = 64;

/** Two products with pointwise steps between, and a step that is beyond FP16 where that is wanted. */
function network({ overflows = false } = {}): Promise<string> {
  const g = new GraphBuilder('network');
  g.input('x', 'float32', ['batch', WIDTH]);
  g.initializer('w1', noise([WIDTH, WIDTH], 0.1, 1));
  g.initializer('w2', noise([WIDTH, WIDTH], 0.1, 2));
  g.initializer('b', noise([WIDTH], 0.1, 3));
  g.node('MatMul', { name: 'first', inputs: ['x', 'w1'], outputs: ['a'] });
  g.node('Add', { name: 'bias', inputs: ['a', 'b'], outputs: ['p'] });
  g.node('Sigmoid', { name: 'gate', inputs: ['p'], outputs: ['s'] });
  g.node('Mul', { name: 'swish', inputs: ['p', 's'], outputs: ['c'] });
  g.node('MatMul', { name: 'second', inputs: ['c', 'w2'], outputs: [overflows ? 'd' : 'y'] });
  if (overflows) {
    g.initializer('far', floats([], [600]));
    g.node('Mul', { name: 'once', inputs: ['d', 'far'], outputs: ['e'] });
    g.node('Mul', { name: 'twice', inputs: ['e', 'far'], outputs: ['y'] });
  }
  g.output('y', 'float32', ['batch', WIDTH]);
  return written(g);
}

let runs = 0;
/** On a machine with an L4, whose engines compute what the original does but for a fault of the test. */
async function healing(fault: Fault, { model: own, ...options }: Partial<ForgeOptions> = {}) {
  const model = own ?? (await network());
  const back = faultyEngines(fault, () => model);
  return forge(
    {
      ...{ model, precision: 'fp16', target: 'tensorrt-rtx:sm_89', batch: '1/4/8', heal: 600_000 },
      ...{ store: join(folder, 'store'), runRoot: join(folder, `run-${runs++}`), skip: ['bench'] },
      ...options,
    },
    {
      machine: { ...lookAtMachine(), gpus: { ...twoGpus, gpus: [twoGpus.gpus[0]!] } },
      backEnds: [back, onnxRuntimeCpu],
      healer: heal,
    },
  );
}

describeWith('toolchain', 'an engine that fails although its typed model passes', () => {
  test('is healed by nodes in FP32, and what is built of them is judged anew', async () => {
    const result = await healing({ kernel: in16Bits('second') });
    expect(result).toMatchObject({
      ...{ exitCode: 0, verification: { outcome: 'pass' }, engineVerification: { outcome: 'pass', seed: 1 } },
      heal: {
        outcome: 'found',
        isSmallest: true,
        isUnseen: true,
        raised: [{ nodes: ['second'], to: 'fp32' }],
      },
    });
    expect(result.conversion?.kept.map(({ node }) => node)).toEqual(['second']);
    const [failed, healed] = result.heal!.prices;
    expect(failed!.engineBytes).toBeGreaterThan(0);
    expect(healed).toMatchObject({
      nodes: { higher: 1, all: 5 },
      engineBytes: statSync(result.engine!).size,
    });
    // The one that failed is gone.
    expect(existsSync(join(result.runRoot, 'engines', basename(result.engine!)))).toBe(false);
  });

  test('also where another output would break the fusion that fails: an engine keeps its outputs', async () => {
    const result = await healing({
      kernel: (each) => spans('bias', 'swish')(each) && each.outputs[0]?.dtype === 'float16',
    });
    expect(result).toMatchObject({ exitCode: 0, heal: { outcome: 'found', isSmallest: true } });
    expect(result.build!.passport.plan.outputs.map(({ name }) => name)).toEqual(['y']);
  });

  test('in FP32 without TF32', async () => {
    const withTf32: Fault = {
      passport: ({ identity }) => !identity.document.recipe.flags.includes('no-tf32'),
    };
    const result = await healing(withTf32, { precision: 'as-is' });
    expect(result).toMatchObject({ exitCode: 0, heal: { tf32: false, raised: [{ nodes: [] }] } });
    expect(result.build!.passport.identity.document.recipe.flags).toContain('no-tf32');
  });

  test('of codes', async () => {
    const path = join(folder, 'samples.npz');
    writeNpz(path, new Map<string, Tensor>([['x', noise([32, WIDTH], 1, 5)]]));
    const calibration = calibrationOf({ data: [path], part: 'calibration' });
    const result = await healing(
      { kernel: in16Bits('second') },
      { precision: 'int8', conversion: { calibration } },
    );
    expect(result).toMatchObject({
      ...{ exitCode: 0, engineVerification: { outcome: 'pass' } },
      heal: { outcome: 'found', isUnseen: true, raised: [{ nodes: ['second'], option: 'keep-nodes' }] },
    });
    const { nodes } = result.conversion!.quantization!;
    expect(nodes.flatMap(({ node, quantized }) => (quantized ? [node] : []))).toEqual(['first']);
  });

  test('also where its typed model had to be healed before', async () => {
    const model = await network({ overflows: true });
    const result = await healing({ kernel: in16Bits('first') }, { model });
    expect(result).toMatchObject({
      ...{ exitCode: 0, verification: { outcome: 'pass' }, engineVerification: { outcome: 'pass' } },
      heal: { outcome: 'found', isUnseen: true, raised: [{ nodes: ['twice'] }, { nodes: ['first'] }] },
    });
    expect(result.conversion?.kept.map(({ node }) => node).sort()).toEqual(['first', 'twice']);
  });

  test('not by an engine that passes in the search and fails once it is built', async () => {
    const inStore: Fault = { passport: ({ name }) => name !== 'candidate.engine' };
    const result = await healing({ ...inStore });
    expect(result).toMatchObject({
      exitCode: 1,
      verdict: { outcome: 'fail' },
      engineVerification: { outcome: 'fail' },
    });
  });

  test('not where every engine fails', async () => {
    const result = await healing({ passport: () => true });
    expect(result).toMatchObject({
      exitCode: 1,
      verdict: { outcome: 'fail' },
      heal: { outcome: 'none', raised: [] },
    });
    expect(existsSync(result.engine!)).toBe(true);
  });
});
