import { LARGEST_DOCUMENT, readText } from '../../base/files/files.js';
import { readYaml } from '../../base/text/yaml.js';
import { isEngineFile } from '../../engines/plan/header.js';
import { TrtforgeError } from '../../errors.js';
import { factsOfModel } from '../../formats/onnx/facts-of-model.js';
import type { Findings } from './findings.js';

/** A network with names of its classes. */
export interface LabelRequest {
  /** An engine or an ONNX model. */
  readonly model: string;
  /** File with the names of the classes. */
  readonly labels?: string | undefined;
  /** The model whose metadata name the classes, too; default `model`. An engine has none. */
  readonly namedBy?: string | undefined;
}

/** Names are equal but for case and white space around them. */
export const comparable = (name: string): string => name.trim().toLowerCase();

export function metadataOf({ model, namedBy = model }: LabelRequest): Readonly<Record<string, string>> {
  return isEngineFile(namedBy) ? {} : factsOfModel(namedBy).metadata;
}

/** The names of the file of labels, where there is one; those that the model itself names otherwise are findings: their results would be those of another class. */
export function readLabelsBeside(request: LabelRequest, findings: Findings): readonly string[] | undefined {
  if (request.labels === undefined) return undefined;
  const labels = readLabels(request.labels);
  const named = namesOfMetadata(metadataOf(request));
  const shown = (name: string | undefined) => (name === undefined ? 'missing' : `"${name}"`);
  for (const at of named.size === 0 ? [] : new Set([...labels.keys(), ...named.keys()])) {
    const [label, name] = [labels[at], named.get(at)];
    if (label === undefined || name === undefined || comparable(label) !== comparable(name))
      findings.add('contradicting-label', `label ${at} is ${shown(label)}, in the model ${shown(name)}`);
  }
  return labels;
}

/**
 * Names of a detector's classes by index, from a file: a name a line, or YAML or JSON with `names` as a list or by number (Ultralytics' coco.yaml).
 * Throws TF_EVAL_DATA for a file of another form.
 */
export function readLabels(path: string): readonly string[] {
  if (/\.(?:ya?ml|json)$/i.test(path)) {
    const { content } = readYaml(path, 'TF_EVAL_DATA');
    const named = typeof content === 'object' && content !== null && 'names' in content;
    return checked(listOf(named ? content.names : content), path);
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
function namesOfMetadata({ names = '' }: Readonly<Record<string, string>>): ReadonlyMap<number, string> {
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
