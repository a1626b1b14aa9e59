import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { readTables, slotsHeader } from '../../native/abi/slots-header.mjs';
import { buildAddon } from '../../scripts/build-native.mjs';
import { LeaseFolder } from '../../src/engines/store/claims/lease.js';
import type { NativeBuildRequest, NativeSetting } from '../../src/tensorrt/addon/addon.js';
import type { NativeOpenRequest } from '../../src/tensorrt/addon/native-engine.js';
import type { NativeEvent } from '../../src/tensorrt/addon/native-job.js';
import type { Toolchain } from '../../src/tensorrt/toolchain/toolchain.js';

const sources = fileURLToPath(new URL('./fake/', import.meta.url));
const driver = fileURLToPath(new URL('./fake/drive.mjs', import.meta.url));
/** Of <dlfcn.h>: the library outlives its handle. */
const RTLD_NODELETE = 0x1000;
const compiler = process.env.CXX ?? 'g++';

/** The generations that fakes exist for; 10.3.0 lacks what 10.x got later. */
export const fakes = {
  '8': { number: 0, code: 8601, version: '8.6.1' },
  '10': { number: 1, code: 100300, version: '10.3.0' },
  '11': { number: 2, code: 110100, version: '11.1.0' },
  rtx1: { number: 3, code: 10701, version: '1.7.1' },
} as const;
export type Fake = keyof typeof fakes;

const drivers = { 'libcuda.so.1': 'cuda.cpp', 'libnvidia-ml.so.1': 'nvml.cpp' };
/** With its name inside, a library that a process loaded by path is the one that the addon asks for. */
const soname = (name: string): readonly string[] => [`-Wl,-soname,${name}`];

/** Opens a plan with nothing that needs to be said otherwise. */
export const openRequest = (inferenceLibrary: string, planPath: string): NativeOpenRequest => ({
  inferenceLibrary,
  pluginLibrary: null,
  pluginPaths: [],
  planPath,
  device: 0,
  allowHostCode: false,
  weightBudget: null,
  verbose: false,
});

/** What fakes are made of, as one digest. */
function sourcesDigest(flags: readonly string[]): string {
  const digest = createHash('sha256').update(flags.join(' ')).update(slotsHeader(readTables()));
  for (const file of readdirSync(sources).sort()) digest.update(readFileSync(join(sources, file)));
  return digest.digest('hex');
}

/** The compiler's AddressSanitizer runtime, which must be loaded before Node; undefined where it is not installed. */
export function sanitizerLibrary(): string | undefined {
  const asked = spawnSync(compiler, ['-print-file-name=libasan.so'], { encoding: 'utf8' });
  const path = asked.stdout?.trim();
  return path?.startsWith('/') && existsSync(path) ? path : undefined;
}

/** One process at a time does the work of a name; test files that need the same thing wait for one compilation. */
async function alone<T>(name: string, work: () => Promise<T>): Promise<T> {
  const leases = new LeaseFolder(fileURLToPath(new URL('../../build/sanitized/leases', import.meta.url)));
  let attempt = leases.tryAcquire(name);
  for (; attempt.lease === null; attempt = leases.tryAcquire(name)) await sleep(200);
  try {
    return await work();
  } finally {
    attempt.lease.release();
  }
}

