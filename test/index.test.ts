import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import {
  buildOrLoad,
  compareModels,
  convertModel,
  forge,
  inspectModel,
  openSession,
  runFile,
  tensor,
  verifyModel,
} from '../src/index.js';
import { dynamicModel, staticModel } from './native/tiny-models.js';
import { codeOf } from './support/refusal.js';
import { trtforge } from './support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-index-'));
afterAll(() => rmSync(folder, { recursive: true }));

test.each([
  ['forge', forge],
  ['buildOrLoad', buildOrLoad],
])(
  '%s rejects an option that does not exist before it begins, and names the nearest',
  async (_name, call) => {
    const misspelt = { model: 'nothing-here.onnx', presicion: 'fp16' };
    await expect(call(misspelt)).rejects.toMatchObject({
      code: 'TF_USAGE',
      message: expect.stringContaining('precision'),
    });
    await expect(call({ model: 'nothing-here.onnx' })).rejects.toMatchObject({ code: 'TF_FILE_NOT_FOUND' });
  },
);

const model = 'nothing-here.onnx';

test.each<[string, (options: never) => Promise<unknown>, unknown]>([
  ['a number for a path', buildOrLoad, { model: 5 }],
  ['a text for a list', buildOrLoad, { model, profiles: 'x:1x3' }],
  ['a text for a number', forge, { model, device: '0' }],
  ['a text for a switch', buildOrLoad, { model, weaklyTyped: 'no' }],
  ['nothing', verifyModel, {}],
  ['no options', verifyModel, undefined],
  ['an option that does not exist', verifyModel, { candidate: model, reference: model, sample: 3 }],
  ['a plain object for a Map', verifyModel, { candidate: model, reference: model, shapes: { x: [1] } }],
  ['no sources', runFile, { file: model }],
  ['a path that is none', (options) => inspectModel(options), 5],
  ['a text for an expression', (options) => inspectModel(model, options), { nodes: '.' }],
  ['a device that is a text', (options) => openSession(model, options), { device: '0' }],
  ['no precision', (options) => convertModel(model, 'out.onnx', options), {}],
])('%s is TF_USAGE', async (_what, call, passed) => {
  await expect(call(passed as never)).rejects.toMatchObject({ code: 'TF_USAGE' });
});

test.each([32, '32', '1/32/32', { min: 1, opt: 32, max: 32 }])('a batch may be %j', async (batch) => {
  await expect(buildOrLoad({ model, batch })).rejects.toMatchObject({ code: 'TF_FILE_NOT_FOUND' });
});

test('inspectModel and compareModels return what the command line prints as JSON', async () => {
  const [a, b] = [dynamicModel(folder), staticModel(folder)];
  const options = { shapes: new Map([['x', [8, 64]]]), nodes: /./, weights: /./, checkWeights: true };
  const facts = await inspectModel(a, options);
  expect(facts.cost?.flops).toBe(2 * 8 * 64 * 32 + 8 * 32);
  expect([facts.nodeList?.length, facts.weightList?.length]).toEqual([2, 1]);
  const line = ['--shapes', 'x:8x64', '--nodes', '.', '--weights', '.', '--check-weights', '--json'];
  expect((await trtforge(['inspect', a, ...line])).json()).toMatchObject({ ...facts });

  const comparison = await compareModels({ a, b });
  expect(comparison.outcome).toBe('fail');
  expect((await trtforge(['compare', 'models', a, b, '--json'])).json()).toMatchObject({ ...comparison });
});

test('a tensor is made of a typed array, and what a session returns has its data', () => {
  const made = tensor(Float32Array.of(1, 2, 3, 4, 5, 6), [2, 3]);
  expect([made.dtype, made.shape, made.data]).toEqual(['float32', [2, 3], Float32Array.of(1, 2, 3, 4, 5, 6)]);
  const { dtype, shape, bytes } = tensor(BigInt64Array.of(7n), [1]);
  expect(tensor({ dtype, shape, bytes }).data).toEqual(BigInt64Array.of(7n));
  expect(tensor(Uint16Array.of(0x3c00), [1], 'float16').dtype).toBe('float16');
  expect(tensor({ dtype: 'int4', shape: [2], bytes: Uint8Array.of(0x21) }).data).toBe(null);
  for (const values of [Float32Array.of(1), [1, 2] as never])
    expect(codeOf(() => tensor(values, [2]))).toBe('TF_USAGE');
});
