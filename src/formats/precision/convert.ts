import { statSync } from 'node:fs';
import { assertNotInput, protectingInputs } from '../../base/files/user-files.js';
import * as is from '../../base/options/kinds.js';
import { needed, type OptionsOf, optional } from '../../base/options/option.js';
import { TrtforgeError } from '../../errors.js';
import { type EventListener, inPhase, type WorkContext } from '../../events.js';
import { assertWellTyped, inferDtypes, opsetsOf } from '../onnx/dtype-inference.js';
import { nodeLabel, nodeName, visitGraphs } from '../onnx/graph.js';
import { lowerIrVersion } from '../onnx/ir-version.js';
import { CRASHES_ONNXRUNTIME, crashingProducts } from '../onnx/lint/operators.js';
import { editModel, type OnnxModel, rejectWrappedEngine, viewModel } from '../onnx/model.js';
import type { GraphProto, ModelProto, TensorProto } from '../onnx/onnx_pb.js';
import { clearPlaceholders } from '../onnx/open-dimensions.js';
import { declaredType } from '../onnx/values.js';
import { type WriteOptions, type WrittenModel, writeModel } from '../onnx/write.js';
import { assertConverted } from './assert-converted.js';
import { CALIBRATION_LOG, type Calibrate } from './calibrate/ranges.js';
import { dequantizeCodes } from './dequantize-codes.js';
import { operatorName } from './flow.js';
import { defaultFormat, type FloatFormatId, type FormatId, formatIds } from './formats/index.js';
import { normalise } from './normalise.js';
import {
  conversionOptions,
  type ResolvedConversion,
  resolveConversion,
  type WeightsOnly,
} from './options.js';
import { type Plan, planConversion } from './plan.js';
import { leftOut, placements } from './quantize/placement.js';
import { placementRules } from './quantize/placement-rules.js';
import { type Quantization, quantizeModel } from './quantize/quantize.js';
import { weightCodes } from './quantize/weight-codes.js';
import type { ConversionResult } from './result.js';
import { betweenRule, rules } from './rules.js';
import type { ConvertedStream } from './weight-conversion.js';

/** Only the precision has no default. */
export const convertOptions = {
  precision: needed(is.word<FormatId>(), {
    flags: '--precision <type>',
    describe: 'what to convert to',
    choices: formatIds,
    default: defaultFormat.id,
  }),
  externalData: optional(is.word<NonNullable<WriteOptions['externalData']>>(), {
    flags: '--external-data <when>',
    advanced: true,
    describe: 'put the weights into a file beside the model',
    choices: ['auto', 'never', 'always'],
    default: 'auto',
  }),
  ...conversionOptions,
};

export interface ConvertOptions extends OptionsOf<typeof convertOptions> {}

/**
 * Turns an FP32 ONNX model into a strongly typed one of another format: what TensorRT 11 and TensorRT-RTX build as it is written, node by node.
 * A calibration is run first. Weights are streamed, so memory does not grow with the model. The types of the result are checked before a byte is written.
 * Throws what opening, reading and writing models throw, TF_ONNX_GRAPH_INVALID if the original is not well typed, TF_NOT_CONVERTIBLE and TF_NOT_QUANTIZABLE if
 * no node of it gets the precision, TF_CANCELLED, and TF_INTERNAL if the result would not be well typed.
 */
export async function convertModel(
  inputPath: string,
  outputPath: string,
  options: ConvertOptions,
  context: WorkContext = {},
): Promise<ConversionResult> {
  return protectingInputs([inputPath], () => convert(inputPath, outputPath, options, context));
}

/** Writes a FP32 model whose weights alone have the values of the codes of a quantized precision, for what rounding them costs. Throws what `convertModel` throws. */
export const roundWeights = (
  inputPath: string,
  outputPath: string,
  precision: FormatId,
  context: WorkContext = {},
): Promise<ConversionResult> =>
  convert(inputPath, outputPath, { precision, rest: 'fp32', weightsOnly: true }, context);

