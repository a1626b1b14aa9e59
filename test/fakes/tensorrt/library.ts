import { execFile, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, constants } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { readTables, slotsHeader } from '../../../native/abi/slots-header.mjs';
import { buildAddon } from '../../../scripts/build-native.mjs';
import type { Addon, NativeSetting } from '../../../src/addon/addon.js';
import type { NativeRuntime } from '../../../src/addon/native-engine.js';
import type { NativeEvent } from '../../../src/addon/native-job.js';
import { LeaseFolder } from '../../../src/engines/store/claims/lease.js';
import type { Toolchain } from '../../../src/tensorrt/toolchain/toolchain.js';

const build = fileURLToPath(new URL('../../../build/', import.meta.url));
const sources = fileURLToPath(new URL('./', import.meta.url));
const driver = fileURLToPath(new URL('./drive.mjs', import.meta.url));
/** Of <dlfcn.h>: the library outlives its handle. */
const RTLD_NODELETE = 0x1000;
const compiler = process.env.CXX ?? 'g++';
const compiling = promisify(execFile);

/** The generations that fakes exist for; 10.3.0 lacks what 10.x got later. */
export const fakes = {
  '8': { number: 0, code: 8601, version: '8.6.1' },
  '10': { number: 1, code: 100300, version: '10.3.0' },
  '11': { number: 2, code: 110100, version: '11.1.0' },
  rtx1: { number: 3, code: 10701, version: '1.7.1' },
} as const;
export type Fake = keyof typeof fakes;

const driverNames = ['libcuda.so.1', 'libnvidia-ml.so.1'];

type BuildRequest = Parameters<Addon['build']>[0];

/** Opens a plan with nothing that needs to be said otherwise. */
export const openRequest = (
  inferenceLibrary: string,
  planPath: string,
): Parameters<NativeRuntime['openEngine']>[0] => ({
  inferenceLibrary,
  pluginLibrary: null,
  pluginPaths: [],
  planPath,
  label: basename(planPath),
  device: 0,
  allowHostCode: false,
  weightBudget: null,
  verbose: false,
});

/** The compiler's AddressSanitizer runtime, which must be loaded before Node; undefined where it is not installed. */
export function sanitizerLibrary(): string | undefined {
  const asked = spawnSync(compiler, ['-print-file-name=libasan.so'], { encoding: 'utf8' });
  const path = asked.stdout?.trim();
  return path?.startsWith('/') && existsSync(path) ? path : undefined;
}

/** One process at a time does the work of a name; test files that need the same thing wait for one compilation. */
export async function alone<T>(name: string, work: () => Promise<T>): Promise<T> {
  const leases = new LeaseFolder(join(build, 'fake-leases'));
  let attempt = leases.tryAcquire(name);
  for (; attempt.lease === null; attempt = leases.tryAcquire(name)) await sleep(200);
  try {
    return await work();
  } finally {
    attempt.lease.release();
  }
}

/** The packages of npm with the addon, in a folder. */
export const packNative = (folder: string): Promise<unknown> =>
  alone('pack', () =>
    compiling(process.execPath, [
      fileURLToPath(new URL('../../../scripts/pack-native.mjs', import.meta.url)),
      folder,
    ]),
  );

/** What each library is compiled from, and its arguments. */
const libraries: readonly (readonly [output: string, source: string, ...args: string[]])[] = [
  ...Object.entries(fakes).flatMap(([name, { number, code }]) => {
    const defines = [`-DFAKE_GENERATION=${number}`, `-DFAKE_VERSION=${code}`];
    return [
      [`${name}/inference.so`, 'inference.cpp', ...defines] as const,
      [`${name}/parser.so`, 'parser.cpp', ...defines] as const,
    ];
  }),
  ['nvtx/records.so', 'nvtx.cpp'],
  ['nvtx/refuses.so', 'nvtx.cpp', '-DFAKE_REFUSES'],
  // With its name inside, a library that a process loaded by path is the one that the addon asks for.
  ...driverNames.map(
    (name) =>
      [`cuda/${name}`, name.includes('cuda') ? 'cuda.cpp' : 'nvml.cpp', `-Wl,-soname,${name}`] as const,
  ),
];

/** Compiles the fakes of every generation into a folder, unless that was done with these sources and flags, whichever process did it. */
function compileFakes(
  folder: string,
  flags: readonly string[],
  made = libraries,
  by = compiler,
): Promise<void> {
  const slots = slotsHeader(readTables());
  const digest = createHash('sha256').update(JSON.stringify([flags, made, by, slots]));
  for (const file of readdirSync(sources).sort())
    if (/\.[ch]pp$/.test(file)) digest.update(readFileSync(join(sources, file)));
  const stamp = digest.digest('hex');
  const stampFile = join(folder, 'digest');
  return alone('fakes', async () => {
    if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) return;
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'slots.h'), slots);
    const waiting = [...made];
    const worker = async () => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        const [output, source, ...args] = next;
        const path = join(folder, output);
        mkdirSync(dirname(path), { recursive: true });
        const own = ['-std=c++17', '-fPIC', '-shared', '-Wall', '-Wextra', ...flags, ...args, `-I${folder}`];
        await compiling(by, [...own, join(sources, source), '-o', `${path}.${process.pid}`]);
        // Another process may be running the one that is there.
        renameSync(`${path}.${process.pid}`, path);
      }
    };
    await Promise.all(Array.from({ length: availableParallelism() }, worker));
    writeFileSync(stampFile, stamp);
  });
}

export interface Answer<T> {
  readonly events: readonly NativeEvent[];
  readonly result?: T;
  readonly error?: {
    readonly code: string;
    readonly message: string;
    readonly details?: Record<string, unknown>;
  };
  /** What the fakes were asked, in order. */
  readonly calls: readonly string[];
  readonly signal: NodeJS.Signals | null;
  readonly stderr: string;
}

