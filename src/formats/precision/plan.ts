import { throwIfCancelled } from '../../base/process/cancel.js';
import { TrtforgeError } from '../../errors.js';
import type { WorkContext } from '../../events.js';
import { opsetsOf } from '../onnx/dtype-inference.js';
import type { OnnxModel } from '../onnx/model.js';
import type { TensorProto } from '../onnx/onnx_pb.js';
import { firstOpset, isOnnxOperator, operatorSignature, plainDomain } from '../onnx/operators.js';
import { NEWEST, raiseOpset } from '../onnx/opset-changes.js';
import { type WeightFacts, weightFacts } from '../onnx/weight.js';
import { angleArithmetic } from './angles.js';
import { type Decisions, decide } from './decide.js';
import {
  type Flow,
  isFloat32,
  isStored,
  type Operation,
  operatorName,
  readFlow,
  type Value,
} from './flow.js';
import { floatFormats } from './formats/index.js';
import { type Inserted, insertCasts } from './insert-casts.js';
import { masksOf } from './masks.js';
import { keptByDefault, lookups, movers } from './operator-traits.js';
import type { ResolvedConversion } from './options.js';
import { assertPluginTypes, pluginSignature } from './plugin-types.js';
import { rangeArithmetic, type WeightAt } from './range-arithmetic.js';
import { notBuilt, type RuleFacts } from './rules.js';
import { shapeArithmetic } from './shape-arithmetic.js';
import { inputSlot, slotsOf } from './slots.js';
import { valueShapes } from './value-shapes.js';
import { varianceArithmetic } from './variances.js';

/** The decisions and changes made to the messages of the model; the weights are still to be converted. */
export interface Plan {
  readonly flow: Flow;
  readonly decisions: Decisions;
  readonly inserted: Inserted;
  /** Why the opset was raised, where it was. */
  readonly opsetReason: string | undefined;
  /** Why it was not raised although operators need it. */
  readonly opsetObstacle: string | undefined;
  /** FP32 weights that stay FP32, in the graph and its bodies. */
  readonly weightsKept: number;
}

/** Before opset 13 not even Cast knows BF16, and a model may use no ONNX operators at all: inputs and outputs stay as they are then. */
function possible(model: OnnxModel, options: ResolvedConversion): ResolvedConversion {
  const opset = opsetsOf(model.proto.opsetImport).get('') ?? 0;
  const cast = operatorSignature('', 'Cast', opset);
  return cast?.outputs[0]?.allowed.has(options.format.dtype) === true
    ? options
    : { ...options, ioTypes: 'keep' };
}

/** One list may be for several models, so an operator of ONNX need not be in this one; a name that is neither was misspelt. */
function checkOperators(flow: Flow, { keepOps, convertOps }: ResolvedConversion): void {
  const present = new Set(flow.operations.map(operatorName));
  const wrong = [...keepOps, ...convertOps].find(
    (name) => !present.has(name) && !name.includes('::') && !isOnnxOperator(name),
  );
  if (wrong === undefined) return;
  throw new TrtforgeError('TF_USAGE', `Neither the model nor ONNX has an operator "${wrong}".`, {
    remedy: `The model has ${[...present].sort().join(', ')}; operators of other domains are DOMAIN::NAME.`,
  });
}

/**
 * Decides and rewrites `model.proto` in place, which is normalised; throws TF_USAGE for a misspelt operator. Reads the weights once where a rule wants to
 * know them; `rounded` are weights that the format represents exactly.
 */
