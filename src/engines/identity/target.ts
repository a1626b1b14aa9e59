import type { z } from 'zod';
import type { GpuList } from '../../addon/addon.js';
import { onDevice, visibleGpus, whyNoGpu } from '../../addon/gpus.js';
import { didYouMean, nearestName } from '../../base/text/suggest-name.js';
import {
  behaviour,
  describeComputeCapability,
  existsOn,
  gpuArchitectures,
  isAmperePlus,
  isArmOnly,
  processorOf,
} from '../../behaviour/facts.js';
import { isVersion } from '../../behaviour/versions.js';
import { TrtforgeError } from '../../errors.js';
import type { Toolchain } from '../../tensorrt/toolchain/toolchain.js';
import type { targetSchema } from './recipe.js';

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
  const gpu = asked === undefined ? knownGpu(text) : { capability: asked };
  if (gpu !== undefined) return gpu;
  const products = gpuArchitectures.flatMap(({ examples }) => examples.split(', ').map(shortProduct));
  const hint = didYouMean(text.trim(), products);
  throw new TrtforgeError('TF_USAGE', `"${text}" is not a GPU whose compute capability is known.${hint}`, {
    remedy: 'Write the compute capability: sm_89.',
  });
}

/** The GPU of a name; undefined for one that nobody knows. */
export function knownGpu(text: string): NamedGpu | undefined {
  for (const { computeCapability: capability, examples } of gpuArchitectures) {
    const product = examples.split(', ').find((name) => isOfProduct(text, name));
    if (product !== undefined) return { capability, product };
  }
  return undefined;
}

/** Whether a GPU's whole name, as a driver has it, is of a product in the list of architectures; a Jetson's module has words between: `Jetson AGX Orin`. Each is known without its line too: `Orin`, `Spark`. */
export const isOfProduct = (gpu: string, product: string): boolean =>
  new RegExp(`\\b${shortProduct(product).replaceAll(' ', '[ -]?')}\\b`, 'i').test(gpu);

const shortProduct = (product: string): string => product.replace(/^(Jetson|DGX) /, '');

/** The target of an engine (`recipe.ts`). */
export type Target = z.infer<typeof targetSchema>;
type Product = Target['product'];

/** Where an engine is built and loads. */
export type Platform = Pick<Target, 'os' | 'arch'>;

/** The platform of this process; one that TensorRT is not for stands for the usual one. */
export const thisPlatform: Platform = {
  os: process.platform === 'win32' ? 'windows' : 'linux',
  arch: processorOf(process.arch) ?? 'x86_64',
};

export const isPlatform = (a: Platform, b: Platform): boolean => a.os === b.os && a.arch === b.arch;

/** `linux-aarch64` */
export const platformText = ({ os, arch }: Platform): string => `${os}-${arch}`;

/**
 * A `--target` as it was asked for, before a toolchain and a GPU make it whole. Without a platform TensorRT, which builds on the GPU that its engine is for, has the one
 * that this GPU exists with; else it is that of the process.
 */