async function convert(
  inputPath: string,
  outputPath: string,
  options: ConvertOptions & WeightsOnly,
  context: WorkContext,
): Promise<ConversionResult> {
  const warned: string[] = [];
  const emit = notingWarnings(warned, context.emit);
  const work = { ...context, emit };
  const { calibration, precision, externalData } = options;
  const asked = resolveConversion(precision, options);
  const observed = await observedRanges(inputPath, options, asked, work);
  let started = performance.now();
  const calibrate = calibration && timed(calibration.calibrate, (ms) => (started += ms));
  return editModel(inputPath, async (model) => {
    assertNotInput(outputPath);
    rejectWrappedEngine(inputPath, model.proto);
    const interfaceBefore = interfaceTypes(model.proto.graph);
    const opsetBefore = defaultOpset(model);
    assertWellTyped(inputPath, model.proto);
    const functionsInlined = normalise(model.proto, asked.pluginTypes);
    const quantized = asked.quantization && (await quantizeModel(model, inputPath, asked, calibrate, work));
    const dequantized = dequantizeCodes(model);
    const ranges = quantized === undefined ? observed : new Map([...(observed ?? []), ...quantized.ranges]);
    const resolved = { ...asked, ranges };
    const plan = await inPhase('plan', emit, () =>
      planConversion(model, resolved, context, quantized?.additions),
    );
    const wouldConvert = (other: FloatFormatId) =>
      convertsSome(inputPath, resolveConversion(other, options, observed), context);
    await assertConverted({ path: inputPath, plan, quantized, wouldConvert }, resolved);
    checkTypes(inputPath, model.proto);
    lowerIrVersion(model.proto);
    clearPlaceholders(model.proto);
    const streams = conversionStreams(model, plan, quantized);
    const replacements = new Map([...streams, ...dequantized.replacements]);
    const written = await inPhase('write', emit, () =>
      writeModel(model, outputPath, { replacements, externalData, signal: context.signal }, emit),
    );
    const opsetReason = quantized?.opsetReason ?? plan.opsetReason ?? null;
    return {
      ...summary(plan, resolved),
      functionsInlined,
      codesDequantized: dequantized.count,
      quantization: quantizationSummary(quantized, resolved, calibration?.method),
      calibration: calibration?.facts?.() ?? null,
      schema: 'trtforge.convert/1',
      precision,
      input: inputPath,
      output: outputPath,
      opset: { before: opsetBefore, after: defaultOpset(model), reason: opsetReason },
      weights: weightSummary(plan, streams, quantized),
      ...interfaceChange(interfaceBefore, interfaceTypes(model.proto.graph)),
      bytes: { before: bytesOf(model), after: bytesWritten(written) },
      externalData: written.externalData?.path ?? null,
      warnings: [...warned, ...warningsOf(plan, resolved, quantized), ...warningsAbout(outputPath)],
      ms: performance.now() - started,
    };
  });
}

/** Appends the texts of the calibration's warnings to `warned`; all events go on to `emit`. */
const notingWarnings =
  (warned: string[], emit: EventListener | undefined): EventListener =>
  (event) => {
    if (event.type === 'log' && event.source === CALIBRATION_LOG && event.severity === 'warning')
      warned.push(event.message);
    emit?.(event);
  };

/** The range of every activation. Where pairs are placed the model runs again for ranges, so they are observed on request only. */
async function observedRanges(
  path: string,
  { calibration, dataMax, pluginTypes }: ConvertOptions,
  { quantization }: ResolvedConversion,
  work: WorkContext,
): Promise<ResolvedConversion['ranges']> {
  const isObserved = quantization === undefined || dataMax !== undefined;
  if (!isObserved || calibration === undefined) return undefined;
  return inPhase('calibrate', work.emit, () => calibration.observe(path, { ...work, pluginTypes }));
}

const defaultOpset = ({ proto }: OnnxModel): number => opsetsOf(proto.opsetImport).get('') ?? 0;

