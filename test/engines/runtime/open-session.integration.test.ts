import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { runFile } from '../../../src/engines/run/run-file.js';
import { backEnds, chooseBackEnd, openSession } from '../../../src/engines/runtime/open-session.js';
import type { Binding } from '../../../src/engines/runtime/session.js';
import { float32Values, tensorFrom } from '../../../src/formats/tensor/tensor.js';
import { verifyModel } from '../../../src/quality/verify/verify.js';
import { fakeBackEnd } from '../../fakes/back-end.js';
import { modelFile } from './onnxruntime/models.js';

const folder = mkdtempSync(join(tmpdir(), 'open-session-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string) => join(folder, name);
const model = await modelFile((graph) => {
  graph.input('x', 'float32', [2]);
  graph.node('Relu', { inputs: ['x'], outputs: ['y'] });
  graph.output('y', 'float32', [2]);
});
writeFileSync(at('named.engine'), 'not a plan');

const binding = (name: string): Binding => ({ name, dtype: 'float32', shape: [2] });
/** Relu, with an error of the test's choosing. */
const relu = (error: number) =>
  fakeBackEnd({
    id: 'fake-relu',
    provider: 'fake',
    honours: new Set(['provider', 'threads']),
    inputs: [binding('x')],
    outputs: [binding('y')],
    warnings: ['one node ran elsewhere'],
    run: (inputs) => {
      const values = float32Values(inputs.get('x')!).map((value) => Math.max(0, value) + error);
      return new Map([['y', tensorFrom('float32', [2], Float32Array.from(values))]]);
    },
  });

describe('the back end for a file', () => {
  it.each([
    ['a model', model, {}, 'onnxruntime-cpu'],
    ['a model with a provider', model, { provider: 'cuda', device: 1 }, 'onnxruntime-cuda'],
    ['a model with TensorRT', model, { provider: 'tensorrt', allowFallback: true }, 'onnxruntime-tensorrt'],
    ['a file with the name of an engine', at('named.engine'), { device: 1 }, 'tensorrt'],
  ])('%s', (_, path, options, id) => {
    expect(chooseBackEnd(path, options).id).toBe(id);
  });

  it('has an id of its own, and what it honours is an option', () => {
    expect(new Set(backEnds.map(({ id }) => id)).size).toBe(backEnds.length);
  });
});

describe('an option that the back end does not honour', () => {
  const onModels = {
    '--device': { device: 0 },
    '--allow-fallback': { allowFallback: true },
    '--profile': { profile: 0 },
    '--cuda-graph': { cudaGraph: 'never' },
    '--weight-budget': { weightBudget: 0 },
    '--allow-host-code': { allowHostCode: true },
    '--plugin': { plugins: ['p.so'] },
    '--toolchain': { toolchain: 'tensorrt' },
  } as const;
  const onEngines = {
    '--threads': { threads: 1 },
    '--provider': { provider: 'cpu' },
    '--provider-option': { providerOptions: { use_tf32: '1' } },
    '--onnxruntime': { onnxRuntime: '/opt/onnxruntime' },
  } as const;
  it.each([
    ...Object.entries(onModels).map(([option, options]) => ({ path: model, option, options })),
    ...Object.entries(onEngines).map(([option, options]) => ({ path: at('named.engine'), option, options })),
  ])('$option is rejected by name, before anything is loaded', async ({ path, option, options }) => {
    await expect(openSession(path, options)).rejects.toMatchObject({
      code: 'TF_USAGE',
      details: { option },
      remedy: expect.stringContaining(option),
    });
  });

  it('is not set by undefined, false or an empty list', () => {
    const unset = { device: undefined, allowHostCode: false, plugins: [], providerOptions: {} };
    expect(chooseBackEnd(model, unset).id).toBe('onnxruntime-cpu');
  });

  it('may be a provider that there is not', async () => {
    await expect(openSession(model, { provider: 'npu' })).rejects.toMatchObject({
      code: 'TF_USAGE',
      details: { option: '--provider', known: ['cpu', 'cuda', 'tensorrt'] },
    });
  });
});

describe('a back end that is added to the others', () => {
  it('runs a model, and what it warns of is in the result', async () => {
    const fake = relu(0);
    const result = await runFile(
      { file: model, sources: [{ kind: 'random' }], provider: 'fake', iterations: 3 },
      { backEnds: [...backEnds, fake] },
    );
    expect(result).toMatchObject({
      kind: 'model',
      backend: 'Fake 1.0',
      cudaGraph: null,
      profile: null,
      times: { iterations: 3 },
      warnings: ['one node ran elsewhere'],
    });
    expect(fake.opened).toMatchObject([{ path: model, options: { provider: 'fake' } }]);
    expect(fake.sessions()).toBe(0);
  });

  it('is verified like the others, and closed', async () => {
    const fake = relu(0.5);
    const only = { backEnds: [fake] };
    const request = { reference: model, candidate: model, samples: 1 };
    expect(await verifyModel(request, only)).toMatchObject({ outcome: 'pass', candidateBackend: 'Fake 1.0' });
    await expect(verifyModel({ ...request, device: 0 }, only)).rejects.toMatchObject({
      details: { option: '--device' },
    });
    expect([fake.opened.length, fake.sessions()]).toEqual([2, 0]);
  });
});
