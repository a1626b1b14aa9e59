import type { WeightStream } from '../../onnx/weight.js';
import type { Dtype } from '../../tensor/dtype.js';
import type { ConvertedStream } from '../weight-conversion.js';
import type { WeightFacts } from '../weight-facts.js';

/** A precision that a model is converted to, as options, identities, builds, judges and reports read it. Nothing outside this folder names one. */
export interface Format {
  /** As the command line and the recipe spell it. Part of the identity of engines, so it never changes. */
  readonly id: string;
  /** As people spell it: `FP16`. */
  readonly label: string;
  /** How far a converted model may be off its FP32 original, relative to the size of an output. */
  readonly tolerance: {
    readonly bound: number;
    /** Where the bound comes from; shown with every judgement. */
    readonly why: string;
    /** The share of integers and booleans that may differ: near ties of an ArgMax fall the other way. */
    readonly differing: number;
  };
  /** How small a lead over the second best may be for a rounding to turn it, as a share of the scores' root mean square. */
  readonly lowMarginShare: number;
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
  /** Operators that ONNX defines in it but TensorRT does not build so. */
  readonly notBuilt: ReadonlySet<string>;
  /** Why the values of a weight lose digits in it, or undefined; null where none ever does, so that no weight is read for it. */
  readonly weightLoss: ((name: string, facts: WeightFacts) => string | undefined) | null;
  /** Converts FP32 values chunk by chunk as they are read; memory does not grow with the weight. */
  readonly convertWeight: (source: WeightStream) => ConvertedStream;
}