export async function planConversion(
  model: OnnxModel,
  requested: ResolvedConversion,
  context: WorkContext,
  rounded: ReadonlySet<TensorProto> = new Set(),
): Promise<Plan> {
  if (requested.quantization?.rest === 'fp32') return unchanged(readFlow(model.proto));
  const raise = raiseWhereNeeded(model, requested);
  const options = possible(model, requested);
  const flow = readFlow(model.proto, (node) =>
    pluginSignature(node, options.pluginTypes, options.format.dtype),
  );
  checkOperators(flow, options);
  assertPluginTypes(flow, options.pluginTypes);
  const found = await readWeights(model, flow, options, context, rounded);
  const masks = masksOf(flow, options.format.maskLimit, (value) => found.get(value));
  const weights = weightsReaching(flow, found, masks.weights);
  const facts: RuleFacts = {
    options,
    weights,
    shapeArithmetic: shapeArithmetic(flow),
    angles: angleArithmetic(flow),
    variance: varianceArithmetic(flow),
    ranges: rangeArithmetic(flow, { ...options, masks, weights }),
    alreadyTyped: alreadyTyped(flow),
    shapeOf: valueShapes(model),
  };
  const decisions = decide(flow, facts);
  const inserted = insertCasts(flow, decisions, options, masks);
  const converted = new Set(inserted.converted.map(({ tensor }) => tensor));
  return {
    flow,
    decisions,
    inserted,
    opsetReason: raise.reason,
    opsetObstacle: raise.obstacle,
    weightsKept: keptWeights(flow, converted),
  };
}

/** Everything but what is quantized stays FP32. */
const unchanged = (flow: Flow): Plan => ({
  flow,
  decisions: { of: () => ({ kind: 'untouched' }), formatOf: () => undefined, wanted: () => 'fp32' },
  inserted: { converted: [], castsAdded: 0, castsRemoved: 0 },
  opsetReason: undefined,
  opsetObstacle: undefined,
  weightsKept: keptWeights(flow, new Set()),
});

const keptWeights = (flow: Flow, converted: ReadonlySet<TensorProto>): number =>
  flow.scopes.reduce(
    (sum, { graph }) =>
      sum + graph.initializer.filter((tensor) => tensor.dataType === 1 && !converted.has(tensor)).length,
    0,
  );

function raiseWhereNeeded(
  model: OnnxModel,
  options: ResolvedConversion,
): { reason?: string; obstacle?: string } {
  const flow = readFlow(model.proto);
  const needed = alreadyTyped(flow) === undefined ? neededOpset(flow, options) : undefined;
  if (needed === undefined) return {};
  const obstacle = raiseOpset(model, needed.to);
  if (obstacle === undefined) return { reason: needed.reason };
  return { obstacle: `${needed.reason}, but the opset cannot be raised: ${obstacle}.` };
}

const heavy: ReadonlySet<string> = new Set(
  'MatMul Gemm Conv ConvTranspose Einsum Attention LSTM GRU RNN'.split(' '),
);

/** Counts how many matrix products and convolutions are in 16 bits; a majority means that the model was converted before. */
function alreadyTyped(flow: Flow): RuleFacts['alreadyTyped'] {
  let low = 0;
  let all = 0;
  for (const { node, inputs } of flow.operations) {
    if (!heavy.has(node.opType)) continue;
    all++;
    if (floatFormats.some(({ dtype }) => dtype === inputs[0]?.type)) low++;
  }
  return 2 * low > all ? { low, all } : undefined;
}

type Found = ReadonlyMap<Value, WeightFacts>;

