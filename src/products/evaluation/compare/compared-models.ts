import { basename, dirname, extname, join } from 'node:path';
import { sha256, sha256OfFileInPieces } from '../../../base/files/digest.js';
import { listFolder, statIfThere } from '../../../base/files/files.js';
import { passportPath } from '../../../engines/identity/engine-name.js';
import { readModel } from '../../../engines/identity/model-digest.js';
import { readPassport } from '../../../engines/identity/passport.js';
import { isEngineFile } from '../../../engines/plan/header.js';
import { TrtforgeError } from '../../../errors.js';
import type { WorkContext } from '../../../events.js';
import { factsOfModel } from '../../../formats/onnx/inspect.js';
import {
  type FormatId,
  floatFormats,
  formatIds,
  quantizedFormatNamed,
} from '../../../formats/precision/formats/index.js';
import type { Variant } from '../run/variant.js';

/** A model or an engine that is compared, on every back end that takes it. */
export interface ComparedModel extends Pick<Variant, 'label' | 'role'> {
  readonly file: string;
  readonly kind: 'engine' | 'model';
  /** The precision that MODEL is converted to before it runs; null: it runs as it is. */
  readonly precision: FormatId | null;
  /** Of its content, weights in other files included, and of the conversion. */
  readonly digest: string;
}

/** The precisions that need no samples of a model's inputs. */
export const precisionsWithoutSamples: readonly FormatId[] = formatIds.filter(
  (id) => quantizedFormatNamed(id)?.activations !== true,
);

/**
 * MODEL, what it is converted to, and the candidates, each with a label of its own. Throws TF_USAGE for two of one label and a precision that needs samples, and what reading the files throws.
 */
export async function comparedModels(
  model: string,
  candidates: readonly string[],
  precisions: readonly FormatId[],
  context: WorkContext,
): Promise<readonly ComparedModel[]> {
  const unsampled = precisions.find((id) => !precisionsWithoutSamples.includes(id));
  if (unsampled !== undefined)
    throw new TrtforgeError(
      'TF_USAGE',
      `--precision ${unsampled} needs samples, which a comparison has none of.`,
      {
        remedy: `Convert the model first, \`trtforge convert --precision ${unsampled} --calibration FILE\`, and pass it with --candidate.`,
        details: { option: '--precision', precision: unsampled },
      },
    );
  const first = await readCompared(model, { role: 'model' }, context);
  const converted = precisions.map(
    (precision): ComparedModel => ({
      ...first,
      label: precision,
      role: 'converted',
      precision,
      digest: sha256(`${first.digest} ${precision}`),
    }),
  );
  if (converted.length > 0 && first.kind === 'engine')
    throw new TrtforgeError('TF_USAGE', `${model} is an engine, and --precision converts models.`, {
      remedy: 'Pass the ONNX model, or remove --precision.',
    });
  const others: ComparedModel[] = [];
  for (const text of candidates) {
    const { name, file } = namedFile(text);
    others.push(await readCompared(file, { role: 'candidate', label: name }, context));
  }
  const all = [first, ...converted, ...others];
  const twice = all.find(({ label }, at) => all.findIndex((each) => each.label === label) !== at);
  if (twice === undefined) return all;
  throw new TrtforgeError('TF_USAGE', `Two of the compared models are called "${twice.label}".`, {
    remedy: `Name the candidate: --candidate NAME=${twice.file}.`,
    details: { option: '--candidate', label: twice.label },
  });
}

/** `NAME=FILE` of a candidate; a file of that very name wins. */
export function namedFile(text: string): { readonly name: string | undefined; readonly file: string } {
  const named = statIfThere(text) === undefined ? /^([A-Za-z0-9][\w.-]*)=(.+)$/s.exec(text) : null;
  return { name: named?.[1], file: named?.[2] ?? text };
}

async function readCompared(
  file: string,
  { role, label }: { readonly role: Variant['role']; readonly label?: string | undefined },
  context: WorkContext,
): Promise<ComparedModel> {
  const bundle = bundleFiles(file);
  if (bundle !== null) {
    const digests: string[] = [];
    for (const each of [...bundle.meta, ...bundle.models]) digests.push(await digestOfFile(each, context));
    const word = role === 'model' ? 'models' : basename(bundle.folder).replaceAll(/[^\w.-]/g, '-');
    const digest = sha256(digests.join(' '));
    return { file, role, kind: bundle.kind, label: label ?? word, precision: null, digest };
  }
  if (isEngineFile(file)) {
    const passport = statIfThere(passportPath(file)) === undefined ? undefined : readPassport(file);
    const precision = passport?.identity.document.recipe.precision ?? 'engine';
    const digest = await sha256OfFileInPieces(file);
    return { file, role, kind: 'engine', label: label ?? precision, precision: null, digest };
  }
  const digest = await digestOfFile(file, context);
  const typed = label ?? typesOf(file) ?? basename(file, extname(file)).replaceAll(/[^\w.-]/g, '-');
  return { file, role, kind: 'model', label: typed, precision: null, digest };
}

/** The meta file of a bundle and the models beside it, or the engines of a folder; null for a single file. */
export function bundleFiles(path: string): {
  readonly folder: string;
  readonly kind: ComparedModel['kind'];
  readonly meta: readonly string[];
  readonly models: readonly string[];
} | null {
  const isFolder = statIfThere(path)?.isDirectory() === true;
  if (!isFolder && !/\.json$/i.test(path)) return null;
  const folder = isFolder ? path : dirname(path);
  const named = listFolder(folder).filter((name) => (isFolder ? /\.engine$/i : /\.onnx$/i).test(name));
  const models = named.sort().map((name) => join(folder, name));
  return { folder, kind: isFolder ? 'engine' : 'model', meta: isFolder ? [] : [path], models };
}

/** Of an ONNX model with its weights in other files; of any other file its bytes. */
async function digestOfFile(path: string, work: WorkContext): Promise<string> {
  if (!/\.onnx$/i.test(path)) return sha256OfFileInPieces(path);
  return (await readModel(path, work)).content.digest;
}

/** The types that a model computes in, in a word, by its operators and weights; undefined where they have no usual one. */
function typesOf(file: string): string | undefined {
  const { ops, initializersByDtype: weights } = factsOfModel(file);
  const quantised = Object.keys(weights).find((dtype) => /^(?:u?int4|float8|float4)/.test(dtype));
  if (ops.DequantizeLinear !== undefined) return quantised?.replace(/^float(\d).*/, 'fp$1') ?? 'int8';
  const words = new Map<string, string>([
    ['float32', 'fp32'],
    ...floatFormats.map(({ dtype, id }) => [dtype, id] as const),
  ]);
  const [most] = [...words.keys()]
    .filter((dtype) => weights[dtype] !== undefined)
    .sort((one, other) => weights[other]!.parameters - weights[one]!.parameters);
  return most === undefined ? undefined : words.get(most);
}
