import { throwIfCancelled } from '../../../base/process/cancel.js';
import { TrtforgeError } from '../../../errors.js';
import { inPhase, type WorkContext } from '../../../events.js';
import { attributeOf } from '../../onnx/attributes.js';
import { opsetsOf } from '../../onnx/dtype-inference.js';
import type { OnnxModel } from '../../onnx/model.js';
import type { TensorProto } from '../../onnx/onnx_pb.js';
import { raiseOpset } from '../../onnx/opset-changes.js';
import { assertFloat, isMove } from '../../onnx/quantized-operations.js';
import { inferShapes, type ModelShapes } from '../../onnx/shapes/infer.js';
import type { WeightStream } from '../../onnx/weight.js';
import type { QuantizedDtype } from '../calibrate/grid.js';
import type { Calibrate, CalibratedRanges, ChannelMoments } from '../calibrate/ranges.js';
import { type Flow, isConstant, type Operation, readFlow, type Value } from '../flow.js';
import type { QuantizedFormat } from '../formats/format.js';
import { fp8 } from '../formats/fp8.js';
import { fp16 } from '../formats/fp16.js';
import type { RestId } from '../formats/index.js';
import type { ResolvedConversion } from '../options.js';
import { assertQuantizable } from './assert-quantizable.js';
import { type BiasOperand, biasOperand, meanError, tapShares } from './bias-correction.js';
import { type InsertedQuantizers, insertQuantizers } from './insert-quantizers.js';
import { type Obstacles, type Placement, type PlacementDecision, placeQuantizers } from './placement.js';
import type { InputMoments } from './rounding-errors.js';
import { floatsOf } from './scale-layout.js';
import { storedScales } from './stored-scale.js';
import type { WeightOperand } from './weight-operand.js';
import { type WeightScales, weightScales } from './weight-scales.js';

/** The decisions and changes made to the messages of the model; the codes of the weights are still to be made. */
export interface Quantization extends InsertedQuantizers {
  readonly placement: Placement;
  /** The magnitude that the largest code stands for and the scale, by activation. */
  readonly activations: ReadonlyMap<Value, { readonly amax: number; readonly scale: number }>;
  readonly opsetReason: string | undefined;
  /** The calibrated ranges, for rules that look at ranges. */
  readonly ranges: CalibratedRanges;
}

/** Operators through which TensorRT moves a QuantizeLinear: their results hold the values of their inputs. */
const copies: ReadonlySet<string> = new Set(
  'Concat MaxPool Reshape Transpose Flatten Squeeze Unsqueeze Slice Split Identity Dropout'.split(' '),
);

/**
 * Quantizes a FP32 model in place: decides where pairs go, has the ranges of those activations observed (on the file, which is the model as it was), reads
 * the weights for their scales, and inserts the pairs in FP32. Throws TF_NOT_QUANTIZABLE for a model that is quantized already, of which
 * nothing can be quantized, or whose opset can neither hold the codes nor be raised, TF_CANCELLED, and what `calibrate` and reading weights throw.
 */
