import type { z } from 'zod';
import { nearestName } from '../../base/text/suggest-name.js';
import { behaviour } from '../../behaviour/facts.js';
import { describeComputeCapability, gpuArchitectures } from '../../behaviour/gpus.js';
import { isVersion } from '../../behaviour/versions.js';
import { TrtforgeError } from '../../errors.js';
import type { Toolchain } from '../../tensorrt/toolchain/toolchain.js';
import type { targetSchema } from './identity-schema.js';

/** A GPU as a user names it: its compute capability, and the product where that was named. */
export interface NamedGpu {
  readonly capability: number;
  readonly product?: string;
}

/**
 * Reads `sm_89`, `8.9`, `89`, or a well-known GPU: `L4`, `NVIDIA H100`, `A100-SXM4-40GB`, `Jetson AGX Orin`. A number is taken whether a GPU of it is known or not.
 * Throws TF_USAGE for a name that is not known.
 */
export function parseGpu(text: string): NamedGpu {
  const asked = capabilityIn(text.trim());
  if (asked !== undefined) return { capability: asked };
  for (const { computeCapability: capability, examples } of gpuArchitectures) {
    const product = examples.split(', ').find((name) => isOfProduct(text, name));
    if (product !== undefined) return { capability, product };
  }
  throw new TrtforgeError('TF_USAGE', `"${text}" is not a GPU whose compute capability is known.`, {
    remedy: 'Write the compute capability: sm_89.',
  });
}

/** Whether a GPU's whole name, as a driver has it, is of a product in the list of architectures; a Jetson's module has words between: `Jetson AGX Orin`. */
export const isOfProduct = (gpu: string, product: string): boolean =>
  new RegExp(`\\b${product.replace(/^Jetson /, '').replaceAll(' ', '[ -]?')}\\b`, 'i').test(gpu);

/** The target of an engine (`identity-schema.ts`). */
export type Target = z.infer<typeof targetSchema>;
type Product = Target['product'];

/** A `--target` as it was asked for, before a toolchain and a GPU make it whole. */
export interface TargetRequest {
  readonly product: Product;
  /** null: tensorrt-rtx takes its default, TensorRT the GPU of this machine. */
  readonly computeCapabilities: readonly number[] | null;
  /** The TensorRT that was named, which need not be here; absent: the one that is. */
  readonly named?: { readonly version: string; readonly cudaMajor: number | null };
}

/** The default of tensorrt-rtx. It names each, because an identity may not depend on what a later version means by its own. */
const usualOnRtx: readonly number[] = behaviour['rtx-gpus'].value.usual;

/**
 * Reads `tensorrt`, `tensorrt:sm_90`, `tensorrt-rtx`, `tensorrt-rtx:sm_89,sm_120`, and `tensorrt@10.13.3.9:sm_90` for an engine of another machine; `+cuda12` behind
 * the version where the package there names its CUDA, as Debian's do. A GPU may have its name: `tensorrt-rtx:RTX 4090`. What a version can build is asked of `buildFaults`.
 * Throws TF_USAGE for text that is not a target and TF_TARGET_UNSUPPORTED for several GPUs where TensorRT builds for one.
 */
export function parseTarget(text: string): TargetRequest {
  const [, product, version, cuda, list] =
    /^(tensorrt|tensorrt-rtx)(?:@(\d+(?:\.\d+){2,3})(?:\+cuda(\d+)(?:\.\d+)?)?)?(?::(.+))?$/.exec(
      text.trim(),
    ) ?? [];
  if (product === undefined) throw noTarget(text);
  const computeCapabilities = list?.split(',').map((part) => parseGpu(part.trim()).capability);
  const named =
    version === undefined ? {} : { named: { version, cudaMajor: cuda === undefined ? null : Number(cuda) } };
  if (product === 'tensorrt' && (computeCapabilities?.length ?? 0) > 1) {
    throw new TrtforgeError(
      'TF_TARGET_UNSUPPORTED',
      'TensorRT builds for one compute capability at a time: that of the GPU it runs on.',
      { remedy: 'Build once on each GPU, or use tensorrt-rtx, which builds for several at once.' },
    );
  }
  return {
    product: product as Product,
    computeCapabilities: sorted(computeCapabilities ?? null),
    ...named,
  };
}

