import type { WeightFacts, WeightStream } from '../../onnx/weight.js';
import type { Dtype } from '../../tensor/dtype.js';
import type { ConvertedStream } from '../weight-conversion.js';

/** A precision that a model is converted to, as options, identities, builds, judges and reports read it. Nothing outside this folder names one. */
export interface Format {
  /** As the command line and the recipe spell it. Part of the identity of engines, so it never changes. */
  readonly id: string;
  /** As people spell it: `FP16`. */
  readonly label: string;
  /** The allowed error of a converted model against its FP32 original, relative to the size of an output. */
  readonly tolerance: {
    readonly bound: number;
    /** Where the bound comes from; shown with every judgement. */
    readonly why: string;
    /** Of a quantized format: how many times what rounding the weights alone costs the conversion may cost. */
    readonly ofWeights?: number;
    /** The share of integers and booleans that may differ: near ties of an ArgMax fall the other way. */
    readonly differing: number;
  };
  /** The flag that permits it to the builder of a weakly typed network: `BuilderFlag`, and trtexec's without dashes. */
  readonly builderFlag: string;
  /** The lowest compute capability that the builder takes it for, times ten (`sm_80` is 80); null: any. */
  readonly computeCapability: number | null;
}

/** A floating-point type that values take: what the conversion reads besides. Nodes are decided for it one by one, and casts stand where it changes. */
export interface FloatFormat extends Format {
  readonly dtype: Dtype;
  /** The largest finite value: default of `--init-max`, and what larger weights are clamped to. */
  readonly maxFinite: number;
  /** Default of `--data-max`: an activation that went beyond it during calibration keeps the nodes around it FP32. */
  readonly dataMax: number;
  /** Whether results that FP32 can represent overflow: what leaves the range then stays FP32 until it is small again. */
  readonly narrowRange: boolean;
  /** Numbers from 1 - resolution to 1 are 1 in it. */
  readonly resolution: number;
  /** The largest magnitude of a mask that is added to scores. */
  readonly maskLimit: number;
  /** Operators that ONNX defines in it but TensorRT does not build so. */
  readonly notBuilt: ReadonlySet<string>;
  /** Why the values of a weight lose digits in it, or undefined; null where none ever does, so that no weight is read for it. */
  readonly weightLoss: ((name: string, facts: WeightFacts) => string | undefined) | null;
  /** Converts FP32 values chunk by chunk as they are read, finite magnitudes beyond `limit` to it; memory does not grow with the weight. */
  readonly convertWeight: (source: WeightStream, limit?: number) => ConvertedStream;
}

/**
 * Codes of 8 or 4 bits between a QuantizeLinear and a DequantizeLinear: what the quantization reads besides. The values around the pairs are of a floating-point
 * type, so a model that is converted to one of these has a second format for everything else.
 */
export interface QuantizedFormat extends Format {
  /** The element type of codes. */
  readonly storedDtype: Dtype;
  /** The magnitude of the largest code: a range's magnitude divided by it is the scale. */
  readonly largest: number;
  /** Whether activations are quantized too, which needs their ranges; false: weights alone. */
  readonly activations: boolean;
  /** Sizes of the blocks that share a scale, along the axis that is summed over, the first that divides it into two or more; empty: a scale per output channel. */
  readonly blocks: readonly number[];
  /** The part of a convolution's weight that shares a scale: an output channel or the whole tensor. */
  readonly convolutionScale: 'channel' | 'tensor';
  /** The element type of the scales of blocks, which then have a scale of the whole tensor themselves; null: the scales are floats like the values. */
  readonly scaleDtype: 'float8_e4m3fn' | null;
  /** Shares of a block's magnitude that its scale may stand for; the one with the least squared error is taken. `[1]`: the magnitude itself. */
  readonly clips: readonly number[];
  /**
   * The values of the codes: multiples of a step from the lowest to the highest. The step is `share` of the power of two that a magnitude reaches, at least `step`: with a share of 0 the
   * codes are evenly spaced.
   */
  readonly grid: {
    readonly share: number;
    readonly step: number;
    readonly lowest: number;
    readonly highest: number;
  };
  /** Operations with fewer input or output channels stay out. */
  readonly fewestChannels: number;
  /** Convolutions in groups of fewer input or output channels stay out; infinite: all with more than one group. */
  readonly fewestInGroup: number;
  /** Convolutions over more positions (7 × 7 is 49) stay out. */
  readonly largestKernel: number;
  /** Operators that compute in it. */
  readonly operators: ReadonlySet<string>;
  /** The first opset whose QuantizeLinear and DequantizeLinear know it. */
  readonly opset: number;
  /** Writes the nearest code, of two as near the even one, of values that were divided by their scales, packed as ONNX packs them (the first of two in the low bits). */
  readonly encode: (scaled: Float32Array, target: Uint8Array) => void;
}
