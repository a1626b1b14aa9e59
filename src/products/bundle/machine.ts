import type { GpuList } from '../../tensorrt/addon/addon.js';
import type { BundleEnvironment } from './report-schema.js';

/** What the report says of the machine and the library. */
export function environmentOf(
  { gpus, cudaVersion, driverVersion }: GpuList,
  toolchain: { readonly product: string; readonly version: string; readonly foundBy: string } | undefined,
): BundleEnvironment {
  const [gpu] = gpus;
  return {
    tensorrt_version: toolchain?.version ?? null,
    cuda_version: cudaVersion,
    gpu: gpu?.name ?? null,
    driver: driverVersion,
    compute_capability: gpu === undefined ? null : (gpu.computeCapability / 10).toFixed(1),
    product: toolchain?.product ?? null,
    toolchain: toolchain?.foundBy ?? null,
    platform: `${process.platform} ${process.arch}`,
  };
}
