import { didYouMean } from '../../../base/text/suggest-name.js';
import { type FindingCode, Findings } from './findings.js';
import { NETWORK_TYPES, type NvinferKey, nvinferKeys, translatedKeys } from './nvinfer-keys.js';
import type { KeyEntry, KeyGroups } from './read-config.js';

type Value = number | string | readonly number[] | readonly string[];

const ATTRIBUTES = 'class-attrs-';

/** The values of [property] as nvinfer reads them, and what is wrong with the keys of the file. */
export class NvinferSettings {
  readonly findings = new Findings();
  readonly #values = new Map<string, Value>();
  readonly #file: KeyGroups;
  readonly #path: string;

  /** Unknown keys nvinfer ignores; a value that it cannot read or take ends the pipeline. */
  constructor(file: KeyGroups, path: string) {
    this.#file = file;
    this.#path = path;
    if (!file.groups.has('property'))
      this.findings.add('group-missing', path, 'The group "property" is missing.');
    for (const { key, line } of file.replaced)
      this.findings.add('key-twice', `${path}:${line}`, `${key} stands twice; the last one counts.`);
    for (const [group, entries] of file.groups) this.#readGroup(group, entries);
    for (const [legacy, [key, value]] of Object.entries(translatedKeys)) {
      if (!this.isSet(legacy) || this.has(key)) continue;
      this.#values.set(key, value);
      this.add('key-translated', legacy, `nvinfer takes ${legacy}=1 for ${key}=${value}.`);
    }
    if (this.isDetector) this.#judgeClasses();
    if (this.isSet('output-instance-mask') && this.number('cluster-mode') !== 4)
      this.add('mask-output', 'output-instance-mask', 'nvinfer does not start: masks are not clustered.');
  }

  text(key: string): string | undefined {
    const value = this.#values.get(key);
    return typeof value === 'string' && value !== '' ? value : undefined;
  }

