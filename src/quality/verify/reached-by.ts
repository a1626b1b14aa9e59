import { attributeOf } from '../../formats/onnx/attributes.js';
import { visitTensors } from '../../formats/onnx/graph.js';
import { type ModelLike, viewModel } from '../../formats/onnx/model.js';
import { weightFacts } from '../../formats/onnx/weight.js';
import { operatorName, readFlow, type Value } from '../../formats/precision/flow.js';
import { inlined } from '../../formats/precision/normalise.js';
import { dtypeFromOnnx } from '../../formats/tensor/dtype.js';
import type { Decides } from './decisions.js';

const nothing: ReadonlySet<string> = new Set();

/** The treatment of a model's values on their way to an output. */
interface Reached extends Decides {
  /** The inputs whose values reach it: shapes alone carry no value. */
  readonly inputs: readonly string[];
  /** Whether it states how many values compare as they should. */
  readonly isCount: boolean;
  /** The largest magnitude of all weights of the model that have few elements, biases and scales above all. */
  readonly largestWeight: number;
}

/** Stand among the inputs for an operator that orders rows, and for one that makes probabilities. */
const ORDER = '\0order';
const SCORES = '\0scores';

const makesScores = (name: string): boolean => /^(Sigmoid|HardSigmoid|Softmax)$/.test(name);

/** Probabilities are still probabilities behind these: a product is that of an object and its class. */
const KEEPS_SCORES =
  /^(Cast|Identity|Reshape|Squeeze|Unsqueeze|Flatten|Transpose|Concat|Slice|Split|Gather.*|TopK|Mul|Max|Min|ReduceMax|ReduceMin|Where|Pad|Expand|Tile|Sqrt|Clip|MaxPool|Resize|Scatter.*|If|Loop|(De)?QuantizeLinear|.*::.*(NMS|NonMaxSuppression).*)$/;

/** Returns the facts of each output of a model, looked up when first requested. Throws what opening the model throws. */
export function reachingOutputs(path: string): (output: string) => Reached {
  let found: ReadonlyMap<string, Reached> | undefined;
  return (output) => {
    found ??= read(path);
    return (
      found.get(output) ?? {
        inputs: [],
        isOrdered: false,
        isCount: false,
        areScores: false,
        classAxis: null,
        areLabels: false,
        largestWeight: Number.POSITIVE_INFINITY,
      }
    );
  };
}

const ordersRows = (name: string): boolean =>
  /(^|::)(TopK|Unique|NonZero|.*(NMS|NonMaxSuppression).*)$/.test(name);

const MOVES = /^(Cast|Identity|Reshape|Squeeze|Unsqueeze|Flatten)$/;

/** The origin of a value: nodes that only cast and move it are left out. */
function originOf(value: Value | undefined): Value | undefined {
  const { producer } = value ?? {};
  return producer && MOVES.test(operatorName(producer)) ? originOf(producer.inputs[0]) : value;
}

/** Whether a value is a sum of booleans, or the first output of a plug-in's NMS. */
function isCount(value: Value): boolean {
  const made = originOf(value);
  const name = made?.producer ? operatorName(made.producer) : '';
  if (name === 'ReduceSum') {
    const [summed] = made!.producer!.inputs;
    return [summed, summed?.producer?.inputs[0]].some((one) => one?.type === 'bool');
  }
  return /::.*NMS/.test(name) && made === made!.producer!.outputs[0] && made!.producer!.outputs.length > 3;
}

/** Larger weights are products' operands, of no size of their own. */
const MOST_ELEMENTS = 2 ** 16;

function largestOf(model: ModelLike): number {
  let largest = 0;
  for (const { tensor } of visitTensors(model.proto)) {
    if (dtypeFromOnnx(tensor.dataType) !== 'float32') continue;
    const weight = model.weight(tensor);
    if (weight.byteLength <= 4 * MOST_ELEMENTS) largest = Math.max(largest, weightFacts(weight).maxAbs);
  }
  return largest;
}

const withoutScores = (set: ReadonlySet<string>): ReadonlySet<string> =>
  set.has(SCORES) ? new Set([...set].filter((name) => name !== SCORES)) : set;

/** The axis of which a Softmax makes the value, or of which a Softmax or an ArgMax reads it. */
function classAxisOf(value: Value): number | null {
  const { producer } = value.producer?.node.opType === 'Cast' ? value.producer.inputs[0]! : value;
  const readers = value.uses.flatMap((use) => (use.kind === 'input' ? [use.operation] : []));
  const found = [producer, ...readers].find(
    (operation, at) =>
      operation !== undefined &&
      /^(Softmax|LogSoftmax|ArgMax)$/.test(operatorName(operation)) &&
      (at > 0 || operation.node.opType !== 'ArgMax'),
  );
  if (found === undefined) return null;
  const isArgMax = found.node.opType === 'ArgMax';
  // Before opset 13 a Softmax took all axes from 1 on together by default.
  const usual = isArgMax ? 0n : found.opset < 13 ? 1n : -1n;
  return Number(attributeOf(found.node, 'axis')?.i ?? usual);
}

function read(path: string): ReadonlyMap<string, Reached> {
  return viewModel(path, (model) => {
    const { root, operations } = readFlow(inlined(model).proto);
    const reached = new Map<Value, ReadonlySet<string>>(
      root.inputs.filter(({ tensor }) => tensor === undefined).map((input) => [input, new Set([input.name])]),
    );
    for (const operation of operations) {
      const operator = operatorName(operation);
      if (/^(Shape|Size)$/.test(operator)) continue;
      const values = [...operation.inputs, ...operation.bodies.flatMap(({ outputs }) => outputs)];
      const sets = [
        ...new Set(values.map((value) => (value && reached.get(value)) ?? nothing)),
        ordersRows(operator) ? new Set([ORDER]) : nothing,
        makesScores(operator) ? new Set([SCORES]) : nothing,
      ].map((set) => (makesScores(operator) || KEEPS_SCORES.test(operator) ? set : withoutScores(set)));
      const all = sets.reduce((most, one) => (one.size > most.size ? one : most), nothing);
      const isWhole = sets.every((one) => [...one].every((name) => all.has(name)));
      const union = isWhole ? all : new Set(sets.flatMap((one) => [...one]));
      if (union.size > 0) for (const output of operation.outputs) if (output) reached.set(output, union);
    }
    const largestWeight = largestOf(model);
    return new Map(
      root.outputs.flatMap((value) => {
        if (!value) return [];
        const all = [...(reached.get(value) ?? nothing)];
        return [
          [
            value.name,
            {
              inputs: all.filter((name) => name !== ORDER && name !== SCORES),
              isOrdered: all.includes(ORDER),
              isCount: isCount(value),
              areScores: all.includes(SCORES),
              classAxis: classAxisOf(value),
              largestWeight,
              areLabels: originOf(value)?.producer?.node.opType === 'ArgMax',
            },
          ],
        ];
      }),
    );
  });
}
