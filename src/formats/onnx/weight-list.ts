import { throwIfCancelled } from '../../base/process/cancel.js';
import { TrtforgeError } from '../../errors.js';
import { float32Values } from '../tensor/tensor.js';
import { attributeOf } from './attributes.js';
import { visitMainGraphs } from './graph.js';
import type { OnnxModel } from './model.js';
import type { ModelFacts } from './model-facts.js';
import type { NodeProto } from './onnx_pb.js';
import type { Weight } from './weight.js';

type WeightFacts = NonNullable<ModelFacts['weightList']>[number];

const CHUNK_BYTES = 4 << 20;

/**
 * The initializers of the graph and its bodies whose name matches, in the file's order, with what their values are. Each is read once, in constant memory;
 * what cannot be read (text, complex numbers, damaged) has no range. Throws TF_CANCELLED.
 */
export async function listWeights(
  model: OnnxModel,
  pattern: RegExp,
  signal?: AbortSignal,
): Promise<WeightFacts[]> {
  const listed: WeightFacts[] = [];
  for (const { graph, nodes } of visitMainGraphs(model.proto)) {
    const uses = firstUses(nodes);
    for (const tensor of graph?.initializer ?? []) {
      if (!pattern.test(tensor.name)) continue;
      throwIfCancelled(signal, 'reading weights');
      await new Promise((resolve) => setImmediate(resolve));
      const weight = readable(() => model.weight(tensor));
      if (weight === undefined) continue;
      const { dtype } = weight;
      const shape = tensor.dims.map(Number);
      const use = uses.get(tensor.name);
      const axis = use && summedAxis(use, shape.length);
      const values = readable(() => valuesOf(weight, shape, axis)) ?? noValues;
      listed.push({ name: tensor.name, dtype, shape, ...values });
    }
  }
  return listed;
}

interface Use {
  readonly node: NodeProto;
  readonly index: number;
}

function firstUses(nodes: readonly NodeProto[]): ReadonlyMap<string, Use> {
  const uses = new Map<string, Use>();
  for (const node of nodes)
    for (const [index, name] of node.input.entries()) if (!uses.has(name)) uses.set(name, { node, index });
  return uses;
}

/** The axis that a product sums over: input channels. Undefined where the weight is no operand of one. */
function summedAxis({ node, index }: Use, rank: number): number | undefined {
  const isTransposed = (name: string) => Number(attributeOf(node, name)?.i ?? 0) !== 0;
  if (node.opType === 'Conv') return index === 1 ? 1 : undefined;
  if (rank < 2 || index > 1) return undefined;
  if (node.opType === 'MatMul') return index === 0 ? rank - 1 : rank - 2;
  if (node.opType !== 'Gemm') return undefined;
  return isTransposed(index === 0 ? 'transA' : 'transB') === (index === 0) ? 0 : 1;
}

type Values = Pick<WeightFacts, 'min' | 'max' | 'zeros' | 'sparse24'>;
const noValues: Values = { min: null, max: null, zeros: null, sparse24: null };

function valuesOf(weight: Weight, shape: readonly number[], axis: number | undefined): Values {
  let [min, max, zeros, at] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0, 0];
  const groups = axis === undefined ? undefined : groupsOfFour(shape, axis);
  for (const values of floatsOf(weight)) {
    for (const value of values) {
      if (value === 0) zeros++;
      if (value < min && value !== Number.NEGATIVE_INFINITY) min = value;
      if (value > max && value !== Number.POSITIVE_INFINITY) max = value;
    }
    groups?.add(values, at);
    at += values.length;
  }
  const isEmpty = min > max;
  return { min: isEmpty ? null : min, max: isEmpty ? null : max, zeros, sparse24: groups?.hold() ?? null };
}

/**
 * Watches whether every four neighbours along an axis have two zeros, as the sparse tensor cores of Ampere and later need it: for each output channel and each
 * point of a kernel, of four input channels. Undefined where the axis is no multiple of four.
 */
function groupsOfFour(shape: readonly number[], axis: number) {
  const size = shape[axis] ?? 0;
  if (size === 0 || size % 4 !== 0) return undefined;
  const inner = shape.slice(axis + 1).reduce((product, dim) => product * dim, 1);
  const zeros = new Uint8Array(inner);
  let isHeld = true;
  return {
    hold: () => isHeld,
    add: (values: Float32Array, first: number) => {
      if (!isHeld) return;
      for (let i = 0; i < values.length; i++) {
        const at = first + i;
        const lane = at % inner;
        const place = Math.floor(at / inner) % 4;
        if (place === 0) zeros[lane] = 0;
        if (values[i] === 0) zeros[lane]! += 1;
        if (place !== 3 || zeros[lane]! >= 2) continue;
        isHeld = false;
        return;
      }
    },
  };
}

/** The values of a weight piece by piece. Types of less than a byte have several in each. */
function* floatsOf({ dtype, elements, byteLength, chunks }: Weight): Generator<Float32Array> {
  const inByte = elements > byteLength ? Math.ceil(elements / byteLength) : elements / byteLength;
  let left = elements;
  for (const bytes of chunks(CHUNK_BYTES)) {
    const count = Math.min(left, bytes.length * inByte);
    left -= count;
    yield float32Values({ dtype, shape: [count], bytes });
  }
}

function readable<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch (error) {
    if (error instanceof TrtforgeError && error.code !== 'TF_CANCELLED') return undefined;
    throw error;
  }
}
