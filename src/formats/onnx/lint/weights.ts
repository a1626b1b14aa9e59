import { throwIfCancelled } from '../../../base/process/cancel.js';
import { TrtforgeError } from '../../../errors.js';
import { ignoreEvents, type WorkContext } from '../../../events.js';
import type { Dtype } from '../../tensor/dtype.js';
import { visitTensors } from '../graph.js';
import type { OnnxModel } from '../model.js';
import type { Finding } from '../model-facts.js';
import type { Weight } from '../weight.js';
import { Findings } from './findings.js';
import { int64Finding, tensorLabel } from './tensors.js';

/** Statistics of the values of one tensor. */
export interface ValueCensus {
  nan: number;
  infinite: number;
  /** Finite values that FP16 cannot hold: they round to infinity (|v| ≥ 65520). */
  overflow: number;
  /** Values that are not zero and become zero in FP16 (|v| ≤ 2^-25). */
  underflow: number;
  /** Largest finite magnitude; 0 for types that FP16 holds entirely. */
  largest: number;
}

/** Fewer vanishing values than this share are not reported: every trained layer has some. */
const UNDERFLOW_SHARE = 0.01;

const CHUNK_BYTES = 4 << 20;
/** The event loop gets a turn after this many bytes. */
const TURN_BYTES = 256 << 20;

export type WeightCheckOptions = WorkContext;

/** Reads every weight once, in constant memory, and reports NaN, infinities, values beyond FP16 and int64 values beyond int32. */
export async function lintWeights(model: OnnxModel, options: WeightCheckOptions = {}): Promise<Finding[]> {
  const { emit = ignoreEvents, signal } = options;
  const findings = new Findings();
  const weights = [...visitTensors(model.proto)].flatMap((place) => {
    const weight = readable(() => model.weight(place.tensor));
    return weight === undefined ? [] : [{ weight, label: tensorLabel(place) }];
  });
  const total = weights.reduce((sum, { weight }) => sum + weight.byteLength, 0);
  let done = 0;
  let untilTurn = TURN_BYTES;
  for (const { weight, label } of weights) {
    lintWeight(weight, label, findings);
    done += weight.byteLength;
    untilTurn -= weight.byteLength;
    if (untilTurn > 0) continue;
    untilTurn = TURN_BYTES;
    emit({ type: 'progress', phase: 'check weights', done, total });
    await new Promise((resolve) => setImmediate(resolve));
    throwIfCancelled(signal, 'checking the weights');
  }
  return findings.list();
}

/** Tensors that cannot be read are findings of `lintModel`. */
function readable<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch (error) {
    if (error instanceof TrtforgeError) return undefined;
    throw error;
  }
}

function lintWeight(weight: Weight, label: string, findings: Findings): void {
  if (weight.dtype === 'int64' && weight.where.kind !== 'inline') {
    for (const chunk of weight.chunks(CHUNK_BYTES)) {
      const finding = int64Finding(
        [...new BigInt64Array(chunk.buffer, chunk.byteOffset, chunk.length >> 3)].filter(isWide),
      );
      if (finding !== undefined) {
        findings.add(finding.code, label, `An int64 weight ${finding.what}.`);
        return;
      }
    }
  }
  const census = readable(() => censusOf(weight));
  if (census === undefined) return;
  const share = (count: number) => `${count} of ${weight.elements} values`;
  if (census.nan > 0) findings.add('weights-nan', label, `${share(census.nan)} are NaN.`);
  if (census.infinite > 0) findings.add('weights-inf', label, `${share(census.infinite)} are infinite.`);
  if (census.overflow > 0) {
    findings.add(
      'weights-fp16-overflow',
      label,
      `${share(census.overflow)} are outside the range of FP16 (largest ${census.largest.toPrecision(4)}, FP16 ends at 65504).`,
    );
  }
  if (census.underflow > weight.elements * UNDERFLOW_SHARE) {
    findings.add(
      'weights-fp16-underflow',
      label,
      `${share(census.underflow)} become zero in FP16 (below 2^-25).`,
    );
  }
}

const isWide = (value: bigint) => value !== BigInt.asIntN(32, value);

/** Counts special values of a floating-point weight; zeros everywhere for other dtypes. Reads it once. */
export function censusOf(weight: Pick<Weight, 'dtype' | 'chunks'>): ValueCensus {
  const census: ValueCensus = { nan: 0, infinite: 0, overflow: 0, underflow: 0, largest: 0 };
  const format = formats[weight.dtype];
  if (weight.dtype === 'float64') {
    for (const chunk of weight.chunks(CHUNK_BYTES)) {
      countFloat64(new Float64Array(chunk.buffer, chunk.byteOffset, chunk.length >> 3), census);
    }
  } else if (format !== undefined) {
    let largest = 0;
    for (const chunk of weight.chunks(CHUNK_BYTES)) {
      largest = Math.max(largest, countWords(format.words(chunk), format, census));
    }
    census.largest = format.value(largest);
  }
  return census;
}

