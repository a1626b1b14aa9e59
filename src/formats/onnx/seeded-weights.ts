import { type Dtype, dtypes } from '../tensor/dtype.js';
import { type ByteFloat, isByteFloat } from '../tensor/low-precision.js';
import { type RandomStream, randomStream } from '../tensor/random.js';
import { float32Values, floatTensor, integerTensor } from '../tensor/tensor.js';
import { visitGraphs, visitTensors } from './graph.js';
import type { OnnxModel } from './model.js';
import type { NodeProto, TensorProto } from './onnx_pb.js';
import type { Weight, WeightStream } from './weight.js';

/** Lists of so few integers, and texts of so few bytes, are shapes, axes, zero points and names: they stay as they are. */
const MOST_KEPT = 16;
const LONGEST_TEXT = 1 << 10;

/** Operators whose lists of floats are structure, not weights. */
const structural: ReadonlySet<string> = new Set(['Resize', 'Upsample', 'OneHot']);
const CHUNK_BYTES = 1 << 20;
const SEED = 0;

type SeededFloat = 'float16' | 'bfloat16' | 'float32' | 'float64' | ByteFloat;

/**
 * Random weights for every weight of a model: of its type and shape, its sign where all values have one, and its mean, deviation and range to two digits, which is
 * all that is left of it. Weights of one name get the same numbers in every model, whatever their type. What stays is the structure of a graph: integers of more
 * than a byte, short lists of others, booleans, text, single numbers, scales of Resize. Reads every weight; memory does not grow with them.
 */
export function seededWeights(model: OnnxModel): ReadonlyMap<TensorProto, WeightStream> {
  return new Map(
    placedWeights(model).flatMap(({ tensor, name, weight, isSeeded }) =>
      isSeeded ? [[tensor, seeded(weight, name)] as const] : [],
    ),
  );
}

/** Which weights of a model `seededWeights` replaces. */
export function seedingOf(model: OnnxModel): { readonly replaced: number; readonly kept: string[] } {
  const weights = placedWeights(model);
  const kept = weights.flatMap(({ isSeeded, name }) => (isSeeded ? [] : [name]));
  return { replaced: weights.length - kept.length, kept };
}

function placedWeights(model: OnnxModel) {
  const kept = new Set([...visitGraphs(model.proto)].flatMap(({ nodes }) => [...structureOf(nodes)]));
  return [...visitTensors(model.proto)].map(({ tensor, node }) => {
    const weight = model.weight(tensor);
    const name = tensor.name || (node?.output[0] ?? '');
    const { dtype, elements } = weight;
    const isWeight = isSeededFloat(dtype)
      ? elements > (kept.has(name) ? MOST_KEPT : 1)
      : elements > MOST_KEPT && isSeeded(dtype);
    return { tensor, name, weight, isSeeded: isWeight };
  });
}

/** Names of the values that structure is computed of. */
function structureOf(nodes: readonly NodeProto[]): ReadonlySet<string> {
  const makers = new Map(nodes.flatMap((node) => node.output.map((name) => [name, node] as const)));
  const names = new Set(nodes.flatMap(({ opType, input }) => (structural.has(opType) ? input.slice(1) : [])));
  for (const name of names) {
    const maker = makers.get(name);
    if (maker?.opType !== 'Shape') for (const read of maker?.input ?? []) names.add(read);
  }
  return names;
}

/** Replaces what attributes may have of weights: lists of floats by numbers of their mean and deviation, long texts by as long ones. Changes `model`. */
export function seedAttributes({ proto }: OnnxModel): void {
  for (const { nodes } of visitGraphs(proto))
    for (const { name, output, attribute } of nodes)
      for (const each of attribute) {
        const stream = randomStream(SEED, `${name || output[0]}/${each.name}`);
        if (each.floats.length > MOST_KEPT) {
          const draw = drawnAs('float32', [Float32Array.from(each.floats)]);
          each.floats = [...new Float32Array(Uint8Array.from(draw(each.floats.length, stream)).buffer)];
        }
        if (each.s.length > LONGEST_TEXT) each.s = new Uint8Array(each.s.length).fill(0x78);
        each.strings = each.strings.map((text) =>
          text.length > LONGEST_TEXT ? new Uint8Array(text.length).fill(0x78) : text,
        );
      }
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
const drawing = ({ dtype, chunks }: Weight) =>
  drawnAs(
    dtype,
    (function* () {
      for (const bytes of chunks(CHUNK_BYTES))
        yield float32Values({ dtype, shape: [(8 * bytes.length) / dtypes[dtype].bits], bytes });
    })(),
  );

function drawnAs(
  dtype: Dtype,
  lists: Iterable<Float32Array>,
): (count: number, stream: RandomStream) => Uint8Array {
  let [elements, sum, squares, min, max] = [0, 0, 0, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const values of lists)
    for (const value of values) {
      elements++;
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
  const [lowest, highest] = [twoDigits(min), twoDigits(max)];
  const signed = (value: number) => (min >= 0 ? Math.abs(value) : max <= 0 ? -Math.abs(value) : value);
  const within = (value: number) => Math.min(highest, Math.max(lowest, value));
  return (count, stream) => {
    const values = new Float32Array(count);
    for (let i = 0; i < count; i++) values[i] = within(signed(mean + deviation * stream.normal()));
    return floatTensor(dtype, [count], values).bytes;
  };
}

const twoDigits = (value: number): number => (Number.isFinite(value) ? Number(value.toPrecision(2)) : 0);
