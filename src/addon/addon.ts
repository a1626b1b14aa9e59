import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { assertUnbundled } from '../base/files/folders.js';
import { shellQuote } from '../base/text/shell-line.js';
import { processorOf } from '../behaviour/facts.js';
import { TrtforgeError } from '../errors.js';
import { packageVersion } from '../version.js';
import type { NativeGpuState, NativeRuntime } from './native-engine.js';
import { endWithProcess, jobOf, type NativeEvent, type NativeJob, rethrown } from './native-job.js';
import { type CompiledRuntime, runtimeOf } from './native-runtime.js';

/** The package with the prebuilt addon for this platform, an optional dependency; null where there is none. */
const prebuiltPackage =
  process.platform === 'linux' && processorOf(process.arch) !== undefined
    ? `@trtforge/linux-${process.arch}`
    : null;

/** Where scripts/build-native.mjs puts the addon; the same from `src/` and from `dist/`. */
const compiledPath = fileURLToPath(new URL('../../build/trtforge.node', import.meta.url));

/** The addon: what was compiled here, else the prebuilt one. */
export const addonPath: string = existsSync(compiledPath) ? compiledPath : (prebuiltPath() ?? compiledPath);

function prebuiltPath(): string | undefined {
  if (prebuiltPackage === null) return undefined;
  try {
    return createRequire(import.meta.url).resolve(`${prebuiltPackage}/trtforge.node`);
  } catch {
    return undefined;
  }
}

/** The command that compiles it, from any folder: in a clone as where the package is installed. */
const compileAddon = `node ${shellQuote(fileURLToPath(new URL('../../scripts/build-native.mjs', import.meta.url)))}`;

/** The command that installs the addon on this platform. */
export const addonRemedy = (): string =>
  prebuiltPackage === null
    ? `Compile it (it needs g++): ${compileAddon}`
    : `Install it beside trtforge: npm install ${prebuiltPackage}@${packageVersion()}; or compile it (it needs g++): ${compileAddon}`;

/** Returns the addon's exports. Errors: TF_NATIVE_UNSUPPORTED off Linux, TF_NATIVE_NOT_BUILT where the file is missing or does not load. */
export function requireAddon(path: string = addonPath): unknown {
  if (process.platform !== 'linux') {
    throw new TrtforgeError(
      'TF_NATIVE_UNSUPPORTED',
      `trtforge's addon runs on Linux only, and this is ${process.platform}.`,
    );
  }
  if (path === compiledPath) assertUnbundled('the addon');
  if (!existsSync(path)) {
    throw new TrtforgeError('TF_NATIVE_NOT_BUILT', `trtforge's addon is not installed: ${path} is missing.`, {
      remedy: addonRemedy(),
    });
  }
  try {
    return createRequire(import.meta.url)(path);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new TrtforgeError('TF_NATIVE_NOT_BUILT', `trtforge's addon does not load: ${why}`, {
      remedy: addonRemedy(),
      cause,
    });
  }
}

/** The addon's export of this name; undefined where there is no addon, or one without it. Nothing is compiled for it. */
export function optionalExport<T>(name: string): T | undefined {
  try {
    return (requireAddon() as Readonly<Record<string, T>>)[name];
  } catch (error) {
    if (error instanceof TrtforgeError) return undefined;
    throw error;
  }
}

/**
 * The C++ addon (`native/`), as data goes in and out of it. It links neither TensorRT nor CUDA: every call names the libraries it means.
 * Numbers of enums and slots are the library's own, resolved by `toolchain.ts` for the generation at hand.
 */
export interface Addon {
  /** Version and product of an inference library; loads it into this process. Rejects with TF_LIBRARY_LOAD_FAILED. */
  probe(libraryPath: string): LibraryFacts;
  /** GPUs the CUDA driver shows. Never throws: with no driver the list is empty and `reason` states why. */
  gpus(): GpuList;
  /** A GPU's clocks, heat, power and other processes now; null where NVML is absent or does not know the GPU. `uuid` as in `Gpu.uuid`. */
  gpuState(uuid: string): NativeGpuState | null;
  /** Asks the kernel to forget a file's pages; gives the bytes that stay in memory, null where the kernel does not show it. Rejects with TF_FILE_UNREADABLE. */
  dropFromCache(path: string): NativeJob<number | null>;
  /** Parses, configures and builds off the event loop, and writes the plan's bytes to `planPath`. `onEvent` is called on the event loop. */
  build(
    request: {
      readonly inferenceLibrary: string;
      readonly parserLibrary: string;
      /** libnvinfer_plugin, initialised when it loads; a library that does not load is a warning. */
      readonly pluginLibrary: string | null;
      readonly modelPath: string;
      readonly planPath: string;
      /** Bits of `NetworkDefinitionCreationFlags`. */
      readonly networkFlags: number;
      /** Bits of `OnnxParserFlags`; 0 leaves the parser its own. */
      readonly parserFlags: number;
      readonly settings: readonly NativeSetting[];
      readonly profiles: readonly (readonly NativeProfileInput[])[];
      /** tensorrt-rtx only; empty means the library's default. */
      readonly computeCapabilities: readonly number[];
      /** User plug-in libraries, loaded into the builder's registry before the model is parsed. */
      readonly pluginPaths: readonly string[];
      /** Files that are read and merged before the build, as far as they exist. */
      readonly timingCachePaths: readonly string[];
      /** Where the cache is written after the build; the caller renames it into place. */
      readonly timingCacheOutputPath: string | null;
      /** Whether the library's verbose lines become events too (tens of thousands on a large model). */
      readonly verbose: boolean;
      /** Whether a builder that is done is left as it is: the process ends after this build. */
      readonly keepBuilder: boolean;
    },
    onEvent: (event: NativeEvent) => void,
  ): NativeJob<NativeBuildResult>;
}

