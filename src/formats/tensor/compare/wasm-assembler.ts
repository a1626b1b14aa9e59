/**
 * Just enough of a WebAssembly assembler to write vector kernels as expressions in TypeScript: no tool chain, no binary in the repository.
 * An expression is the bytes that leave its value on the stack, so nesting calls nests operands: `f32x4.add(get(a), load(get(p)))`.
 * Encodings: WebAssembly core specification 2.0, chapter 5 (binary format).
 */
export type Code = readonly number[];

export const valueTypes = { i32: 0x7f, i64: 0x7e, f32: 0x7d, f64: 0x7c, v128: 0x7b } as const;
export type ValueType = keyof typeof valueTypes;

/** Unsigned LEB128. */
function unsigned(value: number): number[] {
  const bytes: number[] = [];
  let rest = value >>> 0;
  do {
    const low = rest & 0x7f;
    rest >>>= 7;
    bytes.push(rest === 0 ? low : low | 0x80);
  } while (rest !== 0);
  return bytes;
}

/** Signed LEB128. */
function signed(value: number): number[] {
  const bytes: number[] = [];
  for (let rest = value | 0; ; ) {
    const low = rest & 0x7f;
    rest >>= 7;
    const isLast = (rest === 0 && (low & 0x40) === 0) || (rest === -1 && (low & 0x40) !== 0);
    bytes.push(isLast ? low : low | 0x80);
    if (isLast) return bytes;
  }
}

const operation =
  (...opcode: number[]) =>
  (...operands: readonly Code[]): Code => [...operands.flat(), ...opcode];

const vector = (opcode: number) => operation(0xfd, ...unsigned(opcode));

/** Memory accesses: opcode, alignment as a power of two, constant offset in bytes. */
const loadOf =
  (opcode: readonly number[], alignment: number) =>
  (address: Code, offset = 0): Code => [...address, ...opcode, alignment, ...unsigned(offset)];

const storeOf =
  (opcode: readonly number[], alignment: number) =>
  (address: Code, value: Code, offset = 0): Code => [
    ...address,
    ...value,
    ...opcode,
    alignment,
    ...unsigned(offset),
  ];

export const i32 = {
  load: loadOf([0x28], 2),
  load16: loadOf([0x2f], 1),
  store: storeOf([0x36], 2),
  store8: storeOf([0x3a], 0),
  isZero: operation(0x45),
  constant: (value: number): Code => [0x41, ...signed(value)],
  add: operation(0x6a),
  shiftLeft: operation(0x74),
  lessThan: operation(0x49),
  and: operation(0x71),
} as const;

export const i64 = {
  constant: (value: number): Code => [0x42, ...signed(value)],
  load: loadOf([0x29], 3),
  store: storeOf([0x37], 3),
  subtract: operation(0x7d),
  and: operation(0x83),
  trailingZeros: operation(0x7a),
  isZero: operation(0x50),
  toI32: operation(0xa7),
} as const;

export const f32 = {
  constant: (value: number): Code => [0x43, ...new Uint8Array(Float32Array.of(value).buffer)],
} as const;

export const f64 = {
  constant: (value: number): Code => [0x44, ...new Uint8Array(Float64Array.of(value).buffer)],
} as const;

export const v128 = {
  load: loadOf([0xfd, ...unsigned(0x00)], 4),
  store: storeOf([0xfd, ...unsigned(0x0b)], 4),
  and: vector(0x4e),
  andNot: vector(0x4f),
  or: vector(0x50),
  xor: vector(0x51),
  anyTrue: vector(0x53),
  constant: (bytes: Code): Code => [0xfd, ...unsigned(0x0c), ...bytes],
  /** Sixteen bytes by their place in the two operands together, 0 to 31. */
  shuffle: (first: Code, second: Code, places: readonly number[]): Code => [
    ...first,
    ...second,
    0xfd,
    ...unsigned(0x0d),
    ...places,
  ],
} as const;

export const f32x4 = {
  splat: vector(0x13),
  equals: vector(0x41),
  greaterThan: vector(0x44),
  abs: vector(0xe0),
  add: vector(0xe4),
  subtract: vector(0xe5),
  multiply: vector(0xe6),
  divide: vector(0xe7),
  /** `b < a ? b : a`: one machine instruction, unlike min; the order of operands decides for NaN. */
  pseudoMin: vector(0xea),
  pseudoMax: vector(0xeb),
} as const;

