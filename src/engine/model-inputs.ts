import { z } from 'zod';
import type { GraphProto, ModelProto, ValueInfoProto } from '../onnx/onnx_pb.js';
import { dtypeFromOnnx } from '../tensor/dtype.js';

/** An input or output of a model as its graph declares it. */
export const modelTensorSchema = z.object({
  name: z.string(),
  /** null for what is no dense tensor (sequences, maps) or of an unknown type. */
  dtype: z.string().nullable(),
  /** Numbers, symbols, null for an open dimension without a name; the whole is null when the rank is open too. */
  shape: z.array(z.union([z.int().nonnegative(), z.string(), z.null()])).nullable(),
});
export type ModelTensor = z.infer<typeof modelTensorSchema>;

/** What a caller must feed: the graph's inputs that have no initializer of the same name (older exporters list weights as inputs). */
export function modelInputs(proto: ModelProto): readonly ModelTensor[] {
  const { graph } = proto;
  if (graph === undefined) return [];
  const given = initializerNames(graph);
  return graph.input.filter(({ name }) => !given.has(name)).map(modelTensor);
}

export const modelOutputs = (proto: ModelProto): readonly ModelTensor[] =>
  (proto.graph?.output ?? []).map(modelTensor);

function initializerNames(graph: GraphProto): Set<string> {
  return new Set([
    ...graph.initializer.map(({ name }) => name),
    ...graph.sparseInitializer.map(({ values }) => values?.name ?? ''),
  ]);
}

function modelTensor({ name, type }: ValueInfoProto): ModelTensor {
  if (type?.value.case !== 'tensorType') return { name, dtype: null, shape: null };
  const { elemType, shape } = type.value.value;
  return {
    name,
    dtype: dtypeFromOnnx(elemType) ?? null,
    shape: shape?.dim.map(({ value }) => dimension(value.case, value.value)) ?? null,
  };
}

/** A negative number and an empty symbol both stand for «open» in files of some exporters. */
function dimension(kind: string | undefined, value: bigint | string | undefined): number | string | null {
  if (kind === 'dimValue' && typeof value === 'bigint') return value < 0n ? null : Number(value);
  if (kind === 'dimParam' && typeof value === 'string' && value !== '') return value;
  return null;
}