/** Fake libraries, compiled once for all tests, and what runs over them; what they write goes into a test's own folder, `work`. */
export class FakeBench {
  private constructor(
    private readonly folder: string,
    private readonly work: string | undefined,
    private readonly sanitizer?: string,
  ) {}

  /** For tests that bring the addon themselves. */
  static async plain(): Promise<FakeBench> {
    const folder = join(build, 'fake');
    await compileFakes(folder, ['-O1']);
    return new FakeBench(folder, undefined);
  }

  /** Those of some generations for Arm, by a compiler for it. */
  static async forArm(by: string, ...generations: readonly Fake[]): Promise<FakeBench> {
    const folder = join(build, 'fake-arm64');
    const made = libraries.filter(([output]) => ['cuda', ...generations].includes(dirname(output)));
    await compileFakes(folder, ['-O1'], made, by);
    return new FakeBench(folder, undefined);
  }

  /** Fakes and addon with AddressSanitizer, where there is one. */
  static async sanitized(work: string): Promise<FakeBench> {
    const folder = join(build, 'fake-sanitized');
    const sanitizer = sanitizerLibrary();
    const flags =
      sanitizer === undefined ? ['-O1'] : ['-O1', '-g', '-fsanitize=address', '-fno-omit-frame-pointer'];
    await compileFakes(folder, flags);
    await alone('addon', () =>
      buildAddon({ output: join(folder, 'trtforge.node'), flags: [...flags], say: () => {} }),
    );
    return new FakeBench(folder, work, sanitizer);
  }

  /** The addon as compiled. */
  get addon(): string {
    return join(this.folder, 'trtforge.node');
  }

  /** The folder of the fakes for libcuda and NVML. */
  get drivers(): string {
    return join(this.folder, 'cuda');
  }

  /** A profiler's library for NVTX_INJECTION64_PATH: one that records ranges in the file NVTX_RECORD, or one that does not start. */
  profiler = (which: 'records' | 'refuses'): string => join(this.folder, 'nvtx', `${which}.so`);

  library = (fake: Fake): string => join(this.folder, fake, 'inference.so');

  /** A fake as an installation; the environment its processes need says what it should do. */
  toolchain = (fake: Fake): Toolchain => ({
    product: fake === 'rtx1' ? 'tensorrt-rtx' : 'tensorrt',
    version: fakes[fake].version,
    libraries: {
      inference: this.library(fake),
      parser: join(this.folder, fake, 'parser.so'),
      plugins: null,
    },
    trtexec: null,
    foundBy: 'test',
  });

  environment = (environment: Record<string, string | undefined> = {}): NodeJS.ProcessEnv => ({
    PATH: process.env.PATH,
    FAKE_CALLS: this.work && join(this.work, 'calls'),
    LD_LIBRARY_PATH: this.drivers,
    ...environment,
  });

  /** Makes the fakes the driver of this process too, for good; what they are to do is read from `environment`, once as CUDA does. */
  enter(environment: NodeJS.ProcessEnv): void {
    Object.assign(process.env, environment);
    for (const name of driverNames)
      try {
        process.dlopen({ exports: {} }, join(this.drivers, name), constants.dlopen.RTLD_NOW | RTLD_NODELETE);
      } catch (error) {
        // It is no addon of Node, and stays loaded all the same.
        if (!String(error).includes('did not self-register')) throw error;
      }
  }

  /** Calls the addon in a process of its own. */
  call<T>(
    call: 'build' | 'probe' | 'gpus' | 'gpuState',
    request: unknown,
    environment: Record<string, string> = {},
    cancelAfterMs?: number,
  ): Answer<T> {
    const callsFile = this.path('calls');
    rmSync(callsFile, { force: true });
    const done = spawnSync(
      process.execPath,
      [
        driver,
        this.addon,
        call,
        JSON.stringify(request),
        ...(cancelAfterMs === undefined ? [] : [String(cancelAfterMs)]),
      ],
      {
        encoding: 'utf8',
        env: {
          ...this.environment(),
          // Node itself never frees all it holds, so leaks are found by counting the fakes' objects instead.
          ASAN_OPTIONS: 'detect_leaks=0:abort_on_error=1:alloc_dealloc_mismatch=1',
          ...(this.sanitizer === undefined ? {} : { LD_PRELOAD: this.sanitizer }),
          ...environment,
        },
      },
    );
    const line = done.stdout
      .trim()
      .split('\n')
      .findLast((text) => text.startsWith('{'));
    return {
      ...(line === undefined ? { events: [] } : (JSON.parse(line) as { events: NativeEvent[] })),
      calls: existsSync(callsFile) ? readFileSync(callsFile, 'utf8').trim().split('\n') : [],
      signal: done.signal,
      stderr: done.stderr,
    };
  }

  buildRequest(fake: Fake, more: Partial<BuildRequest> = {}): BuildRequest {
    return {
      inferenceLibrary: this.library(fake),
      parserLibrary: join(this.folder, fake, 'parser.so'),
      pluginLibrary: null,
      modelPath: '/models/m.onnx',
      planPath: this.path('plan'),
      networkFlags: 0,
      parserFlags: 0,
      settings: [],
      profiles: [[{ input: 'x', values: false, min: [1, 64], opt: [8, 64], max: [32, 64] }]],
      computeCapabilities: [],
      pluginPaths: [],
      timingCachePaths: [],
      timingCacheOutputPath: null,
      verbose: false,
      keepBuilder: false,
      ...more,
    };
  }

  path = (name: string): string => join(this.work ?? this.folder, name);
}

export const setting = (call: string, ...args: number[]): NativeSetting => ({
  option: call,
  call,
  arguments: args,
});