export async function quantizeModel(
  model: OnnxModel,
  path: string,
  options: ResolvedConversion,
  calibrate: Calibrate | undefined,
  work: WorkContext = {},
): Promise<Quantization> {
  const { quantization } = options;
  if (quantization === undefined)
    throw new TrtforgeError('TF_INTERNAL', 'The precision is not a quantized one.');
  const { format, rest } = quantization;
  assertFloat(model.proto, path);
  const opsetReason = raise(model, path, format);
  const flow = readFlow(model.proto);
  const first = placeQuantizers(flow, options);
  assertQuantizable(first, path, flow, options);
  const context = { ...work, pluginTypes: options.pluginTypes, dtype: rangeDtype(format) };
  const ranges = await calibratedRanges(first, path, calibrate, context);
  const storedScale = storedScales(rest);
  const weights = await inPhase('scales', work.emit, () =>
    scalesOfWeights(
      model,
      first,
      (source, decision, operand) =>
        weightScales(source, operand, format, storedScale, clipMoments(decision, operand, ranges)),
      work.signal,
    ),
  );

  const scaleOf = (magnitude: number) => storedScale(magnitude, format.largest);
  const obstacles: Obstacles = {
    activation: (value) => unusable(value, ranges.get(value.name)?.amax, scaleOf),
    weight: (operand) => weights.obstacleOf(operand),
  };
  const placement = placeQuantizers(flow, options, obstacles);
  // Nodes that the user named were not calibrated: their missing ranges keep nothing out.
  const calibrated = new Set(first.activations);
  assertQuantizable(placement, path, flow, options, {
    ...obstacles,
    activation: (value) => (calibrated.has(value) ? obstacles.activation(value) : undefined),
  });
  const magnitudes = placement.activations.map((value) => [value, ranges.get(value.name)!.amax] as const);
  const shared = scaleGroups(flow, new Map(magnitudes));
  const activations = new Map(
    Array.from(shared, ([value, amax]) => [value, { amax, scale: scaleOf(amax)! }] as const),
  );
  const scalesOf = (operand: WeightOperand) => weights.of(operand);
  const biases = await inPhase('biases', work.emit, () =>
    correctedBiases(model, placement, format, ranges, scalesOf, work.signal),
  );
  const inserted = insertQuantizers(flow, placement, format, {
    activation: (value) => activations.get(value)!.scale,
    weight: scalesOf,
    biases,
    rewritten: rewrittenActivations(model, placement, { format, rest, activations, scalesOf, biases }),
  });
  return { ...inserted, placement, activations, opsetReason, ranges };
}

/** The type that ranges are for: the codes of activations; null where only weights get codes. */
function rangeDtype({ activations, storedDtype }: QuantizedFormat): QuantizedDtype | null {
  if (!activations) return null;
  return storedDtype === 'int8' ? 'int8' : 'float8_e4m3fn';
}

/** The ranges of the activations with pairs and of what weights are multiplied by, but for constants; none without a calibration. */
async function calibratedRanges(
  placement: Placement,
  path: string,
  calibrate: Calibrate | undefined,
  context: Omit<Parameters<Calibrate>[2], 'channels'>,
): Promise<CalibratedRanges> {
  const observed = placement.activations.filter((value) => !isConstant(value));
  const channels = channelsOf(placement);
  const names = [...new Set([...observed.map(({ name }) => name), ...channels.keys()])];
  if (names.length === 0 || calibrate === undefined) return new Map();
  return inPhase('calibrate', context.emit, () => calibrate(path, names, { ...context, channels }));
}

/** Quantizing starts from an opset whose Q/DQ operators know the codes. */
function raise(
  model: OnnxModel,
  path: string,
  { opset, label }: { readonly opset: number; readonly label: string },
): string | undefined {
  const from = opsetsOf(model.proto.opsetImport).get('') ?? 0;
  if (from >= opset) return undefined;
  const reason = `QuantizeLinear and DequantizeLinear take ${label} from opset ${opset} on`;
  const obstacle = raiseOpset(model, opset);
  if (obstacle === undefined) return reason;
  throw new TrtforgeError(
    'TF_NOT_QUANTIZABLE',
    `${path} has opset ${from}. ${reason}, but the opset cannot be raised: ${obstacle}.`,
    { remedy: `Export the model with opset ${opset} or newer.` },
  );
}

function unusable(
  { name }: Value,
  amax: number | undefined,
  scaleOf: (magnitude: number) => number | undefined,
): string | undefined {
  if (amax === undefined) return `calibration gave no range of "${name}"`;
  if (!Number.isFinite(amax)) return `"${name}" held infinities or NaN in calibration`;
  if (amax === 0) return `"${name}" was zero in all samples of the calibration`;
  return scaleOf(amax) === undefined
    ? `"${name}" reached ${amax.toPrecision(5)}, whose scale is beyond the type that it is stored in`
    : undefined;
}

/** Scales by weight and axis of output channels, or why a weight has none. */
class FoundScales {
  readonly #found = new Map<TensorProto | undefined, Map<number, WeightScales | string>>();

  has(operand: WeightOperand): boolean {
    return this.#get(operand) !== undefined;
  }

  /** Throws TF_INTERNAL for a weight that has none. */
  of(operand: WeightOperand): WeightScales {
    const scales = this.#get(operand);
    if (scales === undefined || typeof scales === 'string')
      throw new TrtforgeError('TF_INTERNAL', `"${operand.value.name}" has no scales.`);
    return scales;
  }

