import { behaviour, type Processor, type products } from './facts.js';
import { compareVersions } from './versions.js';

/** An NVIDIA GPU architecture, by the compute capability that engines are built for. */
export interface GpuArchitecture {
  /** 89 for 8.9. */
  readonly computeCapability: number;
  readonly architecture: string;
  /** Well-known GPUs of it. */
  readonly examples: string;
}

/** Compute capabilities as NVIDIA publishes them (developer.nvidia.com/cuda-gpus), from the oldest that TensorRT still serves. */
export const gpuArchitectures: readonly GpuArchitecture[] = [
  { computeCapability: 60, architecture: 'Pascal', examples: 'P100' },
  { computeCapability: 61, architecture: 'Pascal', examples: 'GTX 1080 Ti, P4, P40' },
  { computeCapability: 62, architecture: 'Pascal', examples: 'Jetson TX2' },
  { computeCapability: 70, architecture: 'Volta', examples: 'V100, Titan V' },
  { computeCapability: 72, architecture: 'Volta', examples: 'Jetson Xavier' },
  { computeCapability: 75, architecture: 'Turing', examples: 'RTX 2080 Ti, T4' },
  { computeCapability: 80, architecture: 'Ampere', examples: 'A100, A30' },
  { computeCapability: 86, architecture: 'Ampere', examples: 'RTX 3090, RTX 3080, A10, A10G, A40' },
  { computeCapability: 87, architecture: 'Ampere', examples: 'Jetson Orin' },
  { computeCapability: 89, architecture: 'Ada Lovelace', examples: 'RTX 4090, RTX 4080, L4, L40S' },
  { computeCapability: 90, architecture: 'Hopper', examples: 'H100, H200, GH200' },
  { computeCapability: 100, architecture: 'Blackwell', examples: 'B200, GB200' },
  { computeCapability: 103, architecture: 'Blackwell', examples: 'B300, GB300' },
  { computeCapability: 110, architecture: 'Blackwell', examples: 'Jetson Thor' },
  { computeCapability: 120, architecture: 'Blackwell', examples: 'RTX 5090, RTX 5080, RTX PRO 6000' },
  { computeCapability: 121, architecture: 'Blackwell', examples: 'DGX Spark, GB10' },
];

/** `sm_90 (Hopper: H100, H200, GH200)`, or the bare number for one nobody knows. */
export function describeComputeCapability(computeCapability: number): string {
  const known = gpuArchitectures.find((entry) => entry.computeCapability === computeCapability);
  const name = `sm_${computeCapability}`;
  return known === undefined ? name : `${name} (${known.architecture}: ${known.examples})`;
}

/** Jetson has its own memory and libraries: kAMPERE_PLUS does not reach it, and its containers have a TensorRT of their own. */
export const isJetson = (sm: number): boolean => [53, 62, 72, 87, 101, 110].includes(sm);

/** Whether a GPU is a part of a chip and has no memory of its own: Jetson, DRIVE, and GB10 of DGX Spark. */
export const isIntegrated = (sm: number): boolean => isJetson(sm) || sm === 121;

/** Whether a GPU exists with Arm processors alone: a part of a chip, or a product with Grace (GH200, GB200, GB300), whose capability cards have too. */
export const isArmOnly = (sm: number, product = ''): boolean =>
  isIntegrated(sm) || /^G[HB]\d+$/.test(product);

/**
 * Whether a GPU exists on a platform. Jetson and DRIVE run Linux on Arm alone; GB10 and products with Grace have Arm processors, and are known with Linux. Cards are in x86-64
 * machines of both systems and in Arm servers with Linux; of Windows on Arm nothing is known.
 */
export function existsOn(
  { os, arch }: { readonly os: 'linux' | 'windows'; readonly arch: Processor },
  sm: number,
  product?: string,
): Served {
  if (isArmOnly(sm, product) && arch !== 'aarch64') return 'no';
  if (isJetson(sm) && os !== 'linux') return 'no';
  return os === 'windows' && arch === 'aarch64' ? 'unknown' : 'yes';
}

/** Whether engines of `ampere-plus` are built on a GPU, and run there. */
export const isAmperePlus = (sm: number): boolean => sm >= 80 && !isJetson(sm);

/** Whether a version has kernels for a GPU; `unknown` where nothing is known of it, or the support matrix of that very version has to be asked. */
export type Served = 'yes' | 'no' | 'unknown';

/** Newest first; the last takes every older version. */
const releases = behaviour['served-gpus'].value;
const rtxGpus: readonly number[] = behaviour['rtx-gpus'].value.served;

/** Whether TensorRT of a version has kernels for a compute capability. */
export function serves(
  { product, version }: { readonly product: keyof typeof products; readonly version: string },
  computeCapability: number,
): Served {
  const isKnown = gpuArchitectures.some((known) => known.computeCapability === computeCapability);
  if (product === 'tensorrt-rtx')
    return rtxGpus.includes(computeCapability) ? 'yes' : isKnown ? 'no' : 'unknown';
  const { unclear, oldest, blackwell } = releases.find(({ since }) => compareVersions(version, since) >= 0)!;
  if (computeCapability < oldest) return computeCapability >= unclear ? 'unknown' : 'no';
  if (computeCapability <= 90) return isKnown ? 'yes' : 'unknown';
  if (blackwell === null) return 'no';
  return (blackwell as readonly number[]).includes(computeCapability) ? 'yes' : 'unknown';
}

/** The TensorRT that is known to serve a compute capability: `10.8 and newer`, `up to 9.3`; null where none is. */
export function servedFrom(computeCapability: number): string | null {
  const serving = releases.filter(
    ({ since }) => serves({ product: 'tensorrt', version: since }, computeCapability) === 'yes',
  );
  if (serving.length === 0) return null;
  return serving[0] === releases[0] ? `${serving.at(-1)?.since} and newer` : `up to ${serving[0]?.last}`;
}
