import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildAddon } from '../../../scripts/build-native.mjs';
import type { BuildReport } from '../../../src/cli/commands/build.js';
import { attribute } from '../../../src/formats/onnx/builder.js';
import { tensorFrom } from '../../../src/formats/tensor/tensor.js';
import type { ForgeResult } from '../../../src/report/forge-result.js';
import { modelFile } from '../../engines/runtime/onnxruntime/models.js';
import { fakeEngine } from '../../fakes/tensorrt/engine.js';
import { fakeTrtexec } from '../../fakes/trtexec.js';
import { trtforge as runLine } from '../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-silent-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let environment: NodeJS.ProcessEnv = {};
let model: string;

/** The fake of TensorRT 11.1, its trtexec, and a model with two unlike running sums. */
beforeAll(async () => {
  await buildAddon({ say: () => {} });
  const engine = await fakeEngine('11');
  environment = engine.environment({
    TENSORRT_HOME: engine.install(join(folder, 'home')),
    TRTFORGE_TOOLCHAINS: join(folder, 'none'),
    TRTEXEC: fakeTrtexec(folder, { version: '11.1', says: '11.1.0.106' }),
    XDG_CACHE_HOME: join(folder, 'cache'),
    NO_COLOR: '1',
  });
  engine.bench.enter(environment);
  model = await modelFile((graph) => {
    graph.input('x', 'float32', ['n', 4]);
    graph.initializer('axis', tensorFrom('int64', [], BigInt64Array.of(1n)));
    const reverse = { reverse: attribute.int(1) };
    graph.node('CumSum', { inputs: ['x', 'axis'], outputs: ['forth'], name: '/forth' });
    graph.node('CumSum', { inputs: ['forth', 'axis'], outputs: ['y'], name: '/back', attributes: reverse });
    graph.output('y', 'float32', ['n', 4]);
  });
});

const words = () => [model, '--profile', 'x:1x4/8x4/64x4', '--builder', 'trtexec'];
const trtforge = (...args: readonly string[]) => runLine(args, environment);

describe('a model that this TensorRT is known to compute wrongly, and silently', () => {
  it('is built and reported: once, not each time that the engine is found', async () => {
    const built = (await trtforge('build', ...words(), '--json')).json<BuildReport>();
    expect(built).toMatchObject({ ok: true, source: 'built', issues: [{ id: 'cumsum-merged' }] });
    const found = (await trtforge('build', ...words(), '--json')).json<BuildReport>();
    expect(found).toMatchObject({ ok: true, source: 'local', issues: [] });
  });

  it('states how many nodes it applies to and what to do', async () => {
    const { out, exitCode } = await trtforge('build', ...words(), '--force-rebuild');
    expect(exitCode).toBe(0);
    expect(out).toMatch(/warning cumsum-merged/);
    expect(out).toMatch(/2 nodes: 2 CumSum/);
    expect(out).toMatch(/trtforge verify/);
  });

  it('is in the report of forge too', async () => {
    const place = ['--run-root', join(folder, 'run'), '--skip', 'verify,bench'];
    const forged = (await trtforge('forge', ...words(), ...place, '--json')).json<ForgeResult>();
    expect(forged.error).toBeNull();
    expect(forged.issues?.map(({ id }) => id)).toEqual(['cumsum-merged']);
  });
});
