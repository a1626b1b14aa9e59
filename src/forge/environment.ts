import { arch, cpus, platform, release, totalmem } from 'node:os';
import type { GpuList } from '../addon/addon.js';
import { visibleGpus, whyNoGpu } from '../addon/gpus.js';
import { formatBytes } from '../base/text/quantity.js';
import type { ForgeResult } from '../report/forge-result.js';
import type { Toolchain } from '../tensorrt/toolchain/toolchain.js';

/** The machine as far as a result depends on it. It names neither the host nor the user: reports are shown around. */
export interface Machine {
  readonly os: string;
  readonly processor: string;
  readonly processors: number;
  readonly memoryBytes: number;
  readonly node: string;
  /** Every GPU that the driver shows, or the one of a run. */
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

/** The environment of a run, for its report. */
export function environmentPart(
  machine: Machine,
  versions: {
    readonly trtforge: string;
    readonly toolchain: Toolchain | null;
    /** The back end of the comparison: `ONNX Runtime 1.30.0 (CPU)`. */
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
      text: gpus.map(gpuText).join(', ') || `none: ${whyNoGpu(machine.gpus)}`,
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

const gpuText = ({ index, name, computeCapability }: GpuList['gpus'][number]): string =>
  `${name} (sm_${computeCapability})${index === 0 ? '' : `, number ${index}`}`;
