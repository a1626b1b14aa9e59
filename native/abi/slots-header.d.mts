export interface SlotTable {
  readonly generation: string;
  readonly from: string;
  readonly to: string;
  readonly classes: Readonly<
    Record<
      string,
      {
        readonly impl?: string;
        readonly slots: readonly {
          readonly index: number;
          readonly name: string;
          readonly parameters: number;
          readonly type?: string;
          readonly since?: string;
          readonly except?: readonly string[];
        }[];
      }
    >
  >;
  readonly enums: Readonly<
    Record<string, Readonly<Record<string, { readonly value: number; readonly since?: string }>>>
  >;
}

export const GENERATIONS: readonly string[];
/** Reads the committed tables, in the order of `GENERATIONS`. */
export function readTables(folder?: URL): SlotTable[];
/** The C++ header that holds all tables. */
export function slotsHeader(tables: readonly SlotTable[]): string;

export interface OrtTable {
  /** Minor versions of the headers that the table was compared with. */
  readonly headers: readonly number[];
  readonly functions: Readonly<
    Record<string, { readonly index: number; readonly since?: number; readonly type: string }>
  >;
}

export const OLDEST_ORT_MINOR: number;
/** Reads the committed places of ONNX Runtime's C functions. */
export function readOrtTable(folder?: URL): OrtTable;
/** The C++ header of ONNX Runtime's C functions. */
export function ortHeader(table: OrtTable): string;
