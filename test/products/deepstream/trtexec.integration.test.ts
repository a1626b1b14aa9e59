import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { readPassport } from '../../../src/engines/identity/passport.js';
import { type EventListener, ignoreEvents } from '../../../src/events.js';
import type { StreamsRequest } from '../../../src/products/deepstream/options.js';
import { streamsEffects } from '../../../src/products/deepstream/setup.js';
import { planStreams, streams } from '../../../src/products/deepstream/streams.js';
import { readStreamsLog } from '../../../src/products/deepstream/trtexec-form-log.js';
import { type FoundToolchain, surveyToolchains } from '../../../src/tensorrt/toolchain/find.js';
import { readTrtexecLog } from '../../../src/tensorrt/trtexec/log/log.js';
import { writePictureModel } from '../../fakes/deepstream.js';
import { twoGpus } from '../../fakes/gpus.js';
import { fakeTrtexec } from '../../fakes/trtexec.js';
import { sampleToolchain } from '../../support/sample-engine.js';

/** Fakes are no installations, so the search for TensorRT gives them; trtexec's fake needs no GPU, and who builds on one must see it. */
vi.mock('../../../src/tensorrt/toolchain/find.js', async (original) => ({
  ...(await original<typeof import('../../../src/tensorrt/toolchain/find.js')>()),
  surveyToolchains: vi.fn(),
}));
vi.mock('../../../src/addon/gpus.js', async (original) => ({
  ...(await original<typeof import('../../../src/addon/gpus.js')>()),
  visibleGpus: () => twoGpus,
}));

const folder = mkdtempSync(join(tmpdir(), 'trtforge-streams-trtexec-'));
afterAll(() => rmSync(folder, { recursive: true }));
let model: string;
beforeAll(async () => {
  model = await writePictureModel(folder);
});
const gpus = join(folder, 'gpus');
const environment = { ...process.env, XDG_CACHE_HOME: join(folder, 'cache') };

function toolchain(fault?: string): FoundToolchain {
  return {
    ...sampleToolchain,
    name: 'tensorrt-10.6',
    product: 'tensorrt',
    version: '10.6.0.26',
    libraries: { inference: '/nowhere/libnvinfer.so', parser: '/nowhere/libnvonnxparser.so', plugins: null },
    trtexec: fakeTrtexec(folder, {
      version: '10.6',
      gpuFile: gpus,
      ...(fault === undefined ? {} : { fault }),
    }),
    cudaMajor: null,
  };
}

/** The recorded run gives 532 batches a second, whatever the batch. */
const request = (fresh = false): StreamsRequest => ({
  model,
  names: {},
  input: {},
  limits: {
    fps: [500],
    firstMaxBatch: 4,
    maxBatchLimit: 8,
    minGainPercent: -5,
    timeLimitSeconds: null,
  },
  fresh,
  sensitivity: false,
});

function size(
  fault?: string,
  emit: EventListener = ignoreEvents,
  { device = 0, fresh = false, visible = '0' } = {},
) {
  const chosen = toolchain(fault);
  vi.mocked(surveyToolchains).mockResolvedValue({ toolchains: [chosen], damaged: [] });
  const plan = planStreams(request(fresh));
  const effects = streamsEffects(
    plan,
    {
      build: {
        model,
        target: 'tensorrt',
        toolchain: chosen,
        precision: 'as-is',
        store: false,
        remote: false,
      },
      builder: 'trtexec',
      meter: 'trtexec',
      mode: { warmUpMs: 500, durationMs: 3000, graph: true, spinWait: true },
      device,
    },
    {
      emit,
      signal: new AbortController().signal,
      environment: { ...environment, CUDA_VISIBLE_DEVICES: visible },
    },
  );
  return { plan, result: streams(plan, effects) };
}

describe('built and measured by trtexec', () => {
  test('a fault of the build is an error, and nothing that a later call reuses is left', async () => {
    const { plan, result } = size('no-plan');
    await expect(result).rejects.toMatchObject({ code: 'TF_BUILD_FAILED' });
    expect(readdirSync(plan.paths.engines).filter((name) => name.includes('.engine'))).toEqual([]);
    // The log of the failure is what one needs then.
    expect(readdirSync(plan.paths.engines).filter((name) => name.endsWith('.log'))).toHaveLength(1);
    rmSync(plan.paths.engines, { recursive: true });
  });

  test('the whole flow: engines with passports, trtexec’s own logs under the fixed names', async () => {
    const { plan, result } = size();
    const { stop, maxBatch, peakGpuStreams, engines, baseline, builder, meter } = await result;
    expect({ maxBatch, peakGpuStreams, builder, meter }).toEqual({
      maxBatch: 4,
      peakGpuStreams: 4,
      builder: 'trtexec',
      meter: 'trtexec',
    });
    expect(stop.reason).toBe('enough');
    expect(readPassport(plan.paths.engine(4)).built.builder).toBe('trtexec');
    const profile = readPassport(plan.paths.engine(4)).identity.document.recipe.profiles;
    expect(profile).toEqual([
      { images: { min: [1, 3, 64, 64], opt: [4, 3, 64, 64], max: [4, 3, 64, 64], values: false } },
    ]);
    for (const batch of [1, 4]) {
      expect(readStreamsLog(plan.paths.log(batch))).toMatchObject({
        writtenBy: 'trtexec',
        isComplete: true,
        firstDims: [batch],
      });
    }
    expect(baseline).toMatchObject({ qps: 532.026, writtenBy: 'trtexec', graph: true });
    expect(engines[0]?.peak?.backend).toMatch(/^trtexec 10\.6/);
    const built = readdirSync(plan.paths.engines);
    expect(built).toContain('timing.cache');
    const log = built.find((name) => /^net_dynamic_build_\d{8}_\d{6}\.log$/.test(name)) ?? '';
    expect(readTrtexecLog(join(plan.paths.engines, log)).build.saveEngine).toMatch(/engine\.plan$/);
    expect(built.filter((name) => name.startsWith('.'))).toEqual([]);
  });

  test('the second call finds everything', async () => {
    const said: string[] = [];
    const { result } = size(undefined, (event) => event.type === 'phase-start' && said.push(event.phase));
    expect((await result).engines.map(({ source, peak }) => [source, peak?.source])).toEqual([
      ['disk', 'disk'],
    ]);
    expect(said.filter((phase) => phase === 'engine' || phase === 'measure')).toEqual([]);
  });

  test('an engine that was cut short is built again', async () => {
    const path = planStreams(request()).paths.engine(4);
    writeFileSync(path, readFileSync(path).subarray(0, 1000));
    expect((await size().result).engines.map(({ source }) => source)).toEqual(['built']);
  });

  test('the GPU that measures is the one that builds', async () => {
    writeFileSync(gpus, '');
    await size(undefined, ignoreEvents, { device: 1, fresh: true, visible: '6,7' }).result;
    const runs = readFileSync(gpus, 'utf8').trim().split('\n');
    // Builds see their GPU alone, trtexec measures on the one of that number.
    expect([...new Set(runs)]).toEqual(['7 -', '6,7 1']);
  });
});
