import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import type { ProfileRange } from '../../../engines/identity/recipe.js';
import type { Profile } from '../../../engines/profiles/profile.js';
import { inTypesOf } from '../../../engines/run/input-dtype.js';
import { openSession } from '../../../engines/runtime/open-session.js';
import { TrtforgeError } from '../../../errors.js';
import { inferDtypes } from '../../../formats/onnx/dtype-inference.js';
import type { OnnxModel } from '../../../formats/onnx/model.js';
import { type NodeProto, type TensorProto, TensorProtoSchema } from '../../../formats/onnx/onnx_pb.js';
import { type BorderValue, borderOf, keepPart } from '../../../formats/onnx/subgraph.js';
import { writeModel } from '../../../formats/onnx/write.js';
import { type Dtype, dtypes, elementCount } from '../../../formats/tensor/dtype.js';
import { float32Values, type NamedTensors, type Tensor } from '../../../formats/tensor/tensor.js';
import type { CandidateEngines } from '../../../quality/known-answer/candidate-engines.js';
import { fits } from '../../../quality/verify/sample-plan.js';
import type { ReferenceRun } from '../../../quality/verify/sample-runs.js';
import { writeMarked } from '../marked-model.js';
import type { BisectContext, BisectRequest } from './options.js';

/** The basis on which parts are cut: the FP32 model that computes the values at their borders, and its sample. */
export interface Cutting {
  /** The FP32 model. */
  readonly model: string;
  /** Builds the parts; null where models are judged. */
  readonly engines: CandidateEngines | null;
  readonly reference: Pick<ReferenceRun, 'plan'>;
  readonly sample: number;
  /** For files that are not kept. */
  readonly work: string;
}

/** A part as a model of its own. */
export interface Cut {
  readonly path: string;
  readonly nodes: number;
  /** The FP32 model's values at the part's inputs, in their types, and at its outputs. */
  readonly inputs: NamedTensors;
  readonly expected: NamedTensors;
  readonly profiles: readonly Profile[];
}

/** Leaves the nodes of these names in a model, and writes it to a file; null where the FP32 model cannot state what crosses its border. Changes `model`. Throws what running and writing throw. */
export async function cutOut(
  model: OnnxModel,
  names: ReadonlySet<string>,
  path: string,
  cutting: Cutting,
  request: BisectRequest,
  context: BisectContext,
): Promise<Cut | null> {
  const { graph } = model.proto;
  if (graph === undefined) return null;
  const { types } = inferDtypes(model.proto).graph;
  const part = new Set(graph.node.filter(({ name }) => names.has(name)));
  const border = borderOf(graph, part);
  const values = await valuesAt(border, part, cutting, request, context);
  const at = (name: string): readonly BorderValue[] => {
    const type = types.get(name);
    const tensor = values.get(name);
    return type === undefined || !(type in dtypes) || tensor === undefined
      ? []
      : [{ name, dtype: type as Dtype, shape: tensor.shape }];
  };
  const [inputs, outputs] = [border.inputs.flatMap(at), border.outputs.flatMap(at)];
  // A value that the FP32 model does not have under this name: a larger part may have it inside.
  if (inputs.length < border.inputs.length || outputs.length === 0) return null;
  const { declared, frozen, profiles } = await declaredAs(cutting, inputs, values, request, context);
  keepPart(model.proto, part, declared, profiles.length === 0 ? outputs : outputs.map(withOpenShape));
  graph.initializer.push(...frozen);
  await writeModel(model, path, { signal: context.signal });
  const passed = inTypesOf(declared, values, cutting.model);
  // A value that leaves the range at the border fails without a node.
  if (declared.some(({ name }) => countInfinite(passed.get(name)) > countInfinite(values.get(name))))
    return null;
  const expected: NamedTensors = new Map(outputs.map(({ name }) => [name, values.get(name)!]));
  return { path, nodes: part.size, inputs: passed, expected, profiles };
}

/** The values at the border of a part, by name. A value that a cast of the conversion passes on has in the FP32 model the name the cast reads. */
async function valuesAt(
  { inputs, outputs }: ReturnType<typeof borderOf>,
  part: ReadonlySet<NodeProto>,
  cutting: Cutting,
  request: BisectRequest,
  context: BisectContext,
): Promise<NamedTensors> {
  const sources = new Map(
    [...part].flatMap(({ opType, input: [read = ''], output: [made = ''] }) =>
      opType === 'Cast' ? [[made, read] as const] : [],
    ),
  );
  const sourceOf = (name: string) => sources.get(name) ?? name;
  const values = await valuesOf(cutting, [...inputs, ...outputs, ...outputs.map(sourceOf)], request, context);
  const passedOn = outputs.flatMap((name) => {
    const value = values.get(name) ?? values.get(sourceOf(name));
    return value === undefined ? [] : [[name, value] as const];
  });
  return new Map([...values, ...passedOn]);
}

/** Inputs of a part, what of them is stored in it instead, and the profiles of its engine. */
interface DeclaredInputs {
  readonly declared: readonly BorderValue[];
  readonly frozen: readonly TensorProto[];
  readonly profiles: readonly Profile[];
}

/**
 * The declarations of a part's inputs. For an engine they have the open dimensions of its profile; where integers are computed outside of the part,
 * which may be shapes, they are stored in it as they are for the sample, and every shape is fixed.
 */
