import { copyFileSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { openFile } from '../../../base/files/byte-source.js';
import { statIfThere } from '../../../base/files/files.js';
import { makeFolder } from '../../../base/files/folders.js';
import { type FileKind, kindOf } from '../../../base/files/user-files.js';
import { formatBytes } from '../../../base/text/quantity.js';
import { TrtforgeError } from '../../../errors.js';
import { editModel } from '../../../formats/onnx/model.js';
import { removeTexts, seedAttributes, seededWeights } from '../../../formats/onnx/seeded-weights.js';
import { writeModel } from '../../../formats/onnx/write.js';
import type { Redact } from './redaction.js';

/** The files of a command, copied as they may be sent. */
export interface PackedInputs {
  /** Absolute path, of a file or of a folder with files, to its place below the folder. */
  readonly places: ReadonlyMap<string, string>;
  /** Places of the models among them. */
  readonly models: readonly string[];
  readonly leftOut: readonly { readonly path: string; readonly why: string }[];
}

/** Texts up to this size are searched for secrets. */
const LARGEST_TEXT = 64 << 20;

/**
 * Copies what a command read into `folder`, in the layout that it had: models with seeded weights unless `withWeights`, texts redacted, tensors, images and sound
 * as they are. Private keys and libraries are left out; so is, without `withWeights`, what may contain weights: engines and binary data.
 */
export async function packInputs(
  inputs: readonly string[],
  folder: string,
  { withWeights, redact, signal }: { withWeights: boolean; redact: Redact; signal: AbortSignal },
): Promise<PackedInputs> {
  const files = [...new Set(inputs.map((path) => resolve(path)))]
    .filter((path) => statIfThere(path)?.isFile() === true)
    .sort();
  const places = layout(files);
  const leftOut: { path: string; why: string }[] = [];
  const written = new Map<string, string>();
  const data = new Set<string>();
  const models: string[] = [];
  const targetOf = (path: string): string => {
    const target = join(folder, places.get(path)!);
    makeFolder(dirname(target));
    return target;
  };
  const put = (path: string, write: (target: string) => void) => {
    write(targetOf(path));
    written.set(path, places.get(path)!);
  };
  for (const path of files.filter((each) => kindOf(each) === 'an ONNX model'))
    try {
      for (const file of await copyModel(path, targetOf(path), withWeights, signal)) data.add(resolve(file));
      written.set(path, places.get(path)!);
      models.push(places.get(path)!);
    } catch (error) {
      if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED') throw error;
      if (withWeights) put(path, (target) => copyFileSync(path, target));
      else leftOut.push({ path, why: `its weights cannot be replaced: ${error.message}` });
    }
  for (const path of files) {
    if (written.has(path) || data.has(path) || leftOut.some((each) => each.path === path)) continue;
    const kind = kindOf(path);
    const why = whyLeftOut(path, kind, withWeights);
    if (why !== null) leftOut.push({ path, why });
    else
      put(path, (target) => {
        if (isTextKind(kind)) writeFileSync(target, redact(readFileSync(path, 'utf8')));
        else copyFileSync(path, target);
      });
  }
  return { places: withFolders(written), models, leftOut };
}

/** Writes the model in one piece, and gives the files that it was in. */
async function copyModel(
  path: string,
  target: string,
  withWeights: boolean,
  signal: AbortSignal,
): Promise<readonly string[]> {
  return editModel(path, async (model) => {
    const replacements = withWeights ? undefined : seededWeights(model);
    if (!withWeights) seedAttributes(model);
    removeTexts(model);
    await writeModel(model, target, { replacements, signal });
    return model.files();
  });
}

/** Tensors, images and sound: what models are passed. */
const dataFiles = /\.(npz|npy|jpe?g|png|webp|wav|flac)$/i;

function whyLeftOut(path: string, kind: FileKind | undefined, withWeights: boolean): string | null {
  const head = headOf(path);
  if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(head)) return 'a private key';
  if (head.startsWith('\x7fELF')) return 'a library';
  if (isTextKind(kind))
    return statSync(path).size > LARGEST_TEXT ? `a text of more than ${formatBytes(LARGEST_TEXT)}` : null;
  if (kind === undefined || dataFiles.test(path) || withWeights) return null;
  return kind === 'a TensorRT plan' ? 'an engine contains the weights' : 'it may contain weights';
}

const isTextKind = (kind: FileKind | undefined): boolean =>
  kind !== undefined && /text|page|XML|JSON/.test(kind);

function headOf(path: string): string {
  const source = openFile(path);
  try {
    const head = Buffer.alloc(4096);
    return head.toString('latin1', 0, source.read(head, 0, Math.min(head.length, source.size)));
  } finally {
    source.close();
  }
}

/** Where each file goes: its place below the outermost folder with files around it, which itself has no name. */
function layout(files: readonly string[]): ReadonlyMap<string, string> {
  const folders = [...new Set(files.map((file) => dirname(file)))];
  const roots = folders.filter((folder) => !folders.some((other) => folder.startsWith(`${other}${sep}`)));
  return new Map(
    files.map((file) => {
      const root = roots.find((folder) => file.startsWith(`${folder}${sep}`)) ?? dirname(file);
      const top = roots.length === 1 ? 'inputs' : join('inputs', String(roots.indexOf(root) + 1));
      return [file, join(top, relative(root, file))];
    }),
  );
}

function withFolders(files: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const places = new Map(files);
  for (const [file, place] of files)
    for (let [from, to] = [dirname(file), dirname(place)]; to !== '.' && !places.has(from); ) {
      places.set(from, to);
      if (relative(dirname(to), to) !== relative(dirname(from), from)) break;
      [from, to] = [dirname(from), dirname(to)];
    }
  return places;
}

/** An argument with the packed files in place of the user's: `m.onnx`, `x=@x.npy`, `--data=a.npz,b.npz`. */
export function withPlaces(
  arg: string,
  places: ReadonlyMap<string, string>,
  shown: (place: string) => string,
): string {
  const whole = places.get(resolve(arg));
  if (whole !== undefined) return shown(whole);
  return arg.replace(/[^=@,]+/g, (part) => {
    const place = places.get(resolve(part));
    return place === undefined ? part : shown(place);
  });
}
