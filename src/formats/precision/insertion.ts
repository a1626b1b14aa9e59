import type { TensorProto } from '../onnx/onnx_pb.js';
import type { Decisions } from './decide.js';
import type { Flow } from './flow.js';
import type { Format } from './formats/format.js';
import type { ResolvedConversion } from './options.js';

/** A tensor of the result whose values are those of `source` in another format. */
export interface ConvertedTensor {
  readonly tensor: TensorProto;
  readonly source: TensorProto;
  readonly format: Format;
}

/** What a pass did to the graph. */
export interface Inserted {
  /** Tensors that are made from FP32 weights while the model is written. */
  readonly converted: readonly ConvertedTensor[];
  readonly castsAdded: number;
  readonly castsRemoved: number;
}

/**
 * Changes the messages that `flow` was read from so that they express what was decided: inserts nodes, retypes values, replaces weights. It
 * decides nothing, reads no weight (the caller converts those listed), and leaves a graph whose types are consistent.
 */
export type InsertionPass = (flow: Flow, decisions: Decisions, options: ResolvedConversion) => Inserted;
