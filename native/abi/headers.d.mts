export interface HeaderSlot {
  readonly index: number;
  readonly name: string;
  readonly parameters: number;
  /** As the machine passes result and parameters, `bool(text, int32)`; absent where a structure is passed that no code here passes. */
  readonly type?: string;
}

export interface Headers {
  /** `major.minor.patch` */
  readonly version: string;
  readonly classes: Readonly<
    Record<string, { readonly impl?: string; readonly slots: readonly HeaderSlot[] }>
  >;
  readonly enums: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly hasParser: boolean;
}

/** Reads a folder of TensorRT's public headers. */
export function readHeaders(folder: string): Headers;
