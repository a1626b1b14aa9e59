import type { WeightStream } from '../onnx/weight.js';

/** The facts about one FP32 weight that the rules and the report need. Counts are of values. */
export interface WeightFacts {
  readonly elements: number;
  /** Largest magnitude among the finite values. */
  readonly maxAbs: number;
  /** Finite values that FP16 cannot hold: they round to more than 65504. */
  readonly tooLarge: number;
  /** Values other than zero that become zero in FP16 (magnitude at most 2^-25). */
  readonly toZero: number;
  /** Values other than zero below FP16's smallest normal number (2^-14), those that become zero included: fewer than 11 bits of them remain. */
  readonly subnormal: number;
  readonly zero: number;
  readonly notFinite: number;
}

/** Magnitude bits (the float without its sign) at which things change; comparing them as integers orders the floats. */
const Bits = {
  /** 65520, the first value that rounds to more than 65504. */
  tooLarge: 0x477ff000,
  /** 2^-14, FP16's smallest normal number. */
  normal: 0x38800000,
  /** 2^-25, which still rounds to zero (ties to even). */
  lastZero: 0x33000000,
  infinity: 0x7f800000,
} as const;

/** Looks at every value of a FP32 weight once, in constant memory. */
export function weightFacts(weight: WeightStream): WeightFacts {
  const counters = new Counters();
  for (const chunk of weight.chunks())
    counters.scan(new Int32Array(chunk.buffer, chunk.byteOffset, chunk.byteLength >> 2));
  const { largest, tooLarge, toZero, subnormal, zero, notFinite } = counters;
  return {
    elements: weight.byteLength / 4,
    maxAbs: floatOf(largest),
    tooLarge,
    toZero,
    subnormal,
    zero,
    notFinite,
  };
}

class Counters {
  largest = 0;
  tooLarge = 0;
  toZero = 0;
  subnormal = 0;
  zero = 0;
  notFinite = 0;

  scan(bits: Int32Array): void {
    // Nearly every value of a network lies between 2^-14 and the largest so far, and costs one comparison.
    let span = this.#span();
    for (let index = 0; index < bits.length; index++) {
      const magnitude = bits[index]! & 0x7fffffff;
      if ((magnitude - Bits.normal) >>> 0 < span) continue;
      this.#count(magnitude);
      span = this.#span();
    }
  }

  /** Ends before the values that are too large: those are counted one by one. */
  #span(): number {
    return Math.max(0, Math.min(this.largest + 1, Bits.tooLarge) - Bits.normal);
  }

  #count(magnitude: number): void {
    if (magnitude === 0) {
      this.zero++;
      return;
    }
    if (magnitude >= Bits.infinity) {
      this.notFinite++;
      return;
    }
    if (magnitude > this.largest) this.largest = magnitude;
    if (magnitude >= Bits.tooLarge) this.tooLarge++;
    if (magnitude >= Bits.normal) return;
    this.subnormal++;
    if (magnitude <= Bits.lastZero) this.toZero++;
  }
}

function floatOf(bits: number): number {
  return new Float32Array(Uint32Array.of(bits).buffer)[0]!;
}