/** Whether a conversion would convert a node; it writes nothing. */
async function convertsSome(
  path: string,
  options: ResolvedConversion,
  context: WorkContext,
): Promise<boolean> {
  return editModel(path, async (model) => {
    normalise(model.proto, options.pluginTypes);
    dequantizeCodes(model);
    const { flow, decisions } = await planConversion(model, options, context);
    return flow.operations.some((operation) => decisions.of(operation).kind === 'convert');
  });
}

/** The contract of this room: what is written is well typed, as the original was. */
function checkTypes(path: string, proto: ModelProto): void {
  const { violations } = inferDtypes(proto);
  const [first] = violations;
  if (first === undefined) return;
  throw new TrtforgeError(
    'TF_INTERNAL',
    `Converting ${path} would have written a model with wrong types: ${first.where}: ${first.message}. Nothing was written.`,
    { details: { violations: violations.slice(0, 20) } },
  );
}

/** The time of a conversion is without that of the calibration. */
const timed =
  (calibrate: Calibrate, took: (ms: number) => void): Calibrate =>
  async (...args) => {
    const started = performance.now();
    try {
      return await calibrate(...args);
    } finally {
      took(performance.now() - started);
    }
  };

function conversionStreams(
  model: OnnxModel,
  plan: Plan,
  quantized: Quantization | undefined,
): ReadonlyMap<TensorProto, ConvertedStream> {
  return new Map([
    ...plan.inserted.converted.map(
      ({ tensor, source, format, limit }) =>
        [tensor, format.convertWeight(model.weight(source), limit)] as const,
    ),
    ...(quantized?.weights ?? []).map(
      ({ tensor, source, scales, format }) =>
        [tensor, weightCodes(model.weight(source), format, scales)] as const,
    ),
  ]);
}

function summary(plan: Plan, options: ResolvedConversion) {
  const kept: ConversionResult['kept'] = [];
  const convertedOps = new Map<string, number>();
  const nodes = { total: 0, converted: 0, kept: 0, untouched: 0 };
  for (const operation of plan.flow.operations) {
    const decision = plan.decisions.of(operation);
    const op = operatorName(operation);
    nodes.total++;
    if (decision.kind === 'keep') {
      nodes.kept++;
      kept.push({ node: operation.label, op, rule: decision.rule, reason: decision.reason });
    } else if (decision.kind === 'convert') {
      nodes.converted++;
      convertedOps.set(op, (convertedOps.get(op) ?? 0) + 1);
    } else nodes.untouched++;
  }
  const byRule = [...rules, betweenRule]
    .map(({ id, title }) => ({ id, title, nodes: kept.filter(({ rule }) => rule === id).length }))
    .filter((entry) => entry.nodes > 0);
  const { castsAdded, castsRemoved } = plan.inserted;
  return {
    ioTypes: options.ioTypes,
    nodes,
    convertedOps: Object.fromEntries(convertedOps),
    rules: byRule,
    kept,
    casts: { added: castsAdded, removed: castsRemoved },
  };
}

function quantizationSummary(
  quantized: Quantization | undefined,
  { quantization }: ResolvedConversion,
  method: string | undefined,
): ConversionResult['quantization'] {
  if (quantized === undefined || quantization === undefined) return null;
  const nodes = quantized.placement.decisions.map(({ operation, quantized, rule, reason }) => ({
    node: operation.label,
    op: operatorName(operation),
    quantized,
    rule,
    reason,
  }));
  const titles = [
    ...Object.entries(placements).map(([id, title]) => ({ id, title, quantized: true })),
    ...placementRules.map(({ id, title }) => ({ id, title, quantized: false })),
    ...Object.entries(leftOut).map(([id, title]) => ({ id, title, quantized: false })),
  ];
  return {
    rest: quantization.rest,
    method: quantized.activations.size === 0 ? null : (method ?? null),
    nodes,
    rules: titles
      .map((title) => ({
        ...title,
        nodes: nodes.filter(({ rule, quantized }) => rule === title.id && quantized === title.quantized)
          .length,
      }))
      .filter((entry) => entry.nodes > 0),
    activations: [...quantized.activations].map(([{ name }, range]) => ({ tensor: name, ...range })),
    weights: quantized.weights.length,
  };
}

