import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildAddon } from '../../../../scripts/build-native.mjs';
import type { NativeEngineFacts } from '../../../../src/addon/native-engine.js';
import { fakeEngine } from '../../../fakes/tensorrt/engine.js';
import type { Fake } from '../../../fakes/tensorrt/library.js';

interface Loads {
  readonly how: readonly string[];
  readonly sizes: number;
  readonly facts: readonly NativeEngineFacts[];
}

const script = new URL('./fake-session.mjs', import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), 'trtforge-fake-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeAll(() => buildAddon({ say: () => {} }));

/** Checks run in one process of their own, since the fake GPU must be known to its loader from the start. */
async function run(
  fake: Fake,
  names: readonly string[],
  wishes: Record<string, string> = {},
): Promise<ReadonlyMap<string, unknown>> {
  const engine = await fakeEngine(fake);
  engine.writePlan(join(folder, 'affine.engine'), { kind: 'affine', inner: 4 });
  engine.writePlan(join(folder, 'state.engine'), { kind: 'state', inner: 4, rows: 2 });
  engine.writePlan(join(folder, 'large.engine'), { kind: 'affine', inner: 4, memory: 1 << 20 });
  engine.writePlan(join(folder, 'nonzero.engine'), { kind: 'nonzero', rows: 4 });
  const toolchain = JSON.stringify(engine.bench.toolchain(fake));
  const { stdout, stderr } = spawnSync(
    process.execPath,
    ['--expose-gc', script, toolchain, folder, ...names],
    {
      env: engine.environment(wishes),
      encoding: 'utf8',
    },
  );
  const lines = stdout.split('\n').filter((line) => line.startsWith('{'));
  if (lines.length < names.length) throw new Error(`The checks ended early:\n${stdout}\n${stderr}`);
  return new Map(
    lines.map((line) => {
      const { check, ...facts } = JSON.parse(line) as { readonly check: string };
      return [check, facts] as const;
    }),
  );
}

describe.each(['8', '10', '11', 'rtx1'] as const)(
  'the compiled addon over a fake of generation %s',
  (fake) => {
    it('computes, blocking or not, prepared or not, with the state on the device', async () => {
      const found = await run(fake, ['affine', 'prepared', 'state', 'rounds']);
      expect(found.get('affine')).toMatchObject({
        answers: [2, 2, 9, 2].map((rows) => [
          [rows, 4],
          [1, 3, 5, 7],
        ]),
        sync: [11, 13, 15, 17, 19, 21, 23, 25],
        misfit: 'TF_PROFILE_MISFIT',
        profiles: [{ min: [1, 4], opt: [8, 4], max: [64, 4] }],
      });
      expect(found.get('prepared')).toEqual({
        graph: true,
        refusal: null,
        sync: Array(12).fill(9),
        async: Array(12).fill(11),
      });
      expect(found.get('state')).toMatchObject({ wrong: [], steps: 300, kept: 897, after: 0 });
      expect((found.get('rounds') as { grownMiB: number }).grownMiB).toBeLessThan(16);
    });

    it('takes plans from mapped files, several at once, and not one that is cut meanwhile', async () => {
      const FAKE_CALLS = join(folder, `loads-${fake}`);
      const found = await run(fake, ['loads', 'cut'], { FAKE_CALLS });
      const { how, facts, sizes } = found.get('loads') as Loads;
      expect(how).toEqual([...Array(3).fill('3 loads at once'), ...Array(3).fill('reads a mapped file')]);
      expect(sizes).toBe(3);
      for (const { loadMs, readMs, deserializeMs, hostMemory } of facts) {
        expect(readMs).toBeGreaterThan(0);
        expect(loadMs).toBeGreaterThan(readMs + deserializeMs);
        // The kernel's counts are some pages late, and this plan has fewer.
        expect(hostMemory.peakBytes).toBeGreaterThanOrEqual(0);
      }
      const error = `${join(folder, 'cut.engine')} was written to while it was read.`;
      expect(found.get('cut')).toEqual({ error });
    });
  },
);

describe('the compiled addon over a fake of generation 10', () => {
  it('reads outputs of data-dependent shape, and runs three contexts at once', async () => {
    const found = await run('10', ['nonzero', 'contexts']);
    expect(found.get('nonzero')).toEqual({
      shapes: [[2], [0], [4]],
      places: [[1, 3], [], [0, 1, 2, 3]],
      refusals: [],
    });
    expect(found.get('contexts')).toEqual({ first: Array.from({ length: 30 }, (_, at) => 2 * at + 1) });
  });
});

describe.each(['8', '10', '11', 'rtx1'] as const)(
  'an activation pool over a fake of generation %s',
  (fake) => {
    it('serves engines that run in turn with the memory of the largest, and is freed with the last', async () => {
      const found = (await run(fake, ['pool'], { FAKE_COMPUTE_US: '3000' })).get('pool') as {
        readonly bytes: readonly [number, number];
        readonly larger: number;
      };
      expect(found).toMatchObject({
        answers: [3, 2, 3, 5, 6, 5, 7, 12, 7],
        busy: ['TF_SESSION_BUSY', 'TF_SESSION_BUSY', 'TF_SESSION_BUSY'],
        after: 'nothing was refused',
        late: 'TF_SESSION_INPUT',
        graph: true,
        lost: 0,
      });
      expect(found.bytes[1]).toBe(2 * found.bytes[0]);
      expect(found.larger).toBeGreaterThan(found.bytes[0]);
    });
  },
);

describe('sessions on two GPUs of one process', () => {
  const two = { FAKE_GPUS: '2', FAKE_GPU_BYTES: '17179869184,8589934592', UV_THREADPOOL_SIZE: '1' };

  it.each(['8', '10', '11'] as const)('over a fake of generation %s', async (fake) => {
    const found = (await run(fake, ['gpus'], two)).get('gpus') as { readonly backends: readonly string[] };
    expect(found).toMatchObject({
      foreign: 'The state belongs to another session.',
      wrong: [],
      kept: [40, 80],
      absent:
        'Running an engine needs an NVIDIA GPU, and there is no GPU 2 here: 0 is NVIDIA Fake, 1 is NVIDIA Fake 1.',
      outputs: [1, 3],
      totals: [2 ** 34, 2 ** 33],
      alone: 'nothing was refused',
      left: [0, 0],
    });
    expect(found.backends.map((backend) => / \((.*)\)$/.exec(backend)?.[1])).toEqual([
      'NVIDIA Fake',
      'NVIDIA Fake 1',
    ]);
  });
});
