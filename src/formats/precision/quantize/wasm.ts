/**
 * A WebAssembly module of one function over vectors of four 32-bit floats, assembled from nested calls: V8 has no vectors for JavaScript. Opcodes and layout: WebAssembly Core
 * Specification 2.0, chapter 5.
 */
export type Code = readonly number[];

/** What TypeScript has only with the types of browsers. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: Record<string, unknown> };
};

export interface VectorFunction {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): number };
  readonly run: (...parameters: readonly number[]) => void;
}

/** Unsigned LEB128. */
function unsigned(value: number): Code {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)];
}

/** Signed LEB128. */
function signed(value: number): Code {
  return value >= -0x40 && value < 0x40 ? [value & 0x7f] : [(value & 0x7f) | 0x80, ...signed(value >> 7)];
}

const vector = (opcode: number): Code => [0xfd, ...unsigned(opcode)];
const binary =
  (opcode: number) =>
  (left: Code, right: Code): Code => [...left, ...right, ...vector(opcode)];

export const and = binary(78);
export const add = binary(228);
export const subtract = binary(229);
export const multiply = binary(230);
/** The right operand where it is less, else the left. */
export const least = binary(234);
/** The right operand where it is greater, else the left. */
export const greatest = binary(235);

export const get = (local: number): Code => [0x20, ...unsigned(local)];
export const set = (local: number, value: Code): Code => [...value, 0x21, ...unsigned(local)];
export const integer = (value: number): Code => [0x41, ...signed(value)];
/** Adds to a local integer. */
export const advance = (local: number, by: number): Code => set(local, [...get(local), ...integer(by), 0x6a]);

/** Vectors are 16-byte aligned in memory. */
export const load = (address: Code): Code => [...address, ...vector(0), 4, 0];
export const store = (address: Code, value: Code): Code => [...address, ...value, ...vector(11), 4, 0];
/** One float in all four lanes. */
export const loadSplat = (address: Code): Code => [...address, ...vector(9), 2, 0];

/** Repeats the body until the local integer, which the body changes, is 0. */
export const untilZero = (local: number, body: Code): Code => [
  ...[0x03, 0x40],
  ...body,
  ...get(local),
  ...[0x0d, 0x00, 0x0b],
];

/** A function of integer parameters whose other locals are vectors, with a memory of one page. */
export function vectorFunction(parameters: number, vectors: number, body: Code): VectorFunction {
  const sized = (bytes: Code): Code => [...unsigned(bytes.length), ...bytes];
  const section = (id: number, entries: readonly Code[]): Code => [
    id,
    ...sized([...unsigned(entries.length), ...entries.flat()]),
  ];
  const text = (name: string): Code => sized([...Buffer.from(name)]);
  const [I32, V128, FUNCTION, END] = [0x7f, 0x7b, 0x60, 0x0b] as const;
  const bytes = [
    ...Buffer.from('\0asm\x01\0\0\0', 'latin1'),
    ...section(1, [[FUNCTION, parameters, ...Array<number>(parameters).fill(I32), 0]]),
    ...section(3, [[0]]),
    ...section(5, [[0, 1]]),
    ...section(7, [
      [...text('memory'), 2, 0],
      [...text('run'), 0, 0],
    ]),
    ...section(10, [sized([1, vectors, V128, ...body, END])]),
  ];
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(Uint8Array.from(bytes)));
  return exports as unknown as VectorFunction;
}