export type Generation = '8' | '10' | '11' | 'rtx1';

export interface LibraryFacts {
  readonly product: 'tensorrt' | 'tensorrt-rtx';
  /** `major.minor.patch.build`; without the build number where the library cannot report it. */
  readonly version: string;
  /** The number the library itself gives (`getInferLibVersion`). */
  readonly code: number;
  /** Null when trtforge has no table of virtual functions for it. */
  readonly generation: Generation | null;
}

export interface GpuList {
  readonly gpus: readonly Gpu[];
  /** CUDA version the driver supports, `13.0`; null without a driver. */
  readonly cudaVersion: string | null;
  /** `580.65.06`, as NVML reports; null where NVML is absent. */
  readonly driverVersion: string | null;
  /** Why the list is empty; null when it is not. */
  readonly reason: string | null;
}

export interface Gpu {
  readonly index: number;
  readonly name: string;
  readonly uuid: string;
  /** 90 for 9.0. */
  readonly computeCapability: number;
  readonly memoryBytes: number;
  readonly multiprocessors: number;
}

/** One call on the builder's configuration, in order: `{ option: 'builder flag refit', call: 'setFlag', arguments: [4] }`. */
export interface NativeSetting {
  /** The setting that the user requested, for the error when the library rejects it. */
  readonly option: string;
  readonly call: string;
  readonly arguments: readonly number[];
}

interface NativeProfileInput {
  readonly input: string;
  /** True: the numbers are the values of a shape tensor. */
  readonly values: boolean;
  readonly min: readonly number[];
  readonly opt: readonly number[];
  readonly max: readonly number[];
}

export interface NativeTensor {
  readonly name: string;
  /** `nvinfer1::DataType`. */
  readonly dtype: number;
  /** -1 where the network leaves the dimension open. */
  readonly shape: readonly number[];
}

export interface NativeBuildResult {
  readonly buildMs: number;
  readonly bytes: number;
  readonly libraryVersion: string;
  /** Layers of the network as parsed. */
  readonly layers: number;
  readonly inputs: readonly NativeTensor[];
  readonly outputs: readonly NativeTensor[];
  readonly timingCache: TimingCacheUse;
  /** Of the paths of the request: those that were used, and those that the library would not take. */
  readonly timingCachesMerged: readonly string[];
  readonly timingCachesRejected: readonly string[];
}

/** `none`: not asked for; `new`: there was none yet; `hit`: the one passed was taken; `rejected`: the library would not take it and started anew. */
type TimingCacheUse = 'none' | 'new' | 'hit' | 'rejected';

/** The exports of the compiled module: as `Addon`, but failures are plain Errors that carry `code` and `details`. */
type CompiledAddon = Addon & CompiledRuntime;

let loaded: (Addon & NativeRuntime) | undefined;

/** Loads the compiled addon once per process. Errors: TF_NATIVE_UNSUPPORTED off Linux, TF_NATIVE_NOT_BUILT where it is missing or does not load. */
export function loadAddon(path: string = addonPath): Addon & NativeRuntime {
  if (path !== addonPath) return wrap(requireAddon(path) as CompiledAddon);
  loaded ??= wrap(requireAddon(path) as CompiledAddon);
  return loaded;
}

function wrap(compiled: CompiledAddon): Addon & NativeRuntime {
  return {
    probe: (libraryPath) => rethrown(() => compiled.probe(libraryPath)),
    gpus: () => compiled.gpus(),
    gpuState: (uuid) => rethrown(() => compiled.gpuState(uuid)),
    dropFromCache: (path) => jobOf(rethrown(() => compiled.dropFromCache(path))),
    build: (request, onEvent) => endWithProcess(jobOf(rethrown(() => compiled.build(request, onEvent)))),
    ...runtimeOf(compiled),
  };
}
