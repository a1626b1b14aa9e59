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
