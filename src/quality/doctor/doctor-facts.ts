import { cancelled } from '../../base/process/cancel.js';
import type { DebianPackage, PythonPackage } from '../../tensorrt/toolchain/installed-packages.js';
import type { Unanswered } from '../known-answer/check-store.js';
import { type Finding, findingsOf } from './finding.js';
import type { GpuView } from './gpu.js';
import type { OnnxRuntimeFacts } from './onnxruntime.js';
import type { ToolchainList } from './toolchain-list.js';

export interface MachineFacts {
  readonly os: string;
  readonly platform: string;
  readonly architecture: string;
  readonly node: string;
  readonly processors: number;
  readonly memoryBytes: number;
  readonly memoryAvailableBytes: number;
  readonly isContainer: boolean;
}

export interface ToolFacts {
  readonly addon: { readonly path: string; readonly isBuilt: boolean };
  /** First line of `g++ --version`; null where there is none. */
  readonly compiler: string | null;
  /** First line of `python3 -m pip --version`; null where there is none. */
  readonly pip: string | null;
}

export interface StoreFacts {
  readonly folder: string;
  readonly exists: boolean;
  readonly isWritable: boolean;
  readonly engines: number;
  readonly bytes: number;
  readonly freeBytes: number;
  /** Names of engines that run here, have a known answer, and did not give it yet on this GPU with this driver and library. */
  readonly unchecked: readonly string[];
  /** Engines that have no known answer, and the line that records one. */
  readonly unanswered: Unanswered[];
}

/** The store of the environment that machines share. */
export interface RemoteFacts {
  readonly place: string;
  /** Why it cannot be used; null: it answers. */
  readonly failure: string | null;
  readonly remedy: string | null;
}

interface TrtexecFacts {
  readonly path: string;
  readonly version: string | null;
}

/** Everything doctor looks at; each probe may fail or hang without taking the others with it. */
export interface DoctorProbes {
  machine(): Promise<MachineFacts>;
  tools(): Promise<ToolFacts>;
  gpus(): Promise<GpuView>;
  toolchains(gpus: GpuView): Promise<ToolchainList>;
  trtexecs(): Promise<readonly TrtexecFacts[]>;
  debianPackages(): Promise<readonly DebianPackage[]>;
  pythonPackages(): Promise<readonly PythonPackage[]>;
  onnxRuntime(): Promise<readonly OnnxRuntimeFacts[]>;
  store(gpus: GpuView): Promise<StoreFacts>;
  /** null: the environment names none. */
  remote(signal: AbortSignal): Promise<RemoteFacts | null>;
}

/** The findings of the probes; undefined where a probe failed or hung, which `failures` then reports. */
export interface DoctorFacts {
  readonly machine: MachineFacts | undefined;
  readonly tools: ToolFacts | undefined;
  readonly gpus: GpuView | undefined;
  readonly toolchains: ToolchainList | undefined;
  readonly trtexecs: readonly TrtexecFacts[] | undefined;
  readonly debianPackages: readonly DebianPackage[] | undefined;
  readonly pythonPackages: readonly PythonPackage[] | undefined;
  readonly onnxRuntime: readonly OnnxRuntimeFacts[] | undefined;
  readonly store: StoreFacts | undefined;
  readonly remote: RemoteFacts | null | undefined;
  readonly failures: readonly Finding[];
}

const NO_GPUS: GpuView = {
  gpus: [],
  cudaVersion: null,
  driverVersion: null,
  reason: 'looking for GPUs failed',
  failure: null,
  source: 'none',
};

const topics = {
  machine: 'machine',
  tools: 'machine',
  gpus: 'gpu',
  toolchains: 'tensorrt',
  trtexecs: 'tensorrt',
  debianPackages: 'tensorrt',
  pythonPackages: 'tensorrt',
  onnxRuntime: 'onnxruntime',
  store: 'store',
  remote: 'store',
} as const satisfies Record<keyof DoctorProbes, Finding['topic']>;

/** Asks every probe, all at once but for toolchains, which depend on the GPUs. A probe that takes longer than `timeoutMs` is abandoned. */
export async function collectFacts(
  probes: DoctorProbes,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<DoctorFacts> {
  const failures: Finding[] = [];
  const ask = async <T>(name: keyof DoctorProbes, probe: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await within(timeoutMs, signal, probe);
    } catch (error) {
      if (signal.aborted) throw error;
      const why = error instanceof Error ? error.message : String(error);
      const { warning } = findingsOf(topics[name]);
      failures.push(warning(`probe-${name.toLowerCase()}`, `Looking at ${name} failed: ${why}`));
      return undefined;
    }
  };
  const gpus = ask('gpus', () => probes.gpus());
  const [machine, tools, toolchains, trtexecs, debianPackages, pythonPackages, onnxRuntime, store, remote] =
    await Promise.all([
      ask('machine', () => probes.machine()),
      ask('tools', () => probes.tools()),
      gpus.then((found) => ask('toolchains', () => probes.toolchains(found ?? NO_GPUS))),
      ask('trtexecs', () => probes.trtexecs()),
      ask('debianPackages', () => probes.debianPackages()),
      ask('pythonPackages', () => probes.pythonPackages()),
      ask('onnxRuntime', () => probes.onnxRuntime()),
      gpus.then((found) => ask('store', () => probes.store(found ?? NO_GPUS))),
      ask('remote', () => probes.remote(signal)),
    ]);
  const found = { machine, tools, toolchains, trtexecs, debianPackages, pythonPackages, onnxRuntime };
  return { ...found, store, remote, gpus: await gpus, failures };
}

function within<T>(timeoutMs: number, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = () => reject(cancelled({ doing: 'looking at this machine', signal }));
    const timer = setTimeout(
      () => reject(new Error(`it took more than ${timeoutMs / 1000} s and was abandoned.`)),
      timeoutMs,
    );
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', cancel);
    };
    signal.addEventListener('abort', cancel, { once: true });
    if (signal.aborted) cancel();
    work().then(resolve, reject).finally(end);
  });
}