  obstacleOf(operand: WeightOperand): string | undefined {
    const scales = this.#get(operand);
    return typeof scales === 'string' ? scales : undefined;
  }

  set({ value, channelAxis }: WeightOperand, scales: WeightScales | string): void {
    const byAxis = this.#found.get(value.tensor) ?? new Map<number, WeightScales | string>();
    this.#found.set(value.tensor, byAxis.set(channelAxis, scales));
  }

  #get({ value, channelAxis }: WeightOperand): WeightScales | string | undefined {
    return this.#found.get(value.tensor)?.get(channelAxis);
  }
}

async function scalesOfWeights(
  model: OnnxModel,
  { decisions }: Placement,
  find: (source: WeightStream, decision: PlacementDecision, operand: WeightOperand) => WeightScales | string,
  signal: AbortSignal | undefined,
): Promise<FoundScales> {
  const found = new FoundScales();
  for (const decision of decisions) {
    const { weight } = decision;
    if (weight?.value.tensor === undefined || found.has(weight)) continue;
    found.set(weight, find(model.weight(weight.value.tensor), decision, weight));
    await breathe(signal);
  }
  return found;
}

async function breathe(signal: AbortSignal | undefined): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
  throwIfCancelled(signal, 'reading the weights');
}

/** The values that operations multiply by a stored weight, with the axis that is summed over. */
function channelsOf({ decisions }: Placement): ReadonlyMap<string, number> {
  const axes = new Map<string, number>();
  for (const { operation, weight } of decisions) {
    const [value] = operation.inputs;
    if (weight === undefined || value === undefined || isConstant(value) || value.scope.owner !== undefined)
      continue;
    if (!axes.has(value.name)) axes.set(value.name, axisOf(weight));
  }
  return axes;
}

const axisOf = ({ sumAxis }: WeightOperand): number => (sumAxis === undefined ? 1 : -1);

/** The channels of what an operation multiplies its weight by; undefined where they were not observed, or along another axis for another reader. */
function momentsOf(
  { operation }: PlacementDecision,
  { dims, sumAxis }: WeightOperand,
  ranges: CalibratedRanges,
): ChannelMoments | undefined {
  const moments = ranges.get(operation.inputs[0]?.name ?? '')?.channels;
  const groups = Number(attributeOf(operation.node, 'group')?.i ?? 1);
  const terms = sumAxis === undefined ? (dims[1] ?? 0) * groups : dims[sumAxis];
  return moments?.mean.length === terms ? moments : undefined;
}

/** The first reader of a weight decides; where its bias is corrected, errors of the mean do not count. */
function clipMoments(
  decision: PlacementDecision,
  operand: WeightOperand,
  ranges: CalibratedRanges,
): InputMoments | undefined {
  const moments = momentsOf(decision, operand, ranges);
  if (moments === undefined || biasOperand(decision.operation, operand) === undefined) return moments;
  return { ...moments, mean: new Float32Array(moments.mean.length) };
}

async function correctedBiases(
  model: OnnxModel,
  { decisions }: Placement,
  format: QuantizedFormat,
  ranges: CalibratedRanges,
  scalesOf: (operand: WeightOperand) => WeightScales,
  signal: AbortSignal | undefined,
): Promise<readonly (readonly [BiasOperand, Float32Array])[]> {
  const corrected: (readonly [BiasOperand, Float32Array])[] = [];
  let shapes: ModelShapes | undefined;
  for (const decision of decisions) {
    const { operation, weight } = decision;
    if (weight?.value.tensor === undefined) continue;
    const moments = momentsOf(decision, weight, ranges);
    const bias = moments && biasOperand(operation, weight);
    if (moments === undefined || bias === undefined) continue;
    const source = model.weight(weight.value.tensor);
    const [, , ...kernel] = weight.dims;
    // A product has no kernel, and needs no shapes of the model.
    if (kernel.length > 0) shapes ??= inferShapes(model);
    const shares = shapes === undefined ? [1] : tapShares(operation, kernel, shapes);
    const input = { mean: moments.mean, shares };
    const error = meanError(source, weight, operation, scalesOf(weight), format, input);
    const before = bias.value?.tensor === undefined ? undefined : valuesOf(model.weight(bias.value.tensor));
    corrected.push([bias, Float32Array.from(error, (change, channel) => change + (before?.[channel] ?? 0))]);
    await breathe(signal);
  }
  return corrected;
}