/** Of a format with FP32's range single values and tables of them alone are asked for, unless --init-max is lower. */
async function readWeights(
  model: OnnxModel,
  flow: Flow,
  options: ResolvedConversion,
  context: WorkContext,
  rounded: ReadonlySet<TensorProto>,
): Promise<Found> {
  const found = new Map<Value, WeightFacts>();
  const { weightLoss, maxFinite } = options.format;
  const isWhole = weightLoss !== null || options.initMax < maxFinite;
  const candidates = flow.scopes
    .flatMap(({ values }) => [...values.values()].filter(isCandidate(options)))
    .filter(({ tensor }) => tensor !== undefined && !rounded.has(tensor))
    .filter((value) => isWhole || axesOf(value.tensor) <= (isTable(value) ? 1 : 0));
  for (const [index, value] of candidates.entries()) {
    throwIfCancelled(context.signal, 'reading the weights');
    found.set(value, weightFacts(model.weight(value.tensor as TensorProto)));
    if (index % 16 === 15) {
      context.emit?.({ type: 'progress', phase: 'plan', done: index + 1, total: candidates.length });
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  return found;
}

const axesOf = (tensor: TensorProto | undefined): number =>
  tensor?.dims.filter((size) => size !== 1n).length ?? 0;

const isTable = ({ uses }: Value): boolean =>
  uses.some((use) => use.kind === 'input' && lookups.has(operatorName(use.operation)));

const isCandidate =
  (options: ResolvedConversion) =>
  (value: Value): boolean =>
    isStored(value) &&
    isFloat32(value) &&
    value.tensor !== undefined &&
    value.uses.some(
      (use) =>
        use.kind === 'input' && inputSlot(use.operation, use.index, options.format.dtype) === 'follows',
    );

/** Weights among an operation's inputs, directly or handed on by operators that only move values. A chain of these is walked once. */
function weightsReaching(
  flow: Flow,
  found: Found,
  without: ReadonlySet<Value>,
): (operation: Operation) => readonly WeightAt[] {
  const moved = new Map<Value, readonly Value[]>();
  const reaching = (value: Value | undefined): readonly Value[] => {
    if (value === undefined || !isFloat32(value) || without.has(value)) return [];
    const behind = moved.get(value) ?? [];
    return found.has(value) ? [value, ...behind] : behind;
  };
  for (const operation of weightMovers(flow)) {
    const [first = [], ...others] = operation.inputs.map(reaching).filter(({ length }) => length > 0);
    const all = others.length === 0 ? first : [...new Set([first, ...others].flat())];
    for (const output of operation.outputs) if (output !== undefined) moved.set(output, all);
  }
  return ({ inputs }) =>
    inputs.flatMap((input, index) =>
      reaching(input).map((value) => ({ index, name: value.name, facts: found.get(value)! })),
    );
}

/** Operations that hand on nothing but weights, in the flow's order: a transposed weight is still one. */
function weightMovers(flow: Flow): ReadonlySet<Operation> {
  const handing = new Set<Operation>();
  const isWeight = (value: Value) =>
    isStored(value) || (value.producer !== undefined && handing.has(value.producer));
  for (const operation of flow.operations) {
    if (!movers.has(operation.node.opType)) continue;
    const inputs = operation.inputs.filter((value) => value !== undefined && isFloat32(value));
    if (inputs.length > 0 && inputs.every((value) => value !== undefined && isWeight(value)))
      handing.add(operation);
  }
  return handing;
}

export interface Raise {
  readonly to: number;
  readonly reason: string;
}

/** The opset that the operators of a model need so that they know the format's type, where that is more than the model has. */
function neededOpset(flow: Flow, options: ResolvedConversion): Raise | undefined {
  const { format } = options;
  let needed: Raise | undefined;
  for (const operation of flow.operations) {
    const { node, opset } = operation;
    const name = operatorName(operation);
    if (plainDomain(node.domain) !== '' || operation.bodies.length > 0) continue;
    if (keptByDefault(name, node) !== undefined && !options.convertOps.has(name)) continue;
    if (options.keepOps.has(name) || notBuilt(operation, format) !== undefined) continue;
    const slots = slotsOf(operation, format.dtype);
    if (!slots.includes('unsupported') && (slots.includes('follows') || !slots.includes('fixed'))) continue;
    const to = firstOpset('', name, opset, (signature) =>
      [...signature.inputs, ...signature.outputs].some(
        ({ variable, allowed }) =>
          variable !== undefined && allowed.has('float32') && allowed.has(format.dtype),
      ),
    );
    if (to === undefined || to > NEWEST || to <= opset || to <= (needed?.to ?? 0)) continue;
    needed = { to, reason: `${name} takes ${format.label} from opset ${to} on` };
  }
  return needed;
}