export interface TargetRequest extends Partial<Platform> {
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
 * the version where the package there names its CUDA, as Debian's do. A GPU may have its name: `tensorrt-rtx:RTX 4090`. The platform stands last:
 * `tensorrt@10.13.3.9:sm_90:linux-aarch64`. What a version can build is asked of `buildFaults`.
 * Throws TF_USAGE for text that is not a target and TF_TARGET_UNSUPPORTED for several GPUs where TensorRT builds for one, and for a GPU that does not exist on the platform.
 */
export function parseTarget(text: string): TargetRequest {
  const [, product, version, cuda, list, os, arch] =
    /^(tensorrt|tensorrt-rtx)(?:@(\d+(?:\.\d+){2,3})(?:\+cuda(\d+)(?:\.\d+)?)?)?(?::([^:]+))??(?::(linux|windows)-(x86_64|aarch64))?$/.exec(
      text.trim(),
    ) ?? [];
  if (product === undefined) throw noTarget(text);
  const gpus = list?.split(',').map((part) => parseGpu(part.trim()));
  const computeCapabilities = gpus?.map(({ capability }) => capability);
  const named =
    version === undefined ? {} : { named: { version, cudaMajor: cuda === undefined ? null : Number(cuda) } };
  if (product === 'tensorrt' && (computeCapabilities?.length ?? 0) > 1) {
    throw new TrtforgeError(
      'TF_TARGET_UNSUPPORTED',
      'TensorRT builds for one compute capability at a time: that of the GPU it runs on.',
      { remedy: 'Build once on each GPU, or use tensorrt-rtx, which builds for several at once.' },
    );
  }
  const impossible = (gpus ?? [])
    .flatMap((gpu) => (os === undefined ? [] : (platformFault({ product, os, arch } as On, gpu) ?? [])))
    .find(({ severity }) => severity === 'error');
  if (impossible !== undefined)
    throw new TrtforgeError('TF_TARGET_UNSUPPORTED', impossible.message, { remedy: impossible.remedy });
  // Of GH200 only its name states the processor: H100 has its number too.
  const isArm =
    product === 'tensorrt' && gpus?.some((gpu) => isArmOnly(gpu.capability, gpu.product)) === true;
  const platform = os === undefined ? isArm && linuxOnArm : ({ os, arch } as Platform);
  return {
    product: product as Product,
    computeCapabilities: sorted(computeCapabilities ?? null),
    ...named,
    ...platform,
  };
}

type On = Pick<Target, 'product'> & Platform;

/** A doubt about a GPU on a platform. */
export interface PlatformFault {
  readonly severity: 'error' | 'warning';
  readonly message: string;
  readonly remedy: string;
}

const across: Readonly<Record<Product, 'unproven' | 'no'>> = behaviour['other-platform'].value;

/**
 * Whether an engine of a platform can be for a GPU, which exists with some platforms only: an error where its product loads on no other platform, a warning where that is unproven or
 * the pair is not known. null: nothing speaks against it.
 */
export function platformFault(
  { product, ...platform }: On,
  { capability, product: name }: NamedGpu,
): PlatformFault | null {
  const exists = existsOn(platform, capability, name);
  if (exists === 'yes') return null;
  const gpu = isArmOnly(capability) ? describeComputeCapability(capability) : (name ?? `sm_${capability}`);
  const here = platformText(platform);
  if (exists === 'unknown') {
    const message = `Nothing is known of ${gpu} on ${here}.`;
    return { severity: 'warning', message, remedy: 'The support matrix of its TensorRT decides.' };
  }
  const limit = platform.arch === 'aarch64' ? 'with Linux alone' : 'with Arm processors (aarch64) alone';
  const pair = `${gpu} exists ${limit}, and the platform is ${here}`;
  if (across[product] === 'no') {
    const remedy = `Name ${platformText(linuxOnArm)} as its platform, or none.`;
    return { severity: 'error', message: `${pair}.`, remedy };
  }
  return {
    severity: 'warning',
    message: `${pair}: that engines of ${product} load on another platform is unproven.`,
    remedy: `Build it on ${platformText(linuxOnArm)}, or prove it there with \`trtforge engine check\`.`,
  };
}

/** The doubts about all GPUs of a target. */
export const platformFaults = (
  { product, computeCapabilities }: Pick<Target, 'product' | 'computeCapabilities'>,
  { os, arch }: Platform,
): readonly PlatformFault[] =>
  computeCapabilities.flatMap((capability) => platformFault({ product, os, arch }, { capability }) ?? []);

const linuxOnArm: Platform = { os: 'linux', arch: 'aarch64' };

/** The platform of a request: its own, or the one that it has without. */
export function platformFor(request: TargetRequest, here: Platform = thisPlatform): Platform {
  const { product, computeCapabilities, os, arch } = request;
  if (os !== undefined && arch !== undefined) return { os, arch };
  const isArm = product === 'tensorrt' && computeCapabilities?.every((sm) => isArmOnly(sm)) === true;
  return isArm ? linuxOnArm : here;
}

/** The text of a target: `tensorrt-rtx:sm_89,sm_120`; with the version that it names, and its platform where that is not the one that this text has here. */
export function targetText(target: TargetRequest): string {
  const { product, computeCapabilities, named } = target;
  const platform = platformFor(target);
  const cuda = named?.cudaMajor == null ? '' : `+cuda${named.cudaMajor}`;
  return [
    named === undefined ? product : `${product}@${named.version}${cuda}`,
    ...(computeCapabilities === null ? [] : [computeCapabilities.map((sm) => `sm_${sm}`).join(',')]),
    ...(isPlatform(platform, platformFor({ product, computeCapabilities })) ? [] : [platformText(platform)]),
  ].join(':');
}

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
  const gpu = knownGpu(text);
  const meant =
    gpu === undefined
      ? product && product + rest.join('')
      : `${product ?? 'tensorrt-rtx'}:sm_${gpu.capability}`;
  const forms =
    'Write tensorrt-rtx:sm_89,sm_120, tensorrt-rtx, tensorrt:sm_90, tensorrt, or tensorrt@10.13.3.9:sm_90:linux-aarch64 for another machine.';
  return new TrtforgeError('TF_USAGE', `"${text}" is not a target.`, {
    remedy: meant === undefined || meant === text ? forms : `Did you mean "${meant}"? ${forms}`,
  });
}

function sorted(list: readonly number[] | null): readonly number[] | null {
  return list === null ? null : [...new Set(list)].sort((a, b) => a - b);
}

/** Where a build happens, as far as the target depends on it. */
export interface BuildMachine {
  readonly platform: Platform;
  /** Of the GPU that TensorRT would build on, the first or the one that was chosen; null without one. */
  readonly gpuComputeCapability: number | null;
}

