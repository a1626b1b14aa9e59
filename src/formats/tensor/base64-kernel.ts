import {
  block,
  type Code,
  type FunctionSpec,
  FunctionWriter,
  i8x16,
  i16x8,
  i32,
  i32x4,
  type Local,
  v128,
} from './compare/wasm-assembler.js';

/** Characters of one turn of the loop. */
export const TURN = 64;
/** Of a vector: sixteen characters become twelve bytes. */
const [TEXT, BYTES] = [16, 12];

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const codes = [...ALPHABET].map((character) => character.charCodeAt(0));
const slash = '/'.charCodeAt(0);

const nibbles = Array.from({ length: 16 }, (_, nibble) => nibble);
/** The lower nibbles that follow an upper one in the alphabet. */
const lowsOf = (high: number): readonly number[] =>
  nibbles.filter((low) => codes.includes((high << 4) | low));
/** Upper nibbles with the same lower ones share a bit. */
const sets = [...new Set(nibbles.map((high) => lowsOf(high).join()))];
const bitOf = (high: number): number => 1 << sets.indexOf(lowsOf(high).join());

/** A character is none of base64 where the entries of its two nibbles share a bit. */
const highBits = nibbles.map(bitOf);
const lowBits = nibbles.map((low) =>
  nibbles.filter((high) => !lowsOf(high).includes(low)).reduce((bits, high) => bits | bitOf(high), 0),
);

/** What to add to a character for its value: the same for each upper nibble but that of + and /, whose / is looked up one below. */
const distances = nibbles.map((high) => {
  const code = high === slash >> 4 ? '+'.charCodeAt(0) : codes.find((each) => each >> 4 === high);
  if (high === (slash >> 4) - 1) return (codes.indexOf(slash) - slash) & 255;
  return code === undefined ? 0 : (codes.indexOf(code) - code) & 255;
});

const bytes = (value: number): Code => v128.constant(Array.from({ length: 16 }, () => value));
const words = (low: number, high = low): Code =>
  v128.constant(Array.from({ length: 4 }, () => [low & 255, low >> 8, high & 255, high >> 8]).flat());

/**
 * `decode(at, end, to)` decodes the characters from `at` to `end`, a whole number of turns, and writes the bytes from `to` on, four bytes of zeros behind
 * them. Gives what is not zero where a character is none of base64. Looking up by nibbles: Muła and Lemire, Faster Base64 Encoding and Decoding using AVX2
 * Instructions, 2018.
 */
export function decodeBase64(): FunctionSpec {
  const writer = new FunctionWriter(['i32', 'i32', 'i32']);
  const [at, end, to] = [writer.parameter(0), writer.parameter(1), writer.parameter(2)];
  const vector = (): Local => writer.local('v128');
  const [text, high, wrong, pairs] = [vector(), vector(), vector(), vector()];
  const low = v128.and(text.get, bytes(15));
  const step = (turn: number): Code => [
    ...text.set(v128.load(at.get, turn * TEXT)),
    ...high.set(v128.and(i16x8.shiftRightUnsigned(text.get, i32.constant(4)), bytes(15))),
    ...wrong.set(
      v128.or(
        wrong.get,
        v128.and(
          i8x16.swizzle(v128.constant(lowBits), low),
          i8x16.swizzle(v128.constant(highBits), high.get),
        ),
      ),
    ),
    // Equality is -1.
    ...text.set(
      i8x16.add(
        text.get,
        i8x16.swizzle(v128.constant(distances), i8x16.add(high.get, i8x16.equals(text.get, bytes(slash)))),
      ),
    ),
    // Six bits and six become twelve, twelve and twelve become twenty-four.
    ...pairs.set(
      v128.or(
        v128.and(i16x8.shiftLeft(text.get, i32.constant(6)), words(0x0fc0)),
        i16x8.shiftRightUnsigned(text.get, i32.constant(8)),
      ),
    ),
    ...v128.store(
      to.get,
      i8x16.swizzle(
        i32x4.dotPairs(pairs.get, words(1 << 12, 1)),
        v128.constant([2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, 255, 255, 255, 255]),
      ),
      turn * BYTES,
    ),
  ];
  const turns = TURN / TEXT;
  return {
    name: 'decode',
    writer,
    result: 'i32',
    body: [
      ...block.doWhile(
        [
          ...Array.from({ length: turns }, (_, turn) => step(turn)).flat(),
          ...at.set(i32.add(at.get, i32.constant(turns * TEXT))),
          ...to.set(i32.add(to.get, i32.constant(turns * BYTES))),
        ],
        i32.lessThan(at.get, end.get),
      ),
      ...v128.anyTrue(wrong.get),
    ],
  };
}
