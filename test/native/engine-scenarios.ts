import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { type NetworkPlan, planBytes } from '../fakes/tensorrt/engine.js';
import { type Fake, FakeBench, sanitizerLibrary } from '../fakes/tensorrt/library.js';

/** The generations whose engines run; tensorrt-rtx runs as 10 does. */
export const generations = ['8', '10', '11'] as const satisfies readonly Fake[];

/** Elements of a row of the plan `large`. */
export const INNER = 40_009;

const player = fileURLToPath(new URL('./scenarios/play.mjs', import.meta.url));
const wrapper = fileURLToPath(new URL('../../dist/addon/addon.js', import.meta.url));

const plans: Readonly<Record<string, NetworkPlan>> = {
  affine: { kind: 'affine' },
  fixed: { kind: 'affine', rows: 2 },
  described: {
    kind: 'affine',
    memory: 8192,
    auxStreams: 2,
    profiles: [
      [1, 4, 8],
      [33, 40, 64],
    ],
  },
  state: { kind: 'state' },
  nonzero: { kind: 'nonzero' },
  shape: { kind: 'shape' },
  large: { kind: 'affine', inner: INNER },
  hostcode: { kind: 'affine', hostCode: true },
  streaming: { kind: 'affine', streamable: 4096 },
  profiles: {
    kind: 'affine',
    profiles: [
      [1, 4, 8],
      [33, 40, 64],
    ],
  },
  ...Object.fromEntries(
    Array.from({ length: 12 }, (_, dtype) => [`copy${dtype}`, { kind: 'copy', dtype, inner: 5 } as const]),
  ),
};

interface Played<T> {
  readonly result: T;
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** One step of a script: a scenario of `scenarios/`, its arguments, and what the fakes are requested while it plays. */
export type Step = readonly [
  name: string,
  args: readonly (string | number)[],
  environment: Record<string, string | undefined>,
];

/** Engines of the addon over the fakes of three generations, under AddressSanitizer where it is installed; a process for each scenario or script. */
export class EngineScenarios {
  readonly #folder: string;
  readonly #bench: FakeBench;

  private constructor(folder: string, bench: FakeBench) {
    this.#folder = folder;
    this.#bench = bench;
  }

  static async prepare(): Promise<EngineScenarios> {
    const folder = mkdtempSync(join(tmpdir(), 'trtforge-runs-'));
    const bench = await FakeBench.sanitized(folder);
    for (const fake of generations) {
      mkdirSync(join(folder, `plans-${fake}`));
      for (const [name, network] of Object.entries(plans))
        writeFileSync(join(folder, `plans-${fake}`, `${name}.plan`), planBytes(fake, network));
      writeFileSync(join(folder, `plans-${fake}`, 'text.plan'), 'not a plan, whatever its name says\n');
      const whole = planBytes(fake, { kind: 'affine' });
      for (let bytes = 0; bytes < 34; bytes++)
        writeFileSync(join(folder, `plans-${fake}`, `cut${bytes}.plan`), whole.subarray(0, bytes));
    }
    return new EngineScenarios(folder, bench);
  }

  path(name: string): string {
    return join(this.#folder, name);
  }

  play<T>(
    fake: Fake,
    name: string,
    args: readonly (string | number)[] = [],
    environment: Record<string, string | undefined> = {},
  ): Played<T> {
    const sanitizer = sanitizerLibrary();
    const bench = this.#bench;
    const { addon } = bench;
    const words = [addon, bench.library(fake), this.path(`plans-${fake}`), name, ...args.map(String)];
    const done = spawnSync(process.execPath, ['--expose-gc', player, wrapper, ...words], {
      encoding: 'utf8',
      timeout: 240_000,
      env: {
        ...bench.environment(environment),
        ASAN_OPTIONS: 'detect_leaks=0:abort_on_error=1:alloc_dealloc_mismatch=1:quarantine_size_mb=16',
        ...(sanitizer === undefined ? {} : { LD_PRELOAD: sanitizer }),
      },
    });
    expect(done.stderr).not.toContain('AddressSanitizer');
    const { result } = (done.stdout === '' ? {} : JSON.parse(done.stdout)) as { result: T };
    return { result, status: done.status, signal: done.signal };
  }

  /** What one process finds in several scenarios, by their names. */
  playAll(
    fake: Fake,
    script: readonly Step[],
    environment: Record<string, string | undefined> = {},
  ): Record<string, unknown> {
    return this.play<Record<string, unknown>>(fake, JSON.stringify(script), [], environment).result;
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** An error as scenarios tell it. */
export const refused = (code: string, message: string) => ({
  code,
  message: expect.stringContaining(message) as string,
});