function weightSummary(
  plan: Plan,
  streams: ReadonlyMap<TensorProto, ConvertedStream>,
  quantized: Quantization | undefined,
): ConversionResult['weights'] {
  const losses: ConversionResult['weights']['losses'] = [];
  const total = { saturated: 0, toZero: 0, subnormal: 0 };
  // Codes were computed with scales as they are stored.
  const exact = new Set(
    plan.inserted.converted.flatMap(({ tensor, source }) =>
      quantized?.additions.has(source) === true ? [tensor] : [],
    ),
  );
  for (const [tensor, stream] of streams) {
    if (exact.has(tensor)) continue;
    const { saturated, toZero, subnormal } = stream.losses;
    if (saturated + toZero + subnormal === 0) continue;
    losses.push({ name: tensor.name, elements: stream.elements, saturated, toZero, subnormal });
    total.saturated += saturated;
    total.toZero += toZero;
    total.subnormal += subnormal;
  }
  return { converted: streams.size - exact.size, keptFp32: plan.weightsKept, ...total, losses };
}

type InterfaceTypes = Readonly<Record<'inputs' | 'outputs', ReadonlyMap<string, string>>>;

function interfaceTypes(graph: GraphProto | undefined): InterfaceTypes {
  const stored = new Set(graph?.initializer.map(({ name }) => name));
  const types = (list: GraphProto['input'] | undefined) =>
    new Map(
      list
        ?.filter(({ name }) => !stored.has(name))
        .map(({ name, type }) => [name, declaredType(type) ?? 'unknown']),
    );
  return { inputs: types(graph?.input), outputs: types(graph?.output) };
}

function interfaceChange(before: InterfaceTypes, after: InterfaceTypes) {
  const changes = (side: 'inputs' | 'outputs') =>
    [...before[side]].map(([name, type]) => ({ name, before: type, after: after[side].get(name) ?? type }));
  return { inputs: changes('inputs'), outputs: changes('outputs') };
}

const bytesOf = (model: OnnxModel): number =>
  [...new Set(model.files())].reduce((sum, path) => sum + statSync(path).size, 0);

const bytesWritten = (written: WrittenModel): number => written.bytes + (written.externalData?.bytes ?? 0);

/** Warnings about nodes that crash ONNX Runtime. */
const warningsAbout = (path: string): readonly string[] =>
  viewModel(path, ({ proto }) => {
    const [node] = [...visitGraphs(proto)].flatMap(crashingProducts);
    return node === undefined ? [] : [`${nodeLabel(node)}: ${CRASHES_ONNXRUNTIME}.`];
  });

function warningsOf(
  plan: Plan,
  { keepNodes, unquantizedNodes, quantization }: ResolvedConversion,
  quantized: Quantization | undefined,
): string[] {
  const warnings: string[] = [];
  if (plan.opsetObstacle !== undefined) warnings.push(plan.opsetObstacle);
  const names = plan.flow.operations.map(({ node }) => nodeName(node));
  const named = [
    ...keepNodes.map((pattern) => ['--keep-nodes', pattern] as const),
    ...unquantizedNodes.map((pattern) => ['--high-precision-nodes', pattern] as const),
  ];
  for (const [flag, pattern] of named)
    if (!names.some((name) => pattern.test(name))) warnings.push(`\`${flag} ${pattern}\` matched no node.`);
  if (quantized?.placement.decisions.every((decision) => !decision.quantized) === true)
    warnings.push('No node was quantized: the reasons are listed.');
  if (quantization?.rest === 'fp32') return warnings;
  const converted = plan.flow.operations.some((operation) => plan.decisions.of(operation).kind === 'convert');
  if (!converted) warnings.push('No node was converted: the reasons are listed.');
  return warnings;
}