/** The addon compiled with these flags, kept between test runs. */
function sanitizedAddon(flags: readonly string[]): Promise<string> {
  const output = fileURLToPath(new URL('../../build/sanitized/trtforge.node', import.meta.url));
  return alone('addon', async () => {
    await buildAddon({ output, flags: [...flags], say: () => {} });
    return output;
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

/** Fake libraries and the addon, compiled into a folder; with AddressSanitizer where there is one. */
export class FakeBench {
  private constructor(
    private readonly folder: string,
    private readonly sanitizer: string | undefined,
    private readonly work = folder,
  ) {}

  /** The fakes of every generation and the addon, compiled once for all tests that want the sanitizer; what a test writes goes into its own folder. */
  static async sanitized(work: string): Promise<FakeBench> {
    const folder = fileURLToPath(new URL('../../build/fake-sanitized', import.meta.url));
    const { sanitizer } = await alone('fakes', () => FakeBench.compile(folder, { cached: true }));
    return new FakeBench(folder, sanitizer, work);
  }

  /** `only` and `sanitize: false` compile less, for tests that bring the addon themselves; `cached` compiles only when the sources changed. */
  static async compile(
    folder: string,
    { only = Object.keys(fakes) as Fake[], sanitize = true, cached = false } = {},
  ): Promise<FakeBench> {
    const sanitizer = sanitize ? sanitizerLibrary() : undefined;
    const flags =
      sanitizer === undefined ? ['-O1'] : ['-O1', '-g', '-fsanitize=address', '-fno-omit-frame-pointer'];
    mkdirSync(folder, { recursive: true });
    const stamp = cached ? sourcesDigest([...flags, ...only, ...Object.keys(drivers).flatMap(soname)]) : '';
    const stampFile = join(folder, 'digest');
    // Another process may be running the one that is there.
    const placeAddon = async () => {
      copyFileSync(await sanitizedAddon(flags), join(folder, `trtforge.${process.pid}`));
      renameSync(join(folder, `trtforge.${process.pid}`), join(folder, 'trtforge.node'));
    };
    if (cached && existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) {
      if (sanitize) await placeAddon();
      return new FakeBench(folder, sanitizer);
    }
    writeFileSync(join(folder, 'slots.h'), slotsHeader(readTables()));
    const library = (output: string, source: string, more: readonly string[] = []) => {
      mkdirSync(dirname(join(folder, output)), { recursive: true });
      const args = ['-std=c++17', '-fPIC', '-shared', '-Wall', '-Wextra', ...flags, ...more];
      const done = spawnSync(
        compiler,
        [...args, `-I${folder}`, join(sources, source), '-o', `${join(folder, output)}.${process.pid}`],
        { encoding: 'utf8' },
      );
      if (done.status !== 0) throw new Error(`${source} does not compile:\n${done.stderr}`);
      // Another process may be running the one that is there.
      renameSync(`${join(folder, output)}.${process.pid}`, join(folder, output));
    };
    for (const name of only) {
      const { number, code } = fakes[name];
      const defines = [`-DFAKE_GENERATION=${number}`, `-DFAKE_VERSION=${code}`];
      library(`${name}/inference.so`, 'inference.cpp', defines);
      library(`${name}/parser.so`, 'parser.cpp', defines);
    }
    for (const [name, source] of Object.entries(drivers)) library(`cuda/${name}`, source, soname(name));
    if (sanitize) await placeAddon();
    if (cached) writeFileSync(stampFile, stamp);
    return new FakeBench(folder, sanitizer);
  }

  /** The addon as compiled. */
  get addon(): string {
    return join(this.folder, 'trtforge.node');
  }

  /** The folder of the fakes for libcuda and NVML. */
  get drivers(): string {
    return join(this.folder, 'cuda');
  }

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
    FAKE_CALLS: join(this.work, 'calls'),
    LD_LIBRARY_PATH: this.drivers,
    ...environment,
  });

  /** Makes the fakes the driver of this process too, for good; what they are to do is read from `environment`, once as CUDA does. */
  enter(environment: NodeJS.ProcessEnv): void {
    Object.assign(process.env, environment);
    for (const name of Object.keys(drivers))
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
    const callsFile = join(this.work, 'calls');
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

  buildRequest(fake: Fake, more: Partial<NativeBuildRequest> = {}): NativeBuildRequest {
    return {
      inferenceLibrary: this.library(fake),
      parserLibrary: join(this.folder, fake, 'parser.so'),
      pluginLibrary: null,
      modelPath: '/models/m.onnx',
      planPath: join(this.work, 'plan'),
      networkFlags: 0,
      parserFlags: 0,
      settings: [],
      profiles: [[{ input: 'x', values: false, min: [1, 64], opt: [8, 64], max: [32, 64] }]],
      computeCapabilities: [],
      pluginPaths: [],
      timingCachePath: null,
      timingCacheOutputPath: null,
      verbose: false,
      keepBuilder: false,
      ...more,
    };
  }

  path = (name: string): string => join(this.work, name);
}

export const setting = (call: string, ...args: number[]): NativeSetting => ({
  option: call,
  call,
  arguments: args,
});