async function declaredAs(
  cutting: Cutting,
  inputs: readonly BorderValue[],
  values: NamedTensors,
  request: BisectRequest,
  context: BisectContext,
): Promise<DeclaredInputs> {
  const { engines, reference, sample } = cutting;
  if (engines === null) return { declared: inputs, frozen: [], profiles: [] };
  const passed = reference.plan.tensors(sample);
  const isInteger = ({ name, dtype }: BorderValue) => dtypes[dtype].kind !== 'float' && !passed.has(name);
  const fixed: DeclaredInputs = {
    declared: inputs.filter((input) => !isInteger(input)),
    frozen: inputs.filter(isInteger).map((input) => storedAs(input, values.get(input.name)!)),
    profiles: [],
  };
  const profile = engines.recipe.profiles.find((ranges) => fits(ranges, passed));
  if (fixed.frozen.length > 0 || profile === undefined) return fixed;
  const names = inputs.map(({ name }) => name);
  const own = new Map([...values].filter(([name]) => names.includes(name)));
  const ranges = await rangesAt(profile, passed, own, (sized) =>
    valuesOf(cutting, names, request, context, sized),
  );
  if (ranges === null) return fixed;
  const open = [...ranges].filter(([, { min, max }]) => min.join() !== max.join());
  return {
    declared: inputs.map((input) => ({ ...input, shape: openShape(ranges.get(input.name)!) })),
    frozen: [],
    profiles: open.length === 0 ? [] : [Object.fromEntries(open)],
  };
}

/** The rank alone: a part with open inputs has open outputs. */
const withOpenShape = (value: BorderValue): BorderValue => ({
  ...value,
  shape: value.shape?.map(() => null) ?? null,
});

const storedAs = ({ name, dtype }: BorderValue, { shape, bytes }: Tensor): TensorProto =>
  create(TensorProtoSchema, {
    name,
    dataType: dtypes[dtype].onnx,
    dims: shape.map(BigInt),
    rawData: bytes.slice(),
  });

function countInfinite(tensor: Tensor | undefined): number {
  if (tensor === undefined || dtypes[tensor.dtype].kind !== 'float') return 0;
  return float32Values(tensor).reduce((count, value) => count + Number(!Number.isFinite(value)), 0);
}

/** The FP32 model's own values of some names, by default on the sample that failed; names that it does not have are left out. */
async function valuesOf(
  { model: path, reference, sample, work }: Cutting,
  names: readonly string[],
  { threads }: BisectRequest,
  context: BisectContext,
  inputs = reference.plan.tensors(sample),
): Promise<NamedTensors> {
  const marked = join(work, 'marked.onnx');
  const made = names.filter((name) => !inputs.has(name));
  await writeMarked(path, marked, made, 'kept', context.signal);
  await using session = await openSession(marked, { threads }, context, context.backEnds);
  return new Map([...inputs, ...(await session.run(inputs, { signal: context.signal }))]);
}

/**
 * The ranges of values inside a model where its inputs have those of a profile: it runs on the sample cropped to the least shapes, and repeated to the largest.
 * `values` are those of the sample itself, its optimum. null where shapes follow from values, and where it does not run so or ranges do not ascend.
 */
async function rangesAt(
  profile: Profile,
  sample: NamedTensors,
  values: NamedTensors,
  run: (inputs: NamedTensors) => Promise<NamedTensors>,
): Promise<ReadonlyMap<string, ProfileRange> | null> {
  if (Object.values(profile).some((range) => range.values)) return null;
  const valuesAt = (end: 'min' | 'max') =>
    run(
      new Map(
        [...sample].map(([name, tensor]) => [name, resized(tensor, profile[name]?.[end] ?? tensor.shape)]),
      ),
    );
  try {
    const [least, most] = [await valuesAt('min'), await valuesAt('max')];
    const ranges = new Map<string, ProfileRange>();
    for (const [name, { shape: opt }] of values) {
      const [min = [], max = []] = [least.get(name)?.shape, most.get(name)?.shape];
      if (min.length !== opt.length || max.length !== opt.length) return null;
      if (!opt.every((size, axis) => min[axis]! <= size && size <= max[axis]!)) return null;
      ranges.set(name, { min: [...min], opt: [...opt], max: [...max], values: false });
    }
    return ranges;
  } catch (error) {
    if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED') throw error;
    return null;
  }
}

/** The first elements of a tensor, repeated where it has too few, in another shape. */
function resized({ dtype, shape, bytes }: Tensor, dims: readonly number[]): Tensor {
  const width = bytes.length / Math.max(1, elementCount(shape));
  const length = elementCount(dims) * width;
  const filled = new Uint8Array(length);
  for (let at = 0; at < length && bytes.length > 0; at += bytes.length)
    filled.set(bytes.subarray(0, Math.min(bytes.length, length - at)), at);
  return { dtype, shape: dims, bytes: filled };
}

/** Shapes with a symbol for each open dimension; dimensions of the same range have the same. */
const openShape = ({ min, opt, max }: ProfileRange): readonly (number | string)[] =>
  opt.map((size, axis) => (min[axis] === max[axis] ? size : `d${min[axis]}_${size}_${max[axis]}`));
