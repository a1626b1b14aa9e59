import { readFileSync } from 'node:fs';
import type { Generation } from '../addon/addon.js';
import type { Toolchain } from './toolchain.js';

/** What a table in `native/abi/` reports of one generation: the functions of each class and the numbers of each enumeration. */
export interface AbiTable {
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

export const generations: readonly Generation[] = ['8', '10', '11', 'rtx1'];

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

/** The generation whose table an installation follows; null where there is none (8.5, 9.x, tensorrt-rtx before 1.7, majors to come). */
export function generationOf({
  product,
  version,
}: Pick<Toolchain, 'product' | 'version'>): Generation | null {
  const [major, minor = 0] = version.split('.').map(Number);
  if (product === 'tensorrt-rtx') return major === 1 && minor >= 7 ? 'rtx1' : null;
  if (major === 8) return minor === 6 ? '8' : null;
  return major === 10 ? '10' : major === 11 ? '11' : null;
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

/** True where `version` is `since` or newer; numbers a version lacks count as zero. */
export function isAtLeast(version: string, since: string): boolean {
  const wanted = since.split('.').map(Number);
  const own = version.split('.').map(Number);
  for (const [index, number] of wanted.entries()) {
    const difference = (own[index] ?? 0) - number;
    if (difference !== 0) return difference > 0;
  }
  return true;
}

/** The versions that have a feature, for an error: `TensorRT 10.8.0 to 10.x, TensorRT 11.x, tensorrt-rtx 1.7.1 and newer`. */
export function versionsWith(feature: Feature): string {
  const named = generations.flatMap((generation) => {
    const since = sinceIn(generation, feature);
    if (since === null) return [];
    if (generation === '8') return ['TensorRT 8.6'];
    if (generation === 'rtx1') return [`tensorrt-rtx ${since} and newer`];
    return since === abiTable(generation).from
      ? [`TensorRT ${generation}.x`]
      : [`TensorRT ${since} to ${generation}.x`];
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
