import { basename } from 'node:path';
import { parseEngineName } from '../identity/engine-name.js';

/** The facts that a file name states of an engine. Names are hints: they are shown and compared with the plan's header. */
export interface NameHints {
  /** Which way of naming engines this is; null for none that is known. */
  readonly scheme: NameScheme | null;
  readonly model: string | null;
  readonly version: string | null;
  readonly precision: string | null;
  /** 86 for sm_86; null where the name gives none that can be. */
  readonly computeCapability: number | null;
  readonly trtVersion: string | null;
  /** Irregularities of the name, as sentences. */
  readonly oddities: readonly string[];
}

export type NameScheme =
  /** `{model}_{version}_{precision}_sm_{NN}_{TensorRT version}.trt` */
  | 'full'
  /** `{model}-{precision}-sm{NN}.plan` */
  | 'precision-sm'
  /** `{model}-{version}-sm{NN}.trt` */
  | 'version-sm'
  /** `{model}_dynamic_b{N}.engine` (DeepStream) */
  | 'dynamic-batch';

const PRECISION = '(?:as-is|fp32|tf32|fp16|bf16|int8|fp8|int4|fp4|best)';
const GPU = '(?:sm_?(?<sm>\\d{2,3})|(?<none>cpu|unknown))';
const ENDING = '\\.(?:engine|plan|trt)$';

/** Model names hold dashes and underscores themselves, so every pattern is anchored at the right. */
const precisionSm = new RegExp(`^(?<model>.+)-(?<precision>${PRECISION})-${GPU}${ENDING}`, 'i');
/** The same scheme where no torch or no GPU was there: `{model}-{precision}-cpu.plan`. */
const versionSm = new RegExp(`^(?<model>.+)-(?<version>[^-]+)-${GPU}${ENDING}`, 'i');
const dynamicBatch = new RegExp(`^(?<model>.+)_dynamic_b\\d+${ENDING}`, 'i');

/** Reads a file name or an object key. Never throws. */
export function readNameHints(path: string): NameHints {
  const name = basename(path);
  const full = parseEngineName(name);
  if (full !== undefined) {
    const { model, version, precision, computeCapabilities, trtVersion } = full;
    const computeCapability = computeCapabilities[0] ?? null;
    return { scheme: 'full', model, version, precision, computeCapability, trtVersion, oddities: [] };
  }
  const schemes = [
    ['precision-sm', precisionSm],
    ['version-sm', versionSm],
    ['dynamic-batch', dynamicBatch],
  ] as const;
  for (const [scheme, pattern] of schemes) {
    const parts = pattern.exec(name)?.groups;
    if (parts !== undefined) return hintsOf(scheme, parts);
  }
  return { ...nothing, oddities: [`The name ${name} follows no scheme that is known.`] };
}

const nothing: NameHints = {
  scheme: null,
  model: null,
  version: null,
  precision: null,
  computeCapability: null,
  trtVersion: null,
  oddities: [],
};

function hintsOf(scheme: NameScheme, parts: Readonly<Record<string, string | undefined>>): NameHints {
  return {
    ...nothing,
    scheme,
    model: parts.model ?? null,
    version: parts.version ?? null,
    precision: parts.precision?.toLowerCase() ?? null,
    computeCapability: parts.sm === undefined ? null : Number(parts.sm),
    oddities: [
      ...(parts.none === undefined ? [] : [missingGpu(parts.none.toLowerCase())]),
      ...(scheme === 'full' ? [] : ['The name has no TensorRT version.']),
    ],
  };
}

const missingGpu = (word: string): string =>
  word === 'cpu'
    ? 'The name has `cpu`: it was made where PyTorch saw no GPU, and a plan is always for one.'
    : 'The name has `unknown`: the program that named it saw no GPU.';