  number(key: string, otherwise = 0): number {
    return (this.#values.get(key) as number | undefined) ?? otherwise;
  }

  list<T extends number | string>(key: string): readonly T[] {
    return (this.#values.get(key) as readonly T[] | undefined) ?? [];
  }

  /** C;H;W, of an older key too where infer-dims is absent. */
  get inferDims(): readonly number[] {
    const key = ['infer-dims', 'input-dims', 'uff-input-dims'].find(this.has) ?? '';
    return this.list<number>(key).slice(0, 3);
  }

  has = (key: string): boolean => this.#values.has(key);

  isSet = (key: string): boolean => this.#values.get(key) === 1;

  get isDetector(): boolean {
    return [0, 3].includes(this.number('network-type'));
  }

  /** `file:line` of a key, or the file. */
  where = (key: string): string => {
    const line = this.#file.groups.get('property')?.get(key)?.line;
    return line === undefined ? this.#path : `${this.#path}:${line}`;
  };

  /** A finding at a key of [property]. */
  add(code: FindingCode, key: string, message: string, lesser?: 'info' | 'warning'): void {
    this.findings.add(code, this.where(key), message, lesser);
  }

  #readGroup(group: string, entries: ReadonlyMap<string, KeyEntry>): void {
    const kind = group.startsWith(ATTRIBUTES) ? 'class-attrs' : 'property';
    if (kind === 'property' && group !== kind) {
      const near = didYouMean(group, ['property', 'class-attrs-all']);
      this.findings.add('group-unknown', this.#path, `nvinfer ignores the group "${group}".${near}`);
      return;
    }
    const { form } = this.#file;
    for (const [key, { value, line }] of entries) {
      const add = (code: FindingCode, message: string) =>
        this.findings.add(code, `${this.#path}:${line}`, message);
      const known = nvinferKeys.get(key);
      if (known?.group !== kind || (known.isTextOnly && form === 'yaml')) {
        const here = [...nvinferKeys].flatMap(([name, each]) => (each.group === kind ? name : []));
        const why = known === undefined ? didYouMean(key, here) : ` It belongs to ${known.group}.`;
        add('key-unknown', `nvinfer ignores ${key} in the ${form} group "${group}".${why}`);
        continue;
      }
      const [newer] = translatedKeys[key] ?? [];
      const isTranslated = newer !== undefined && !entries.has(newer);
      if (known.isLegacy && !isTranslated) add('key-legacy', `${key} is a legacy key.`);
      if (known.kind === 'path' && /\s#|\s$|^["']/.test(value))
        add('value-blanks', `nvinfer takes all of "${value}" for the path, with quotes, blanks and comment.`);
      const read = readValue(known, value, form);
      if (typeof read === 'object' && 'code' in read)
        add(read.code, `${key}=${value.slice(0, 80)} must be ${read.must}; nvinfer does not start.`);
      else if (kind === 'property') this.#values.set(key, read);
    }
  }

  /** A group of a class that there is not ends the pipeline of a detector. */
  #judgeClasses(): void {
    const classes = this.number('num-detected-classes');
    for (const group of this.#file.groups.keys()) {
      if (!group.startsWith(ATTRIBUTES) || group === `${ATTRIBUTES}all`) continue;
      const index = /^\s*\d+/.exec(group.slice(ATTRIBUTES.length))?.[0];
      if (index === undefined || Number(index) >= classes)
        this.findings.add('class-attrs', this.#path, `[${group}]: num-detected-classes is ${classes}.`);
    }
  }
}

interface Unread {
  readonly code: 'value-unreadable' | 'value-out-of-range';
  readonly must: string;
}

/** GLib reads a whole number up to a blank, and takes nothing behind a decimal one. */
function numberIn(text: string, isWhole: boolean): number | undefined {
  const form = isWhole ? /^\s*[+-]?\d{1,10}(?=\s|$)/ : /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
  const value = Number(form.exec(text)?.[0] ?? 'none');
  return Number.isFinite(value) && (!isWhole || Math.abs(value) < 2 ** 31) ? value : undefined;
}

/** GLib ends each part with `;`, so that the last one may stand without. */
const parts = (text: string) => (text === '' ? [] : text.replace(/;$/, '').split(';'));

function readValue({ kind, low, high }: NvinferKey, text: string, form: KeyGroups['form']): Value | Unread {
  const unreadable = (must: string): Unread => ({ code: 'value-unreadable', must });
  const outside = (must: string): Unread => ({ code: 'value-out-of-range', must });
  const isList = kind.endsWith('s');
  if (kind === 'boolean') {
    if (form === 'key-file' && /^(true|false)\s*$/.test(text)) return Number(text.startsWith('t'));
    return /^[01]\s*$/.test(text) ? Number(text) : unreadable('0 or 1');
  }
  if (/^(path|text)/.test(kind)) {
    const escapes = isList ? /\\[sntr\\;]/g : /\\[sntr\\]/g;
    if (form === 'key-file' && text.replaceAll(escapes, '').includes('\\'))
      return unreadable('text with \\\\ for a backslash');
    return isList ? parts(text) : text;
  }
  const numbers = (isList ? parts(text) : [text]).map((part) => numberIn(part, !kind.startsWith('decimal')));
  const what = kind.startsWith('decimal') ? 'a number' : 'a whole number';
  if (numbers.includes(undefined))
    return unreadable(`${what}${isList ? ', then ";" and the next' : ' with nothing behind it'}`);
  const judged = isList ? numbers.length : numbers[0]!;
  if (kind === 'type' && !NETWORK_TYPES.includes(judged)) return outside(NETWORK_TYPES.join(', '));
  if (judged < low || judged > high)
    return outside(
      `${low}${high === Number.POSITIVE_INFINITY ? ' or more' : ` to ${high}`}${isList ? ' numbers' : ''}`,
    );
  return isList ? (numbers as number[]) : judged;
}
