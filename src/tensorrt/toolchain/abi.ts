import { readFileSync } from 'node:fs';
import type { Generation } from '../../addon/addon.js';
import { behaviour, products } from '../../behaviour/facts.js';
import { isWithin, rangeText } from '../../behaviour/versions.js';
import { isAtLeast, type Toolchain } from './toolchain.js';

/** The content of a table in `native/abi/` on one generation: the functions of each class and the numbers of each enumeration. */
interface AbiTable {
  readonly generation: Generation;
  /** First and last version the table was derived from. */
  readonly from: string;
  readonly to: string;
  readonly classes: Readonly<Record<string, { readonly slots: readonly AbiSlot[] }>>;
  readonly enums: Readonly<Record<string, Readonly<Record<string, AbiNumber>>>>;
}

interface AbiSlot {
  readonly index: number;
  readonly name: string;
  readonly parameters: number;
  readonly since?: string;
}

interface AbiNumber {
  readonly value: number;
  readonly since?: string;
}

export const generations: readonly Generation[] = behaviour.generations.value.map(
  ({ generation }) => generation,
);

const tables = new Map<Generation, AbiTable>();

export function abiTable(generation: Generation): AbiTable {
  let table = tables.get(generation);
  if (table === undefined) {
    const file = new URL(`../../../native/abi/${generation}.json`, import.meta.url);
    table = JSON.parse(readFileSync(file, 'utf8')) as AbiTable;
    tables.set(generation, table);
  }
  return table;
}

/** The generation whose table an installation follows; null where there is none. */
export function generationOf({
  product,
  version,
}: Pick<Toolchain, 'product' | 'version'>): Generation | null {
  const found = behaviour.generations.value.find((row) => row.product === product && isWithin(version, row));
  return found?.generation ?? null;
}

/** A function of a class, or a number of an enumeration, that may be missing in a version. */
export type Feature =
  | { readonly class: string; readonly name: string }
  | { readonly enum: string; readonly name: string };

/** The first version of a generation that has a feature; null where none has. */
export function sinceIn(generation: Generation, feature: Feature): string | null {
  const table = abiTable(generation);
  const found =
    'class' in feature
      ? table.classes[feature.class]?.slots.find(({ name }) => name === feature.name)
      : table.enums[feature.enum]?.[feature.name];
  return found === undefined ? null : (found.since ?? table.from);
}

/** The versions that have a feature, for an error: `TensorRT 10.8.0 to 10.x, TensorRT 11.x, TensorRT-RTX 1.7 to 1.x`. */
export function versionsWith(feature: Feature): string {
  const named = behaviour.generations.value.flatMap(({ generation, product, ...range }) => {
    const since = sinceIn(generation, feature);
    if (since === null) return [];
    const isWhole = since === abiTable(generation).from;
    return [`${products[product]} ${rangeText(isWhole ? range : { ...range, since })}`];
  });
  return named.length === 0 ? 'no version of TensorRT' : named.join(', ');
}

/** `sparse-weights` as TensorRT spells it: `kSPARSE_WEIGHTS`. */
export const enumerator = (name: string): string => `k${name.toUpperCase().replaceAll('-', '_')}`;

/** The number of an enumerator in a version of a generation; null where that version lacks it. */
export function numberOf(
  generation: Generation,
  version: string,
  enumeration: string,
  name: string,
): number | null {
  const since = sinceIn(generation, { enum: enumeration, name });
  if (since === null || !isAtLeast(version, since)) return null;
  return abiTable(generation).enums[enumeration]?.[name]?.value ?? null;
}
