import { operatorRows, typeSets } from './operator-table.js';

/** One formal input or output of an operator: a type variable, or one fixed type. */
interface FormalValue {
  /** The type variable that fixes its type together with every other value of that variable; undefined for a fixed type. */
  readonly variable: string | undefined;
  /** The types it may have; one entry for a fixed type. */
  readonly allowed: ReadonlySet<string>;
  readonly optional: boolean;
  /** `same`: any number of values of one type; `mixed`: any number, each of its own type. */
  readonly variadic: 'no' | 'same' | 'mixed';
}

/** The types of one version of one operator, as ONNX states them. */
export interface OperatorSignature {
  readonly since: number;
  readonly inputs: readonly FormalValue[];
  readonly outputs: readonly FormalValue[];
}

type Versions = readonly { readonly since: number; readonly row: readonly string[] }[];

/** The operators of a domain; at opsets beyond the newest that was known when they were written down, each may have changed. */
interface Table {
  readonly operators: ReadonlyMap<string, Versions>;
  readonly newest: number;
}

const tables = new Map<string, Table>();
const parsed = new Map<string, OperatorSignature>();
const allowedSets = new Map<number, ReadonlySet<string>>();

/** The domain as the table spells it: `ai.onnx` is the default domain, spelled as the empty string. */
export const plainDomain = (domain: string): string => (domain === 'ai.onnx' ? '' : domain);

/** The signature of an operator at an opset, or undefined when the operator or the opset is unknown (0 where a model imports none), newer, or withdrawn by then. */
export function operatorSignature(
  domain: string,
  type: string,
  opset: number,
): OperatorSignature | undefined {
  const { operators, newest } = tableOf(plainDomain(domain));
  const version = operators.get(type)?.findLast((candidate) => candidate.since <= opset);
  if (version === undefined || version.row[2] === '-' || opset > newest) return undefined;
  const key = `${plainDomain(domain)}:${type}:${version.since}`;
  let signature = parsed.get(key);
  if (signature === undefined) {
    signature = parse(version.row, version.since);
    parsed.set(key, signature);
  }
  return signature;
}

/** Whether ONNX has an operator of this name, at any opset. */
export const isOnnxOperator = (type: string): boolean => tableOf('').operators.has(type);

/** The first opset from `from` on whose version of the operator satisfies `accepts`, or undefined. */
export function firstOpset(
  domain: string,
  type: string,
  from: number,
  accepts: (signature: OperatorSignature) => boolean,
): number | undefined {
  const versions = tableOf(plainDomain(domain)).operators.get(type) ?? [];
  const now = operatorSignature(domain, type, from);
  if (now !== undefined && accepts(now)) return from;
  for (const { since } of versions) {
    const signature = since > from ? operatorSignature(domain, type, since) : undefined;
    if (signature !== undefined && accepts(signature)) return since;
  }
  return undefined;
}

/** The formal value that stands for actual position `index`; positions past the end belong to a variadic last one. */
export function formalAt(formals: readonly FormalValue[], index: number): FormalValue | undefined {
  const last = formals.at(-1);
  return formals[index] ?? (last !== undefined && last.variadic !== 'no' ? last : undefined);
}

function tableOf(domain: string): Table {
  const known = tables.get(domain);
  if (known !== undefined) return known;
  const operators = new Map<string, { since: number; row: readonly string[] }[]>();
  let newest = 0;
  for (const line of (operatorRows.get(domain) ?? '').split('\n')) {
    if (line === '') continue;
    const row = line.split(';');
    const [name = '', since = '0'] = row;
    const versions = operators.get(name) ?? [];
    versions.push({ since: Number(since), row });
    operators.set(name, versions);
    newest = Math.max(newest, Number(since));
  }
  const table = { operators, newest };
  tables.set(domain, table);
  return table;
}

function parse(row: readonly string[], since: number): OperatorSignature {
  const [, , inputs = '', outputs = '', variables = ''] = row;
  const sets = new Map<string, ReadonlySet<string>>();
  for (const pair of variables.split(',').filter(Boolean)) {
    const [name = '', index = ''] = pair.split('=');
    sets.set(name, allowedSet(Number(index)));
  }
  const formals = (text: string) =>
    text
      .split(',')
      .filter(Boolean)
      .map((part) => formal(part, sets));
  return { since, inputs: formals(inputs), outputs: formals(outputs) };
}

function formal(text: string, sets: ReadonlyMap<string, ReadonlySet<string>>): FormalValue {
  const name = text.replace(/[?*]+$/, '');
  const set = sets.get(name);
  return {
    variable: set === undefined ? undefined : name,
    allowed: set ?? new Set([name]),
    optional: text.endsWith('?'),
    variadic: text.endsWith('**') ? 'mixed' : text.endsWith('*') ? 'same' : 'no',
  };
}

function allowedSet(index: number): ReadonlySet<string> {
  let set = allowedSets.get(index);
  if (set === undefined) {
    set = new Set((typeSets[index] ?? '').split(' '));
    allowedSets.set(index, set);
  }
  return set;
}