/** The text of a target: `tensorrt-rtx:sm_89,sm_120`. */
export const targetText = ({ product, computeCapabilities }: TargetRequest): string =>
  computeCapabilities === null
    ? product
    : `${product}:${computeCapabilities.map((sm) => `sm_${sm}`).join(',')}`;

/** 89 of `sm_89`, `89` and `8.9`; undefined for anything else. */
function capabilityIn(text: string): number | undefined {
  const [, plain, major, minor] = /^(?:(?:sm_?)?(\d{2,3})|(\d{1,2})\.(\d))$/i.exec(text) ?? [];
  if (plain !== undefined) return Number(plain);
  return major === undefined ? undefined : Number(major) * 10 + Number(minor);
}

/** The remedy has the target where a known GPU is named in it, or a product almost. */
function noTarget(text: string): TrtforgeError {
  const [named = '', ...rest] = text.split(/(?=[@:])/);
  const product = nearestName(named, ['tensorrt', 'tensorrt-rtx']);
  const gpu = gpuArchitectures.find(({ examples }) =>
    examples.split(', ').some((name) => isOfProduct(text, name)),
  );
  const meant =
    gpu === undefined
      ? product && product + rest.join('')
      : `${product ?? 'tensorrt-rtx'}:sm_${gpu.computeCapability}`;
  const forms =
    'Write tensorrt-rtx:sm_89,sm_120, tensorrt-rtx, tensorrt:sm_90, tensorrt, or tensorrt@10.13.3.9:sm_90 for another machine.';
  return new TrtforgeError('TF_USAGE', `"${text}" is not a target.`, {
    remedy: meant === undefined || meant === text ? forms : `Did you mean "${meant}"? ${forms}`,
  });
}

function sorted(list: readonly number[] | null): readonly number[] | null {
  return list === null ? null : [...new Set(list)].sort((a, b) => a - b);
}

/** Where a build happens, as far as the target depends on it. */
export interface BuildMachine {
  readonly platform: NodeJS.Platform;
  readonly arch: NodeJS.Architecture;
  /** Of the GPU that TensorRT would build on, the first or the one that was chosen; null without one. */
  readonly gpuComputeCapability: number | null;
}

/**
 * Makes a request whole: the toolchain gives the version, the machine (for TensorRT) the compute capability.
 * Throws TF_TARGET_UNAVAILABLE when TensorRT's GPU is not there or is another one.
 */
export function resolveTarget(
  request: TargetRequest,
  toolchain: Pick<Toolchain, 'product' | 'version'> & { readonly cudaMajor?: number | null },
  machine: BuildMachine,
): Target {
  return {
    product: request.product,
    version: toolchain.version,
    cudaMajor: request.product === 'tensorrt' ? (toolchain.cudaMajor ?? null) : null,
    computeCapabilities: [...capabilitiesFor(request, machine.gpuComputeCapability)],
    os: machine.platform === 'win32' ? 'windows' : 'linux',
    arch: machine.arch === 'arm64' ? 'aarch64' : 'x86_64',
  };
}

function capabilitiesFor(request: TargetRequest, gpu: number | null): readonly number[] {
  if (request.product === 'tensorrt-rtx') return request.computeCapabilities ?? usualOnRtx;
  const wanted = request.computeCapabilities?.[0] ?? gpu;
  if (wanted === null) {
    throw new TrtforgeError(
      'TF_TARGET_UNAVAILABLE',
      'TensorRT builds for the GPU it runs on, and this machine shows none.',
    );
  }
  if (gpu !== null && wanted !== gpu) {
    throw new TrtforgeError(
      'TF_TARGET_UNAVAILABLE',
      `The target is ${describeComputeCapability(wanted)}, but the GPU it would be built on is ${describeComputeCapability(gpu)}.`,
    );
  }
  return [wanted];
}

/** A TensorRT as targets name it: `tensorrt@10.6.0.26`. Throws TF_USAGE for what is not a target, one without a version, and one with GPUs. */
export function parseToolchain(given: string): TargetRequest {
  const isTarget = /^tensorrt(-rtx)?(@|$)/.test(given.trim());
  const target = isTarget ? parseTarget(given) : null;
  if (target?.named !== undefined && target.computeCapabilities === null) return target;
  throw new TrtforgeError('TF_USAGE', `"${given}" is not a version of TensorRT, as targets name it.`, {
    remedy: `Write tensorrt@${isVersion(given) ? given : '10.6.0.26'}; the GPUs are those of the targets.`,
  });
}
