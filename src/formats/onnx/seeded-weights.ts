import { type Dtype, dtypes } from '../tensor/dtype.js';
import { type ByteFloat, isByteFloat } from '../tensor/low-precision.js';
import { type RandomStream, randomStream } from '../tensor/random.js';
import { float32Values, floatTensor, integerTensor } from '../tensor/values.js';
import { visitGraphs, visitTensors } from './graph.js';
import type { OnnxModel } from './model.js';
import type { TensorProto } from './onnx_pb.js';
import type { Weight, WeightStream } from './weight.js';

/** Tensors of so few elements are shapes, axes, limits, epsilons and scales: they stay as they are. */
const MOST_KEPT = 16;
const CHUNK_BYTES = 1 << 20;
const SEED = 0;

type SeededFloat = 'float16' | 'bfloat16' | 'float32' | 'float64' | ByteFloat;

/**
 * Random weights for every weight of a model: of its type and shape, its sign where all values have one, and its mean and deviation to two digits, which is
 * all that is left of it. Weights of one name get the same numbers in every model, whatever their type. Integers of more than a byte, booleans, text and
 * tensors of at most 16 elements stay: they are the structure of a graph. Reads every weight; memory does not grow with them.
 */
export function seededWeights(model: OnnxModel): ReadonlyMap<TensorProto, WeightStream> {
  const replacements = new Map<TensorProto, WeightStream>();
  for (const { tensor, node } of visitTensors(model.proto)) {
    const weight = model.weight(tensor);
    if (weight.elements <= MOST_KEPT || !isSeeded(weight.dtype)) continue;
    replacements.set(tensor, seeded(weight, tensor.name || (node?.output[0] ?? '')));
  }
  return replacements;
}

/** Removes what exporters write for people: sources and their paths, stack traces, metadata. */
export function removeTexts(model: OnnxModel): void {
  const { proto } = model;
  const clear = (message: { docString: string; metadataProps?: unknown[] }) => {
    message.docString = '';
    if (message.metadataProps !== undefined) message.metadataProps = [];
  };
  clear(proto);
  for (const { graph, function: called, nodes } of visitGraphs(proto)) {
    for (const message of [graph, called]) if (message !== undefined) clear(message);
    for (const node of nodes) clear(node);
    for (const node of nodes) for (const attribute of node.attribute) attribute.docString = '';
    for (const value of [...(graph?.input ?? []), ...(graph?.output ?? []), ...(graph?.valueInfo ?? [])])
      clear(value);
  }
  for (const { tensor } of visitTensors(proto)) clear(tensor);
}

const isSeededFloat = (dtype: Dtype): dtype is SeededFloat =>
  ['float16', 'bfloat16', 'float32', 'float64'].includes(dtype) || isByteFloat(dtype);

const isSeeded = (dtype: Dtype): boolean =>
  isSeededFloat(dtype) || dtype === 'int8' || dtype === 'uint8' || dtypes[dtype].bits < 8;

function seeded(weight: Weight, name: string): WeightStream {
  const { dtype, byteLength } = weight;
  const { bits } = dtypes[dtype];
  const draw = bits < 8 ? undefined : drawing(weight);
  return {
    dtype,
    byteLength,
    *chunks(chunkBytes = CHUNK_BYTES) {
      const stream = randomStream(SEED, name);
      const step = Math.max(16, chunkBytes - (chunkBytes % 16));
      for (let at = 0; at < byteLength; at += step) {
        const bytes = Math.min(step, byteLength - at);
        yield draw === undefined
          ? Uint8Array.from({ length: bytes }, () => stream.bits() & 0xff)
          : draw((8 * bytes) / bits, stream);
      }
    },
  };
}

/** Returns the maker of a weight's elements. */
function drawing({ dtype, elements, chunks }: Weight): (count: number, stream: RandomStream) => Uint8Array {
  let [sum, squares, min, max] = [0, 0, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  const { bits } = dtypes[dtype];
  for (const bytes of chunks(CHUNK_BYTES))
    for (const value of float32Values({ dtype, shape: [(8 * bytes.length) / bits], bytes })) {
      if (!Number.isFinite(value)) continue;
      sum += value;
      squares += value * value;
      if (value < min) min = value;
      if (value > max) max = value;
    }
  if (!isSeededFloat(dtype)) {
    const integer = dtype === 'int8' ? 'int8' : 'uint8';
    return (count, stream) =>
      integerTensor(
        integer,
        [count],
        Float64Array.from({ length: count }, () => stream.integer(min, max)),
      ).bytes;
  }
  const mean = twoDigits(sum / elements);
  const deviation = twoDigits(Math.sqrt(Math.max(0, squares / elements - (sum / elements) ** 2)));
  const largest = twoDigits(Math.max(Math.abs(min), Math.abs(max)));
  const smallest = min > 0 ? twoDigits(min) : max < 0 ? twoDigits(-max) : 0;
  const signed = (value: number) => (min >= 0 ? Math.abs(value) : max <= 0 ? -Math.abs(value) : value);
  const within = (value: number) => Math.sign(value) * Math.min(largest, Math.max(smallest, Math.abs(value)));
  return (count, stream) => {
    const values = new Float32Array(count);
    for (let i = 0; i < count; i++) values[i] = within(signed(mean + deviation * stream.normal()));
    return floatTensor(dtype, [count], values).bytes;
  };
}

const twoDigits = (value: number): number => (Number.isFinite(value) ? Number(value.toPrecision(2)) : 0);
