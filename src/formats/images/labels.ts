import { LARGEST_DOCUMENT, readText } from '../../base/files/files.js';
import { readYaml } from '../../base/text/yaml.js';
import { TrtforgeError } from '../../errors.js';

/**
 * Names of classes by index, from a file: a name a line, or YAML or JSON with `names` as a list or by number (Ultralytics' coco.yaml), or `id2label` (Hugging
 * Face's config.json).
 * Throws TF_EVAL_DATA for a file of another form.
 */
export function readLabels(path: string): readonly string[] {
  if (/\.(?:ya?ml|json)$/i.test(path)) {
    const { content } = readYaml(path, 'TF_EVAL_DATA');
    const { names, id2label } = Object(content) as { readonly names?: unknown; readonly id2label?: unknown };
    return checked(listOf(names ?? id2label ?? content), path);
  }
  const lines = readText(path, LARGEST_DOCUMENT, 'TF_EVAL_DATA').split(/\r?\n/);
  if (lines.at(-1) === '') lines.pop();
  return checked(lines, path);
}

/** The names that Ultralytics writes into an ONNX file's metadata, `{0: 'person', 1: "driver's seat"}`; undefined where there are none. */
export function labelsOfMetadata(metadata: Readonly<Record<string, string>>): readonly string[] | undefined {
  const byIndex = namesOfMetadata(metadata);
  return byIndex.size === 0
    ? undefined
    : checked(listOf(Object.fromEntries(byIndex)), 'the metadata "names"');
}

/** The same names by index, whether there is one for each class or not. */
export function namesOfMetadata({
  names = '',
}: Readonly<Record<string, string>>): ReadonlyMap<number, string> {
  const entries = names.matchAll(/(\d+)\s*:\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")/g);
  return new Map(
    Array.from(entries, ([, index, single, double]) => [
      Number(index),
      (single ?? double ?? '').replace(/\\(.)/g, '$1'),
    ]),
  );
}

/** A list as it is; a mapping from 0, 1, … in that order. */
function listOf(names: unknown): readonly unknown[] {
  if (Array.isArray(names)) return names;
  if (typeof names !== 'object' || names === null) return [];
  return Object.keys(names).map((_, index) => (names as Record<string, unknown>)[String(index)]);
}

function checked(names: readonly unknown[], from: string): readonly string[] {
  const at = names.findIndex((name) => typeof name !== 'string' || name.trim() === '');
  if (names.length === 0 || at >= 0)
    throw new TrtforgeError(
      'TF_EVAL_DATA',
      at >= 0 ? `Label ${at} of ${from} is not a name.` : `${from} has no list of names.`,
      { remedy: 'Write one name a line, in the order of the classes, or YAML with "names".' },
    );
  return names.map((name) => String(name).trim());
}