interface Chosen {
  readonly format: QuantizedFormat;
  readonly rest: RestId;
  readonly activations: Quantization['activations'];
  readonly scalesOf: (operand: WeightOperand) => WeightScales;
  readonly biases: readonly (readonly [BiasOperand, Float32Array])[];
}

/**
 * Activations whose QuantizeLinear ONNX Runtime takes for a reason to compute something else in front of it (seen in 1.30 and 1.32). A bias on the way to it becomes
 * INT32 codes (WeightBiasQuantization, a basic optimization): its quotient by the product of the two scales, which is computed in the type of the scales and may be
 * beyond it. A Relu or Clip before codes of FP8 is left out as if they were UINT8 and never negative.
 */
function rewrittenActivations(
  model: OnnxModel,
  { decisions }: Placement,
  { format, rest, activations, scalesOf, biases }: Chosen,
): ReadonlySet<Value> {
  const rewritten = new Set<Value>();
  if (rest === 'fp32' && format.id === fp8.id)
    for (const value of activations.keys())
      if (['Relu', 'Clip'].includes(value.producer?.node.opType ?? '')) rewritten.add(value);
  const corrected = new Map(biases.map(([{ operation }, values]) => [operation, values]));
  // The product may be rounded by a step of the subnormal numbers, or by half of itself above them.
  const [largest, step] = rest === fp16.id ? [2 ** 15, 2 ** -24] : [2 ** 30, 0];
  for (const { operation, weight } of decisions) {
    const bias = weight && biasOperand(operation, weight);
    const input = operation.inputs[0] && activations.get(operation.inputs[0]);
    const output = bias && pairedResult(bias.operation, activations);
    if (weight === undefined || input === undefined || output === undefined) continue;
    const stored = bias?.value?.tensor;
    const values = corrected.get(bias!.operation) ?? (stored && valuesOf(model.weight(stored)));
    const { at } = scalesOf(weight);
    if (values?.some((value, channel) => Math.abs(value) > largest * (input.scale * at(channel) - step)))
      rewritten.add(output);
  }
  return rewritten;
}

/** The value with a pair that is all an operation leads to, through what ONNX Runtime passes: it carries a QuantizeLinear back over what only moves values. */
function pairedResult(
  { outputs: [result] }: Operation,
  activations: Quantization['activations'],
): Value | undefined {
  let value = result;
  while (value !== undefined && !activations.has(value)) {
    const [use, ...others] = value.uses;
    if (use?.kind !== 'input' || others.length > 0) return undefined;
    const { node, outputs } = use.operation;
    value = node.opType === 'Relu' || node.opType === 'Clip' || isMove(node) ? outputs[0] : undefined;
  }
  return value;
}

function valuesOf(source: WeightStream): Float32Array {
  const values = new Float32Array(source.byteLength / 4);
  let position = 0;
  for (const chunk of source.chunks()) {
    values.set(floatsOf(chunk), position);
    position += chunk.byteLength / 4;
  }
  return values;
}

/**
 * The magnitudes of activations with pairs, where all that are copies of each other have the largest among them. With two scales a QuantizeLinear cannot move
 * through a Concat or a pooling, and codes are computed again in between.
 */
function scaleGroups(flow: Flow, magnitudes: ReadonlyMap<Value, number>): ReadonlyMap<Value, number> {
  const leaders = new Map([...magnitudes.keys()].map((value) => [value, value]));
  const leader = (value: Value): Value => {
    const next = leaders.get(value) ?? value;
    return next === value ? value : leader(next);
  };
  for (const { node, inputs, outputs } of flow.operations) {
    if (!copies.has(node.opType)) continue;
    const paired = [...inputs, ...outputs].flatMap((value) =>
      value !== undefined && leaders.has(value) ? [value] : [],
    );
    const [first, ...others] = paired;
    if (first !== undefined) for (const value of others) leaders.set(leader(value), leader(first));
  }
  const largest = new Map<Value, number>();
  for (const [value, magnitude] of magnitudes)
    largest.set(leader(value), Math.max(largest.get(leader(value)) ?? 0, magnitude));
  return new Map([...magnitudes.keys()].map((value) => [value, largest.get(leader(value))!]));
}
