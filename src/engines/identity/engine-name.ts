import type { IdentityDocument } from './identity.js';

/** The parts of a readable engine name. A name is a hint for people; the passport decides. */
interface EngineName {
  readonly model: string;
  /** The user's name for this version of the model, or the first 8 digits of its digest. */
  readonly version: string;
  readonly precision: string;
  readonly computeCapabilities: readonly number[];
  readonly trtVersion: string;
}

export const engineExtensions = ['engine', 'plan', 'trt'] as const;

export type EngineExtension = (typeof engineExtensions)[number];

/**
 * `{model}_{version}_{precision}_{sm_NN}_{trt version}.engine`. Several compute capabilities are joined by dashes, ascending: `sm_80-86-89`.
 * Characters that file systems or object stores treat specially become dashes; so do underscores in the version, which end the model's name.
 */
export function formatEngineName(name: EngineName, extension: EngineExtension = 'engine'): string {
  const sm = name.computeCapabilities.join('-');
  return `${plain(name.model)}_${plain(name.version).replaceAll('_', '-')}_${name.precision}_sm_${sm}_${name.trtVersion}.${extension}`;
}

/** The name parts of an identity; `modelName` is usually the model file's name without `.onnx`. */
export function engineNameOf(
  document: IdentityDocument,
  modelName: string,
  modelVersion: string | null,
): EngineName {
  return {
    model: modelName,
    version: modelVersion ?? document.model.slice(0, 8),
    precision: document.recipe.precision,
    computeCapabilities: document.target.computeCapabilities,
    trtVersion: document.target.version,
  };
}

const pattern =
  /^(?<rest>.+)_(?<precision>as-is|fp32|tf32|fp16|bf16|int8|fp8|int4|fp4|best)_sm_(?<sm>\d{2,3}(?:-\d{2,3})*)_(?<version>\d+\.\d+(?:\.\d+)*)\.(?:engine|plan|trt)$/;

/**
 * Reads a readable name. Model names and versions hold underscores themselves, so it is read from the right; the last underscore of
 * what remains parts model and version. Undefined for a name of another scheme.
 */
export function parseEngineName(fileName: string): EngineName | undefined {
  const parts = pattern.exec(fileName)?.groups;
  if (parts === undefined) return undefined;
  const { rest = '', precision = '', sm = '', version = '' } = parts;
  const cut = rest.lastIndexOf('_');
  if (cut <= 0 || cut === rest.length - 1) return undefined;
  return {
    model: rest.slice(0, cut),
    version: rest.slice(cut + 1),
    precision,
    computeCapabilities: sm.split('-').map(Number),
    trtVersion: version,
  };
}

/** Whether a readable name is that of an engine of a model called so. */
export const isNamedAfter = (fileName: string, modelName: string): boolean =>
  parseEngineName(fileName)?.model === plain(modelName);

const plain = (text: string): string =>
  text
    .replace(/[^A-Za-z0-9._+-]+/g, '-')
    .replace(/^[-.]+|-+$/g, '')
    .slice(0, 100) || 'model';

/** Where the passport of an engine lies: beside it. */
export const passportPath = (planPath: string): string => `${planPath}.passport.json`;

/** The folder that engines of a model lie in, by the readable name. */
export const modelFolder = (name: string): string => parseEngineName(name)?.model ?? 'other';

/** `model_…_1.7.1.116~3dedf15f.engine` */
export function longerName(name: string, identity: string): string {
  const extension = name.slice(name.lastIndexOf('.'));
  return `${name.slice(0, -extension.length)}~${identity.slice(0, 8)}${extension}`;
}

/**
 * Whether an engine is meant by a part of its readable name, in which `*` stands for anything (`resnet*fp16`) and the model's digest may be left out
 * (`resnet50_fp16`), or by the start (six digits and more) of its identity or digest.
 */
export const isCalled = (wanted: string, digest: string, name: string): boolean =>
  [name, name.replace(/_[\da-f]{8}(?=_)/, '')].some((each) => hasParts(each, wanted.split('*'))) ||
  (wanted.length >= 6 && digest.startsWith(wanted));

/** Whether a text has the parts, one after the other. */
function hasParts(text: string, parts: readonly string[]): boolean {
  let from = 0;
  return parts.every((part) => {
    const at = text.indexOf(part, from);
    from = at + part.length;
    return at >= 0;
  });
}
