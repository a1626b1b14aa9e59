import { arch, cpus, platform, release, totalmem } from 'node:os';
import { TrtforgeError } from '../errors.js';
import { formatBytes } from '../report/quantity.js';
import type { ForgeResult } from '../report/result.js';
import { type GpuList, loadAddon } from '../toolchain/addon.js';
import type { Toolchain } from '../toolchain/toolchain.js';

/** The machine as far as a result depends on it. It names neither the host nor the user: reports are shown around. */
export interface Machine {
  readonly os: string;
  readonly processor: string;
  readonly processors: number;
  readonly memoryBytes: number;
  readonly node: string;
  readonly gpus: GpuList;
}

export function lookAtMachine(): Machine {
  const processors = cpus();
  return {
    os: `${platform()} ${release()} ${arch()}`,
    processor: processors[0]?.model.trim() ?? 'unknown processor',
    processors: processors.length,
    memoryBytes: totalmem(),
    node: process.versions.node,
    gpus: visibleGpus(),
  };
}

/** Without the addon no GPU can be used either, so its absence is the reason there is none. */
function visibleGpus(): GpuList {
  try {
    return loadAddon().gpus();
  } catch (error) {
    if (!(error instanceof TrtforgeError)) throw error;
    return { gpus: [], cudaVersion: null, driverVersion: null, reason: error.message };
  }
}

/** What the report says of the surroundings of a run. */
export function environmentPart(
  machine: Machine,
  versions: {
    readonly trtforge: string;
    readonly toolchain: Toolchain | null;
    /** What ran the comparison: `ONNX Runtime 1.30.0 (CPU)`. */
    readonly backend: string | null;
  },
): ForgeResult['environment'] {
  const { gpus, driverVersion, cudaVersion } = machine.gpus;
  const { toolchain } = versions;
  return [
    { name: 'system', text: machine.os },
    { name: 'processor', text: `${machine.processors} × ${machine.processor}` },
    { name: 'memory', text: formatBytes(machine.memoryBytes) },
    {
      name: 'GPU',
      text:
        gpus.map((gpu) => `${gpu.name} (sm_${gpu.computeCapability})`).join(', ') ||
        `none: ${whyNoGpu(machine)}`,
    },
    ...(driverVersion === null ? [] : [{ name: 'driver', text: driverVersion }]),
    ...(cudaVersion === null ? [] : [{ name: 'CUDA', text: cudaVersion }]),
    ...(toolchain === null
      ? []
      : [
          {
            name: 'toolchain',
            text: `${toolchain.product} ${toolchain.version}, ${toolchain.foundBy}`,
          },
        ]),
    ...(versions.backend === null ? [] : [{ name: 'compared on', text: versions.backend }]),
    { name: 'Node.js', text: machine.node },
    { name: 'trtforge', text: versions.trtforge },
  ];
}

/** Why an engine for these compute capabilities cannot be run on this machine; null when a GPU of one of them is here. */
export function whyNotRunHere(machine: Machine, computeCapabilities: readonly number[]): string | null {
  const { gpus } = machine.gpus;
  if (gpus.length === 0) return `this machine has no usable NVIDIA GPU (${whyNoGpu(machine)})`;
  if (gpus.some((gpu) => computeCapabilities.includes(gpu.computeCapability))) return null;
  const here = gpus.map((gpu) => `${gpu.name}, sm_${gpu.computeCapability}`).join('; ');
  return `the engine serves ${computeCapabilities.map((sm) => `sm_${sm}`).join(', ')} and this machine has ${here}`;
}

/** The driver's own words up to the details. */
const whyNoGpu = ({ gpus }: Machine): string => (gpus.reason ?? 'none is visible').split(/: |\.$/)[0] ?? '';