type Words = Uint8Array | Uint16Array | Int32Array;

/** A format whose magnitude, read as an integer, orders values: finite ones, then infinity, then NaN. */
interface FloatFormat {
  words(chunk: Uint8Array): Words;
  /** Everything but the sign. */
  readonly magnitude: number;
  /** Magnitudes above are NaN. */
  readonly infinity: number;
  /** The smallest magnitude that rounds to infinity in FP16, the largest that rounds to zero; none where FP16 holds the whole format. */
  readonly overflow: number;
  readonly underflow: number;
  value(magnitude: number): number;
}

/** Above every magnitude. */
const NEVER = 0x7fffffff;
const bits = new DataView(new ArrayBuffer(4));
const float32Value = (word: number) => {
  bits.setUint32(0, word);
  return bits.getFloat32(0);
};
const words16 = (chunk: Uint8Array) => new Uint16Array(chunk.buffer, chunk.byteOffset, chunk.length >> 1);
const plain = {
  words: (chunk: Uint8Array) => chunk,
  magnitude: 0x7f,
  overflow: NEVER,
  underflow: -1,
  value: () => 0,
};

const formats: Partial<Record<Dtype, FloatFormat>> = {
  float32: {
    words: (chunk) => new Int32Array(chunk.buffer, chunk.byteOffset, chunk.length >> 2),
    magnitude: 0x7fffffff,
    infinity: 0x7f800000,
    overflow: 0x477ff000,
    underflow: 0x33000000,
    value: float32Value,
  },
  bfloat16: {
    words: words16,
    magnitude: 0x7fff,
    infinity: 0x7f80,
    overflow: 0x4780,
    underflow: 0x3300,
    value: (word) => float32Value(word * 65536),
  },
  float16: { ...plain, words: words16, magnitude: 0x7fff, infinity: 0x7c00 },
  float8_e5m2: { ...plain, infinity: 0x7c },
  // No infinity: the magnitude below NaN is the largest number.
  float8_e4m3fn: { ...plain, infinity: 0x7e + 0.5 },
};

/** Words looked at together; the counting loop runs only over blocks whose extremes call for it. */
const BLOCK_WORDS = 4096;

/** Adds what the words hold to the census; returns the largest finite magnitude. */
function countWords(words: Words, format: FloatFormat, census: ValueCensus): number {
  const special = Math.min(format.overflow, Math.ceil(format.infinity));
  let largest = 0;
  for (let start = 0; start < words.length; start += BLOCK_WORDS) {
    const end = Math.min(start + BLOCK_WORDS, words.length);
    const extremes = magnitudes(words, start, end, format.magnitude);
    if (extremes.most < special && extremes.least > format.underflow)
      largest = Math.max(largest, extremes.most);
    else largest = Math.max(largest, countBlock(words, start, end, format, census));
  }
  return largest;
}

/** The loop that every weight goes through: 2.5 GB/s, against 1.4 GB/s with the counting in it. */
function magnitudes(words: Words, start: number, end: number, mask: number): { most: number; least: number } {
  let most = 0;
  let least = mask;
  for (let index = start; index < end; index++) {
    const word = words[index]! & mask;
    if (word > most) most = word;
    if (word < least) least = word;
  }
  return { most, least };
}

function countBlock(
  words: Words,
  start: number,
  end: number,
  format: FloatFormat,
  census: ValueCensus,
): number {
  const { magnitude, infinity, overflow, underflow } = format;
  let largest = 0;
  for (let index = start; index < end; index++) {
    const word = words[index]! & magnitude;
    if (word > infinity) census.nan++;
    else if (word === infinity) census.infinite++;
    else {
      if (word >= overflow) census.overflow++;
      else if (word <= underflow && word !== 0) census.underflow++;
      if (word > largest) largest = word;
    }
  }
  return largest;
}

function countFloat64(values: Float64Array, census: ValueCensus): void {
  for (const value of values) {
    const magnitude = Math.abs(value);
    if (Number.isNaN(value)) census.nan++;
    else if (magnitude === Number.POSITIVE_INFINITY) census.infinite++;
    else {
      if (magnitude >= 65520) census.overflow++;
      else if (magnitude <= 2 ** -25 && magnitude > 0) census.underflow++;
      if (magnitude > census.largest) census.largest = magnitude;
    }
  }
}