/** Named as those of f32x4. */
export const f64x2 = {
  splat: vector(0x14),
  equals: vector(0x47),
  greaterThan: vector(0x4a),
  abs: vector(0xec),
  add: vector(0xf0),
  subtract: vector(0xf1),
  multiply: vector(0xf2),
  divide: vector(0xf3),
  pseudoMin: vector(0xf6),
  pseudoMax: vector(0xf7),
  promoteLow: vector(0x5f),
} as const;

export const i64x2 = { subtract: vector(0xd1) } as const;

export const i8x16 = {
  /** Each byte of the second picks one of the first's; 16 and above pick zero. */
  swizzle: vector(0x0e),
  equals: vector(0x23),
  add: vector(0x6e),
} as const;

export const i16x8 = {
  greaterThan: vector(0x31),
  shiftLeft: vector(0x8b),
  shiftRightUnsigned: vector(0x8d),
  bitmask: vector(0x84),
  narrowUnsigned: vector(0x86),
  subtract: vector(0x91),
} as const;

export const i32x4 = {
  addPairwise: vector(0x7e),
  shiftRightUnsigned: vector(0xad),
  add: vector(0xae),
  subtract: vector(0xb1),
  /** Products of the signed 16-bit lanes, added in pairs. */
  dotPairs: vector(0xba),
} as const;

export const block = {
  when: (condition: Code, body: Code): Code => [...condition, 0x04, 0x40, ...body, 0x0b],
  /** Runs `body` again for as long as `condition` holds after it. */
  doWhile: (body: Code, condition: Code): Code => [0x03, 0x40, ...body, ...condition, 0x0d, 0, 0x0b],
} as const;

/** One function being written: hands out locals, the parameters first. */
export class FunctionWriter {
  readonly parameters: readonly ValueType[];
  readonly locals: ValueType[] = [];

  constructor(parameters: readonly ValueType[]) {
    this.parameters = parameters;
  }

  parameter(index: number): Local {
    return localAt(index);
  }

  local(type: ValueType): Local {
    this.locals.push(type);
    return localAt(this.parameters.length + this.locals.length - 1);
  }
}

export interface Local {
  readonly get: Code;
  set(value: Code): Code;
  /** Sets and leaves the value on the stack. */
  tee(value: Code): Code;
}

const localAt = (index: number): Local => ({
  get: [0x20, ...unsigned(index)],
  set: (value) => [...value, 0x21, ...unsigned(index)],
  tee: (value) => [...value, 0x22, ...unsigned(index)],
});

export interface FunctionSpec {
  readonly name: string;
  readonly writer: FunctionWriter;
  readonly body: Code;
  readonly result?: ValueType;
}

/** The part of the WebAssembly interface that is used; TypeScript declares it with the browser's library only. */
interface WebAssemblyApi {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
}

/** The bytes of a module with one memory of `pages` (64 KiB each, exported as `memory`) and the functions, exported by name. */
function assembleModule(pages: number, functions: readonly FunctionSpec[]): Uint8Array<ArrayBuffer> {
  const types = functions.map(({ writer, result }) => [
    0x60,
    ...list(writer.parameters.map((type) => [valueTypes[type]])),
    ...list(result === undefined ? [] : [[valueTypes[result]]]),
  ]);
  const exports = [
    [...text('memory'), 0x02, 0],
    ...functions.map(({ name }, index) => [...text(name), 0x00, ...unsigned(index)]),
  ];
  const bodies = functions.map(({ writer, body }) => {
    const locals = writer.locals.map((type) => [1, valueTypes[type]]);
    return sized([...list(locals), ...body, 0x0b]);
  });
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, list(types)),
    ...section(3, list(functions.map((_, index) => unsigned(index)))),
    ...section(5, list([[0x00, ...unsigned(pages)]])),
    ...section(7, list(exports)),
    ...section(10, list(bodies)),
  ]);
}

/** The exports of such a module, compiled and ready: the memory and the functions, of the type that the caller knows them to have. */
export function instantiateModule<Exports>(pages: number, functions: readonly FunctionSpec[]): Exports {
  const { WebAssembly: api } = globalThis as unknown as { readonly WebAssembly: WebAssemblyApi };
  return new api.Instance(new api.Module(assembleModule(pages, functions))).exports as Exports;
}

const list = (items: readonly Code[]): number[] => [...unsigned(items.length), ...items.flat()];
const sized = (content: Code): number[] => [...unsigned(content.length), ...content];
const section = (id: number, content: Code): number[] => [id, ...sized(content)];
const text = (value: string): number[] => sized([...Buffer.from(value)]);
