import { isRecord } from '../../base/files/json.js';
import { didYouMean } from '../../base/text/suggest-name.js';
import { TrtforgeError } from '../../errors.js';
import { matchesGlob } from './glob.js';

/** One step of a path: a key, an index (from the end where negative), every element, or the elements whose field has a value. */
type Step =
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'index'; readonly index: number }
  | { readonly kind: 'every' }
  | { readonly kind: 'those'; readonly key: string; readonly pattern: string };

/** A value and where it was found: `outputs[logits].pass`. */
export interface FoundValue {
  readonly at: string;
  readonly value: unknown;
}

const STEP =
  /\.?(?<key>[\p{L}_$][\p{L}\p{N}_$-]*)|\[(?<index>-?\d+)\]|\[(?<every>\*)\]|\[(?<field>[\p{L}_$][\p{L}\p{N}_$-]*)=(?:'(?<quoted>[^']*)'|(?<bare>[^\]']+))\]|\['(?<name>[^']*)'\]/uy;

export const isFieldPath = (path: string): boolean => parse(path) !== undefined;

/**
 * Every value a path leads to: `a.b`, `a['a name']`, `a[0]`, `a[-1]`, `a[*]`, `a[name=logits]` and `a[name=cache_*]`; `length` of a list is its length.
 * A list whose filter matches nothing and a missing key give an empty result. Errors: TF_GATE_POLICY_INVALID for an invalid path.
 */
export function valuesAt(root: unknown, path: string): readonly FoundValue[] {
  const steps = parse(path);
  if (steps === undefined)
    throw new TrtforgeError('TF_GATE_POLICY_INVALID', `"${path}" is not a path to a field.`);
  let found: readonly FoundValue[] = [{ at: '', value: root }];
  for (const step of steps) found = found.flatMap((each) => take(each, step));
  return found.filter(({ value }) => value !== undefined);
}

/** A hint for a path that leads nowhere: fields of its last name elsewhere, or the fields that are where it ends. */
export function fieldHint(root: unknown, path: string): string {
  const steps = parse(path) ?? [];
  const last = steps.at(-1);
  const same = last?.kind === 'key' ? fieldsNamed(root, last.key, '').slice(0, 3) : [];
  if (same.length > 0) return ` Fields of that name: ${same.join(', ')}.`;
  let found: readonly FoundValue[] = [{ at: '', value: root }];
  for (const step of steps) {
    const next = found.flatMap((each) => take(each, step));
    const keys = found.flatMap(({ value }) => (isRecord(value) ? Object.keys(value) : []));
    if (next.length === 0 && step.kind === 'key' && keys.length > 0)
      return ` ${found[0]?.at || 'It'} has ${[...new Set(keys)].join(', ')}.${didYouMean(step.key, keys)}`;
    found = next;
  }
  return '';
}

/** Paths of fields by their name, through mappings. */
const fieldsNamed = (value: unknown, name: string, at: string): readonly string[] =>
  !isRecord(value)
    ? []
    : Object.entries(value).flatMap(([key, inner]) => [
        ...(key === name && inner !== null && at !== '' ? [`${at}${key}`] : []),
        ...fieldsNamed(inner, name, `${at}${key}.`),
      ]);

function parse(path: string): readonly Step[] | undefined {
  const steps: Step[] = [];
  const reader = new RegExp(STEP);
  while (reader.lastIndex < path.length) {
    const start = reader.lastIndex;
    const groups = reader.exec(path)?.groups;
    const needsDot = steps.length > 0 && groups?.key !== undefined;
    if (groups === undefined || needsDot !== (path[start] === '.')) return undefined;
    steps.push(stepOf(groups));
  }
  return steps.length === 0 ? undefined : steps;
}

function stepOf(groups: Readonly<Record<string, string | undefined>>): Step {
  const { key, index, every, field, quoted, bare, name } = groups;
  if (index !== undefined) return { kind: 'index', index: Number(index) };
  if (every !== undefined) return { kind: 'every' };
  if (field !== undefined) return { kind: 'those', key: field, pattern: quoted ?? bare ?? '' };
  return { kind: 'key', key: key ?? name ?? '' };
}

function take({ at, value }: FoundValue, step: Step): readonly FoundValue[] {
  if (step.kind === 'key') return takeKey(at, value, step.key);
  if (!Array.isArray(value)) return [];
  const labels = labelsOf(value);
  const elements = value.map((element: unknown, index) => ({
    at: `${at}[${labels[index]}]`,
    value: element,
  }));
  if (step.kind === 'every') return elements;
  if (step.kind === 'index') return [elements.at(step.index)].filter((each) => each !== undefined);
  return elements.filter(({ value: element }) => {
    const own = isRecord(element) && Object.hasOwn(element, step.key) ? element[step.key] : undefined;
    return own !== undefined && matchesGlob(String(own), step.pattern);
  });
}

function takeKey(at: string, value: unknown, key: string): readonly FoundValue[] {
  const place = at === '' ? key : `${at}.${key}`;
  if (Array.isArray(value)) return key === 'length' ? [{ at: place, value: value.length }] : [];
  return isRecord(value) && Object.hasOwn(value, key) ? [{ at: place, value: value[key] }] : [];
}

/** The fields with the names of list elements in results: outputs are called by their tensors. */
const NAMES = ['name', 'tensor'] as const;

/** Elements by their names, where each has one of its own: places stay the same when a list is in another order. */
function labelsOf(list: readonly unknown[]): readonly string[] {
  for (const key of NAMES) {
    const names = list.map((element) => (isRecord(element) ? element[key] : undefined));
    const texts = names.filter((name) => typeof name === 'string' && name !== '') as readonly string[];
    if (texts.length === list.length && new Set(texts).size === texts.length) return texts;
  }
  return list.map((_, index) => String(index));
}
