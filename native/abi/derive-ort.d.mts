import type { OrtTable } from './slots-header.d.mts';

export interface OrtHeader {
  /** Minor version. */
  readonly version: number;
  /** In the order of the table. */
  readonly functions: readonly { readonly name: string; readonly type: string }[];
}

/** Reads the text of onnxruntime_c_api.h. */
export function readOrtHeader(text: string): OrtHeader;
/** What differs between a table and headers, a line each. */
export function differences(table: OrtTable, headers: readonly OrtHeader[]): string[];
/** The table of these functions, by headers of several versions. */
export function ortTable(names: readonly string[], headers: readonly OrtHeader[]): OrtTable;
