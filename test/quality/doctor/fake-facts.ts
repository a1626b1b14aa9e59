import type { Gpu } from '../../../src/addon/addon.js';
import type { DoctorFacts, DoctorProbes } from '../../../src/quality/doctor/doctor-facts.js';
import type { GpuView } from '../../../src/quality/doctor/gpu.js';
import { abilitiesOf } from '../../../src/quality/doctor/support.js';
import type { ListedToolchain } from '../../../src/quality/doctor/toolchain-list.js';
import type { FoundToolchain } from '../../../src/tensorrt/toolchain/find.js';

/** TensorRT 10.6 of a Debian package, or what the changes make of it. */
export function found(changes: Partial<FoundToolchain> = {}): FoundToolchain {
  const { product = 'tensorrt', version = '10.6.0.26' } = changes;
  const folder = changes.folder ?? '/usr/lib/x86_64-linux-gnu';
  return {
    name: `${product}-${version}`,
    product,
    version,
    libraries: {
      inference: `${folder}/libnvinfer.so.10`,
      parser: `${folder}/libnvonnxparser.so.10`,
      plugins: null,
    },
    trtexec: null,
    foundBy: 'Debian package',
    folder,
    flavour: 'full',
    alsoFoundBy: [],
    parserVersion: null,
    cudaMajor: null,
    builderResources: [],
    ...changes,
  };
}

const h200: Gpu = {
  index: 0,
  name: 'NVIDIA H200',
  uuid: 'GPU-1',
  computeCapability: 90,
  memoryBytes: 139 * 2 ** 30,
  multiprocessors: 132,
};

export const withGpu: GpuView = {
  gpus: [h200],
  cudaVersion: '13.0',
  driverVersion: '580.65.06',
  reason: null,
  failure: null,
  source: 'driver',
};

export const withoutGpu: GpuView = {
  gpus: [],
  cudaVersion: null,
  driverVersion: null,
  reason: 'there is no NVIDIA driver',
  failure: null,
  source: 'none',
};

export function listed(changes: Partial<FoundToolchain>, view: GpuView = withGpu): ListedToolchain {
  const toolchain = found(changes);
  return {
    ...toolchain,
    libraries: { ...toolchain.libraries },
    alsoFoundBy: [...toolchain.alsoFoundBy],
    builderResources: [...toolchain.builderResources],
    trtexecVersion: null,
    license: null,
    ...abilitiesOf(toolchain, view.gpus),
  };
}

/** A healthy machine with a GPU and one TensorRT, or what the changes make of it. */
export function facts(changes: Partial<DoctorFacts> = {}): DoctorFacts {
  return {
    machine: {
      os: 'linux 6.8.0 x64',
      platform: 'linux',
      architecture: 'x64',
      node: '20.19.0',
      processors: 8,
      memoryBytes: 64 * 2 ** 30,
      memoryAvailableBytes: 60 * 2 ** 30,
      isContainer: false,
    },
    tools: {
      addon: { path: '/trtforge/build/trtforge.node', isBuilt: true },
      compiler: 'g++ 13.2.0',
      pip: 'pip 24.0',
    },
    gpus: withGpu,
    toolchains: { schema: 'trtforge.toolchain-list/1', toolchains: [listed({})], damaged: [] },
    trtexecs: [],
    debianPackages: [],
    pythonPackages: [],
    onnxRuntime: [
      {
        path: '/npm/libonnxruntime.so.1',
        foundBy: 'onnxruntime-node',
        version: '1.30.0',
        buildInfo: 'ORT Build Info: git-branch=HEAD, git-commit-id=f2c39fe2f, build type=Release',
        why: null,
        providers: [],
      },
    ],
    store: {
      folder: '/home/me/.cache/trtforge/engines',
      exists: true,
      isWritable: true,
      engines: 3,
      bytes: 5 * 2 ** 30,
      freeBytes: 100 * 2 ** 30,
      unchecked: [],
      unanswered: [],
    },
    remote: null,
    failures: [],
    ...changes,
  };
}

/** Probes that answer with these facts. */
export function probesOf(known: DoctorFacts): DoctorProbes {
  const answer = <T>(value: T | undefined): Promise<T> =>
    value === undefined ? Promise.reject(new Error('this probe has no answer')) : Promise.resolve(value);
  return {
    machine: () => answer(known.machine),
    tools: () => answer(known.tools),
    gpus: () => answer(known.gpus),
    toolchains: () => answer(known.toolchains),
    trtexecs: () => answer(known.trtexecs),
    debianPackages: () => answer(known.debianPackages),
    pythonPackages: () => answer(known.pythonPackages),
    onnxRuntime: () => answer(known.onnxRuntime),
    store: () => answer(known.store),
    remote: () => answer(known.remote),
  };
}
