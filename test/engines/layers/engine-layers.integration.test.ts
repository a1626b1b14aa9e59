import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildAddon } from '../../../scripts/build-native.mjs';
import { sha256 } from '../../../src/base/files/digest.js';
import { diffEngines } from '../../../src/engines/layers/diff.js';
import { layersOf, layersOfEngine, layersOfFile } from '../../../src/engines/layers/engine-layers.js';
import { layersResultSchema } from '../../../src/engines/layers/result.js';
import { ignoreEvents } from '../../../src/events.js';
import { fakeEngine } from '../../fakes/tensorrt/engine.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-engine-layers-'));
beforeAll(() => buildAddon({ say: () => {} }));
afterAll(() => rmSync(folder, { recursive: true }));

function plan(): string {
  const bytes = Buffer.alloc(64);
  bytes.write('ftrt', 0, 'latin1');
  bytes.writeBigUInt64LE(64n, 16);
  bytes.set([10, 6, 0, 26], 24);
  const path = join(folder, 'model.engine');
  writeFileSync(path, bytes);
  return path;
}

describe('layers of an engine', () => {
  it('need a GPU, and without one the error states what helps', async () => {
    // CUDA shows no device to a process that is told to see none.
    const environment = { ...process.env, CUDA_VISIBLE_DEVICES: '' };
    await expect(layersOf(plan(), { emit: ignoreEvents, environment })).rejects.toMatchObject({
      code: 'TF_GPU_UNAVAILABLE',
      exitCode: 3,
      remedy: expect.stringContaining('trtforge engine layers ENGINE --json'),
    });
  });

  it('of a file that is not a plan are rejected before anything is loaded', async () => {
    const path = join(folder, 'text.engine');
    writeFileSync(path, 'no plan');
    await expect(layersOfEngine(path, { emit: ignoreEvents })).rejects.toMatchObject({
      code: 'TF_PLAN_INVALID',
    });
  });

  it('are not waited for after Ctrl-C', async () => {
    const signal = AbortSignal.abort();
    await expect(layersOfEngine(plan(), { emit: ignoreEvents, signal })).rejects.toMatchObject({
      code: 'TF_CANCELLED',
    });
  });
});

describe.each(['8', '10', '11'] as const)('layers of an engine that loads (fake %s)', (fake) => {
  const tensor = (name: string, mode: string) => ({ Name: name, IOMode: mode, DataType: 'Float' });
  const saidOf = (...types: readonly string[]) =>
    JSON.stringify({
      Layers: [
        {
          Name: 'a + b',
          LayerType: 'Conv',
          Inputs: [],
          Outputs: types.map((type) => ({ Name: 'y', Dimensions: [1, 64], 'Format/Datatype': type })),
          Metadata: '[ONNX Layer: a]\u001e[ONNX Layer: b]',
        },
      ],
      ...(fake === '11'
        ? { 'I/O Tensors': [tensor('x', 'Input'), tensor('y', 'Output')] }
        : { Bindings: ['x', 'y'] }),
    });
  const said = saidOf();
  const layersStated = async (layers: string, wishes: Record<string, string> = {}, name = 'net') => {
    const engine = await fakeEngine(fake);
    const path = engine.writePlan(join(folder, `${name}-${fake}.plan`), {
      kind: 'affine',
      memory: 4096,
      layers,
    });
    const toolchain = engine.bench.toolchain(fake);
    return layersOfEngine(path, { emit: ignoreEvents, toolchain, environment: engine.environment(wishes) });
  };

  it('come with what the loaded engine states of itself', async () => {
    const result = await layersStated(said);
    expect(layersResultSchema.parse(result)).toEqual(result);
    expect(result).toMatchObject({
      dialect: fake === '11' ? 'io-tensors' : 'bindings',
      layers: [{ name: 'a + b', onnxNodes: ['a', 'b'] }],
      bindings: [{ name: 'x' }, { name: 'y' }],
      loaded: { profiles: 1, deviceMemoryBytes: 4096, library: expect.stringMatching(/^tensorrt /) },
    });
    expect(result.planBytes).toBeGreaterThan(32);
  });

  it('are taken back for the plan they were exported from, and for no other', async () => {
    const result = await layersStated(said);
    const own = result.file;
    expect(result.planSha256).toBe(sha256(readFileSync(own)));
    const saved = join(folder, `saved-${fake}.json`);
    writeFileSync(saved, JSON.stringify({ ...result, ok: true, command: 'inspect', exitCode: 0 }));
    expect(layersOfFile(saved, own)).toEqual({ ...result, layersFrom: saved });
    const other = join(folder, `other-${fake}.plan`);
    const bytes = readFileSync(own);
    bytes[bytes.length - 2] = 0x20;
    writeFileSync(other, bytes);
    const refused = { code: 'TF_LAYERS_MISMATCH', message: expect.stringMatching(/with the SHA-256/) };
    expect(() => layersOfFile(saved, other)).toThrow(expect.objectContaining(refused));
    const { planSha256: _, ...earlier } = result;
    writeFileSync(saved, JSON.stringify(earlier));
    expect(layersOfFile(saved, other)).toMatchObject({ file: other, layersFrom: saved });
    writeFileSync(other, Buffer.concat([bytes, Buffer.alloc(8)]));
    expect(() => layersOfFile(saved, other)).toThrow(/this one has/);
  });

  it('of two engines are compared', async () => {
    const single = await layersStated(saidOf('Row major linear FP32'));
    const half = await layersStated(saidOf('Row major linear FP16'), {}, 'half');
    expect(diffEngines(single, half)).toMatchObject({ matched: 1, same: 0 });
    expect(diffEngines(single, half).changed[0]?.changes).toContainEqual({
      what: 'precision',
      a: 'float32',
      b: 'float16',
    });
    expect(diffEngines(single, single)).toMatchObject({ matched: 1, same: 1, changed: [] });
  });

  it('that make no sense are rejected by name', async () => {
    await expect(layersStated('none')).rejects.toMatchObject({
      code: 'TF_LAYERS_INVALID',
      message: expect.stringMatching(/inspector.*net-/),
    });
  });

  it('of an engine that does not load are the library’s refusal', async () => {
    await expect(layersStated(said, { FAKE_LOAD: 'fails' })).rejects.toMatchObject({
      code: 'TF_PLAN_LOAD_FAILED',
    });
  });
});
