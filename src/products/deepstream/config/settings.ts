import { didYouMean } from '../../../base/text/suggest-name.js';
import { type FindingCode, Findings } from './findings.js';
import type { KeyEntry, KeyGroups } from './key-file.js';
import { type NvinferKey, nvinferKeys } from './keys.js';

type Value = number | string | readonly number[] | readonly string[];

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
    if ([0, 3].includes(this.number('network-type', 0))) this.#judgeClasses();
  }

  text(key: string): string | undefined {
    const value = this.#values.get(key);
    return typeof value === 'string' && value !== '' ? value : undefined;
  }

  number(key: string, otherwise: number): number {
    return (this.#values.get(key) as number | undefined) ?? otherwise;
  }

  list<T extends number | string>(key: string): readonly T[] {
    return (this.#values.get(key) as readonly T[] | undefined) ?? [];
  }

  has = (key: string): boolean => this.#values.has(key);

  isSet = (key: string): boolean => this.#values.get(key) === 1;

  /** `file:line` of a key, or the file. */
  where = (key: string): string => {
    const line = this.#file.groups.get('property')?.get(key)?.line;
    return line === undefined ? this.#path : `${this.#path}:${line}`;
  };

  #readGroup(group: string, entries: ReadonlyMap<string, KeyEntry>): void {
    const kind = group === 'property' ? group : group.startsWith(ATTRIBUTES) ? 'class-attrs' : undefined;
    if (kind === undefined) {
      const near = didYouMean(group, ['property', 'class-attrs-all']);
      this.findings.add('group-unknown', this.#path, `nvinfer ignores the group "${group}".${near}`);
      return;
    }
    for (const [key, { value, line }] of entries) {
      const add = (code: FindingCode, message: string) =>
        this.findings.add(code, `${this.#path}:${line}`, message);
      const known = nvinferKeys.get(key);
      const { form } = this.#file;
      if (known?.group !== kind || (known.isTextOnly && form === 'yaml')) {
        const here = [...nvinferKeys].filter(([, each]) => each.group === kind).map(([name]) => name);
        const why = known === undefined ? didYouMean(key, here) : ` It belongs to ${known.group}.`;
        add('key-unknown', `nvinfer ignores ${key} in the ${form} group "${group}".${why}`);
        continue;
      }
      if (known.isLegacy) add('key-legacy', `${key} is a legacy key.`);
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
    const classes = this.number('num-detected-classes', 0);
    for (const group of this.#file.groups.keys()) {
      if (!group.startsWith(ATTRIBUTES) || group === `${ATTRIBUTES}all`) continue;
      const index = /^\s*\d+/.exec(group.slice(ATTRIBUTES.length))?.[0];
      if (index === undefined || Number(index) >= classes)
        this.findings.add('class-attrs', this.#path, `[${group}]: num-detected-classes is ${classes}.`);
    }
  }
}

const ATTRIBUTES = 'class-attrs-';

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

function readValue(key: NvinferKey, text: string, form: KeyGroups['form']): Value | Unread {
  const { kind, range, among, length } = key;
  const unreadable = (must: string): Unread => ({ code: 'value-unreadable', must });
  const outside = (must: string): Unread => ({ code: 'value-out-of-range', must });
  const between = ([low, high]: readonly [number, number]) =>
    high === Number.POSITIVE_INFINITY ? `${low} or more` : low === high ? `${low}` : `${low} to ${high}`;
  if (kind === 'boolean') {
    const isWord = form === 'key-file' && /^(true|false)\s*$/.test(text);
    if (!isWord && !/^[01]\s*$/.test(text)) return unreadable('0 or 1');
    return Number(text.startsWith('1') || text.startsWith('t'));
  }
  const isWhole = kind === 'integer' || kind === 'integers';
  const what = isWhole ? 'a whole number' : 'a number';
  if (kind === 'integer' || kind === 'decimal') {
    const number = numberIn(text, isWhole);
    if (number === undefined) return unreadable(`${what} with nothing behind it`);
    const isIn = among?.includes(number) ?? (number >= range[0] && number <= range[1]);
    return isIn ? number : outside(among?.join(', ') ?? between(range));
  }
  if (kind === 'integers' || kind === 'decimals') {
    const numbers = parts(text).map((part) => numberIn(part, isWhole));
    if (numbers.includes(undefined)) return unreadable(`${what}, then ";" and the next`);
    const isIn = numbers.length >= length[0] && numbers.length <= length[1];
    return isIn ? (numbers as number[]) : outside(`${between(length)} numbers`);
  }
  const wrong = kind === 'texts' ? /\\(?![sntr\\;])/ : /\\(?![sntr\\])/;
  if (form === 'key-file' && wrong.test(text.replaceAll('\\\\', '')))
    return unreadable('text with \\\\ for a backslash');
  return kind === 'texts' ? parts(text) : text;
}