/**
 * Makes a request whole: the toolchain gives the version, the machine the platform and (for TensorRT) the compute capability, where the request has none.
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
    computeCapabilities: [...capabilitiesFor(request, toolchain, machine.gpuComputeCapability)],
    ...platformFor(request, machine.platform),
  };
}

function capabilitiesFor(
  request: TargetRequest,
  { version, cudaMajor = null }: Parameters<typeof resolveTarget>[1],
  gpu: number | null,
): readonly number[] {
  const elsewhere = (sm: number) =>
    `--target ${targetText({ ...request, computeCapabilities: [sm], named: { version, cudaMajor } })}`;
  if (request.product === 'tensorrt-rtx') return request.computeCapabilities ?? usualOnRtx;
  const wanted = request.computeCapabilities?.[0] ?? gpu;
  if (wanted === null) {
    throw new TrtforgeError(
      'TF_TARGET_UNAVAILABLE',
      'TensorRT builds for the GPU it runs on, and this machine shows none.',
      {
        remedy: `Build on a machine that has one. To find its engine in stores, name its GPU: ${elsewhere(89)}`,
      },
    );
  }
  if (gpu !== null && wanted !== gpu) {
    throw new TrtforgeError(
      'TF_TARGET_UNAVAILABLE',
      `The target is ${describeComputeCapability(wanted)}, but the GPU it would be built on is ${describeComputeCapability(gpu)}.`,
      {
        remedy: `Choose such a GPU with --device, or build on a machine that has one. To find its engine in stores, name the TensorRT there: ${elsewhere(wanted)}`,
      },
    );
  }
  return [wanted];
}

/** A TensorRT as targets name it: `tensorrt@10.6.0.26`. Throws TF_USAGE for what is not a target, one without a version, and one with GPUs or a platform. */
export function parseToolchain(given: string): TargetRequest {
  const isTarget = /^tensorrt(-rtx)?(@|$)/.test(given.trim());
  const target = isTarget ? parseTarget(given) : null;
  if (target?.named !== undefined && target.computeCapabilities === null && target.os === undefined)
    return target;
  throw new TrtforgeError('TF_USAGE', `"${given}" is not a version of TensorRT, as targets name it.`, {
    remedy: `Write tensorrt@${isVersion(given) ? given : '10.6.0.26'}; GPUs and platform are those of the targets.`,
  });
}

/** The driver's report on the GPU that TensorRT uses: the first it shows, where none is chosen. */
export interface MachineFacts {
  readonly gpu: string | null;
  readonly gpuComputeCapability: number | null;
  readonly driver: string | null;
}

/** Asks the CUDA driver, if there is one; null on a machine without this GPU, driver or addon. Throws TF_USAGE for a device that is not an ordinal. */
export function machineFacts(device = 0): MachineFacts {
  const { gpus, driverVersion } = onDevice(visibleGpus(), device);
  const [gpu] = gpus;
  return {
    gpu: gpu?.name ?? null,
    gpuComputeCapability: gpu?.computeCapability ?? null,
    driver: driverVersion,
  };
}

/** What states the GPUs of an engine: an identity, or the parts of one. */
interface Reach {
  readonly target: { readonly computeCapabilities: readonly number[] };
  readonly recipe: { readonly hardwareCompatibility: string };
}

/** Whether an engine runs on GPUs of a compute capability; one that states none is left to the library. */
export const runsOn = (sm: number, { target: { computeCapabilities: built }, recipe }: Reach): boolean =>
  built.length === 0 ||
  built.includes(sm) ||
  (recipe.hardwareCompatibility === 'ampere-plus' && isAmperePlus(sm));

/** Why an engine cannot run on the GPU of a list of one, completing "because …"; null when it can. */
export function whyNotRun(list: GpuList, engine: Reach): string | null {
  const [gpu] = list.gpus;
  if (gpu === undefined) return `this machine has no usable NVIDIA GPU (${whyNoGpu(list)})`;
  if (runsOn(gpu.computeCapability, engine)) return null;
  const served = engine.target.computeCapabilities.map((sm) => `sm_${sm}`).join(', ');
  return `the engine serves ${served} and GPU ${gpu.index} is ${gpu.name}, sm_${gpu.computeCapability}`;
}

/** The environment of a child that is to see one GPU, and that as its first: the one this process sees as `device`. */
export const onlyGpu = (environment: NodeJS.ProcessEnv, device: number): NodeJS.ProcessEnv => ({
  ...environment,
  CUDA_VISIBLE_DEVICES: visibleEntry(environment, device),
});

/**
 * The GPU's name in CUDA_VISIBLE_DEVICES: where that is set, it is a list of indices or UUIDs; else indices of all GPUs count. A number beyond the
 * list names no GPU: the driver then shows none, and the child reports it.
 */
export const visibleEntry = ({ CUDA_VISIBLE_DEVICES: visible }: NodeJS.ProcessEnv, device: number): string =>
  visible === undefined ? String(device) : (visible.split(',')[device]?.trim() ?? 'none');
