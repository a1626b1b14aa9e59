import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { shellLine } from '../../base/process/shell-quote.js';
import type { Profile } from '../../engines/identity/profile.js';
import { inDtype, sampleOf } from '../../engines/run/inputs.js';
import type { OpenOptions } from '../../engines/runtime/back-end.js';
import { openSession } from '../../engines/runtime/open-session.js';
import { engineLoadOptionsOf } from '../../engines/runtime/tensorrt/engine-options.js';
import { inferDtypes } from '../../formats/onnx/dtype-inference.js';
import { usedNames } from '../../formats/onnx/graph.js';
import { openModel } from '../../formats/onnx/model.js';
import {
  type GraphProto,
  type NodeProto,
  type TensorProto,
  TensorProtoSchema,
} from '../../formats/onnx/onnx_pb.js';
import { type BorderValue, borderOf, keepPart } from '../../formats/onnx/subgraph.js';
import { writeModel } from '../../formats/onnx/write.js';
import { type Dtype, dtypes } from '../../formats/tensor/dtype.js';
import { writeNpz } from '../../formats/tensor/npz.js';
import type { NamedTensors, Tensor } from '../../formats/tensor/tensor.js';
import { float32Values } from '../../formats/tensor/values.js';
import { failedOutputs, judgeRuns } from '../verify/judge-runs.js';
import type { ReferenceRun } from '../verify/sample-runs.js';
import type { VerifyPrecision } from '../verify/tolerance.js';
import { openShape, rangesAt } from './border-shapes.js';
import { whyUnresolved } from './candidates.js';
import type { CandidateEngines } from './engines.js';
import { copyWithOutputs } from './marked-model.js';
import type { BisectContext, BisectRequest } from './request.js';
import type { BisectResult } from './result.js';

/** What is reduced: a model that fails, and the nodes at fault. */
export interface Failing {
  /** The FP32 model, and its conversion. */
  readonly model: string;
  readonly typed: string;
  readonly precision: VerifyPrecision;
  /** Builds the parts; null where models are judged. */
  readonly engines: CandidateEngines | null;
  /** Nodes of which one may fail alone, the likeliest first. */
  readonly single: readonly string[];
  /** Nodes that may fail with what lies between and around them. */
  readonly together: readonly string[];
  readonly reference: ReferenceRun;
  readonly seed: number;
  /** The sample that failed. */
  readonly sample: number;
  /** For files that are not kept. */
  readonly work: string;
}

/** Steps around the nodes, until the part fails; then the part is too large to help anybody. */
const RADII = [0, 1, 2, 4, 8];

/** So many nodes are tried alone. */
const MOST_SINGLE = 3;

/**
 * The smallest of some parts of a model that still fails by itself: first one of the nodes, then all with what lies between them, then more and
 * more around them. Its inputs are what the FP32 model computes there, side branches included. Writes `reduced.onnx`, `inputs.npz` and `expected.npz` into
 * the output folder; null where no such part fails. Throws what opening, running and writing throw.
 */
export async function reduceFailure(
  failing: Failing,
  request: BisectRequest,
  context: BisectContext,
): Promise<BisectResult['reduced']> {
  const tried = new Set<string>();
  for (const part of partsOf(failing)) {
    const key = [...part].sort().join('\n');
    if (tried.has(key)) continue;
    tried.add(key);
    const reduced = await tryPart(failing, part, request, context);
    if (reduced !== null) return reduced;
  }
  return null;
}

/** Sets of node names, smallest first. */
function* partsOf({ typed, single, together }: Failing): Generator<ReadonlySet<string>> {
  const model = openModel(typed);
  model.close();
  const { graph } = model.proto;
  if (graph === undefined) return;
  const around = new Surroundings(graph);
  const nodesOf = (names: readonly string[]) => graph.node.filter(({ name }) => names.includes(name));
  for (const node of nodesOf(single).slice(0, MOST_SINGLE)) yield around.closed(new Set([node]));
  if (together.length === 0) return;
  const between = around.between(new Set(nodesOf(together)));
  for (const radius of RADII) yield around.closed(around.grown(between, radius));
}

/** Nodes that multiply FP32 tensors, in the order of the graph: what TF32 shortens. Throws what opening a model throws. */
export function float32Products(path: string): readonly string[] {
  const model = openModel(path);
  try {
    const { types } = inferDtypes(model.proto).graph;
    return (model.proto.graph?.node ?? [])
      .filter(({ opType, output: [made = ''] }) => products.has(opType) && types.get(made) === 'float32')
      .map(({ name }) => name);
  } finally {
    model.close();
  }
}

const products: ReadonlySet<string> = new Set(['MatMul', 'Gemm', 'Conv', 'ConvTranspose']);

class Surroundings {
  readonly #nodes: readonly NodeProto[];
  readonly #makers = new Map<string, NodeProto>();
  readonly #readers = new Map<string, NodeProto[]>();

  constructor(graph: GraphProto) {
    this.#nodes = graph.node;
    for (const node of graph.node) {
      for (const name of node.output) this.#makers.set(name, node);
      for (const name of usedNames(node)) {
        const readers = this.#readers.get(name);
        if (readers === undefined) this.#readers.set(name, [node]);
        else readers.push(node);
      }
    }
  }

  #before = (node: NodeProto): readonly NodeProto[] =>
    usedNames(node).flatMap((name) => this.#makers.get(name) ?? []);
  #after = (node: NodeProto): readonly NodeProto[] =>
    node.output.flatMap((name) => this.#readers.get(name) ?? []);

  grown(part: ReadonlySet<NodeProto>, steps: number): ReadonlySet<NodeProto> {
    let all = part;
    for (let step = 0; step < steps; step++)
      all = new Set([...all].flatMap((node) => [node, ...this.#before(node), ...this.#after(node)]));
    return all;
  }

  /** The nodes on all ways from one of the part to another. */
  between(part: ReadonlySet<NodeProto>): ReadonlySet<NodeProto> {
    const after = reached(part, this.#after);
    const before = reached(part, this.#before);
    return new Set(this.#nodes.filter((node) => part.has(node) || (after.has(node) && before.has(node))));
  }

  /** Names with the casts at the border, so that it lies at values of the FP32 model, and with nodes that read nothing but weights. */
  closed(part: ReadonlySet<NodeProto>): ReadonlySet<string> {
    const all = new Set(part);
    for (const node of all) {
      const sources = this.#before(node).filter((maker) => this.#before(maker).length === 0 && isFree(maker));
      const casts = [...this.#before(node), ...this.#after(node)].filter(({ opType }) => opType === 'Cast');
      for (const more of [...sources, ...casts]) all.add(more);
    }
    return new Set([...all].map(({ name }) => name));
  }
}

/** Whether a node reads nothing that could be cut. */
const isFree = ({ input }: NodeProto): boolean => input.length === 0;

function reached(
  from: ReadonlySet<NodeProto>,
  next: (node: NodeProto) => readonly NodeProto[],
): ReadonlySet<NodeProto> {
  const all = new Set<NodeProto>();
  const queue = [...from];
  for (let node = queue.pop(); node !== undefined; node = queue.pop())
    for (const more of next(node))
      if (!all.has(more)) {
        all.add(more);
        queue.push(more);
      }
  return all;
}

/** Cuts a part out, runs it on the values of the FP32 model, and keeps it where it fails. */
async function tryPart(
  failing: Failing,
  names: ReadonlySet<string>,
  request: BisectRequest,
  context: BisectContext,
): Promise<BisectResult['reduced']> {
  const { output } = request;
  const typed = openModel(failing.typed);
  try {
    const { graph } = typed.proto;
    if (graph === undefined) return null;
    const { types } = inferDtypes(typed.proto).graph;
    const part = new Set(graph.node.filter(({ name }) => names.has(name)));
    const border = borderOf(graph, part);
    const values = await valuesOf(failing, [...border.inputs, ...border.outputs], request, context);
    const dtypeOf = (name: string): Dtype | undefined => {
      const type = types.get(name);
      return type !== undefined && type in dtypes ? (type as Dtype) : undefined;
    };
    const at = (name: string): readonly BorderValue[] => {
      const [dtype, tensor] = [dtypeOf(name), values.get(name)];
      return dtype === undefined || tensor === undefined ? [] : [{ name, dtype, shape: tensor.shape }];
    };
    const [inputs, outputs] = [border.inputs.flatMap(at), border.outputs.flatMap(at)];
    // A value that the FP32 model does not have under this name: a larger part may have it inside.
    if (inputs.length < border.inputs.length || outputs.length === 0) return null;
    const path = join(failing.work, 'reduced.onnx');
    const { declared, frozen, profiles } = await declaredAs(failing, inputs, values, request, context);
    keepPart(typed.proto, part, declared, failing.engines === null ? outputs : outputs.map(withoutShape));
    graph.initializer.push(...frozen);
    await writeModel(typed, path, { signal: context.signal });
    const passed: NamedTensors = new Map(
      declared.map((input) => [input.name, inDtype(input, values.get(input.name)!, failing.model)]),
    );
    // What leaves the range at the border fails without a node.
    if (declared.some(({ name }) => countInfinite(passed.get(name)) > countInfinite(values.get(name))))
      return null;
    const expected: NamedTensors = new Map(outputs.map(({ name }) => [name, values.get(name)!]));
    const built = await engineOf(failing, path, profiles);
    if (built === null) return null;
    await using session = await openSession(built.path, built.options(request), context, context.backEnds);
    const own: NamedTensors = new Map(
      session.inputs.map((input) => [input.name, inDtype(input, passed.get(input.name)!, path)]),
    );
    const got = await session.run(own, { signal: context.signal });
    const bindings = session.outputs;
    const judgement = judgeRuns(
      { ...request, atol: [], rtol: [] },
      failing.precision,
      { bindings, outputs: [expected] },
      { bindings, outputs: [got] },
    );
    if (failedOutputs(judgement).length === 0) return null;
    const files = {
      model: join(output, 'reduced.onnx'),
      inputs: join(output, 'inputs.npz'),
      expected: join(output, 'expected.npz'),
    };
    await writeModel(typed, files.model, { signal: context.signal });
    writeNpz(files.inputs, passed);
    writeNpz(files.expected, expected);
    const mine = join(output, 'reduced-outputs.npz');
    const engine = failing.engines === null ? null : join(output, 'reduced.engine');
    return {
      ...files,
      nodes: part.size,
      reasons: judgement.judged.flatMap(({ output: judged }) =>
        judged.outcome === 'fail' ? judged.reasons : [],
      ),
      commands: [
        ...(engine === null ? [] : [failing.engines!.line(files.model, engine, {}, profiles)]),
        shellLine(['trtforge', 'run', engine ?? files.model, '--inputs', files.inputs, '-o', mine]),
        shellLine([
          ...['trtforge', 'compare', mine, files.expected],
          ...['--precision', failing.precision, '--allow-dtype-difference'],
        ]),
      ],
    };
  } finally {
    typed.close();
  }
}

/** Inputs of a part, what of them is stored in it instead, and the profiles of its engine. */
interface DeclaredInputs {
  readonly declared: readonly BorderValue[];
  readonly frozen: readonly TensorProto[];
  readonly profiles: readonly Profile[];
}

/**
 * How the inputs of a part are declared. For an engine with the open dimensions that they have in its profile; where integers are computed outside of the part,
 * which may be shapes, they are stored in it as they are for the sample, and every shape is fixed.
 */
async function declaredAs(
  failing: Failing,
  inputs: readonly BorderValue[],
  values: NamedTensors,
  request: BisectRequest,
  context: BisectContext,
): Promise<DeclaredInputs> {
  const { engines, reference, seed, sample } = failing;
  if (engines === null) return { declared: inputs, frozen: [], profiles: [] };
  const passed = sampleOf(reference.plan, seed, sample);
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
    valuesOf(failing, names, request, context, sized),
  );
  if (ranges === null) return fixed;
  const open = [...ranges].filter(([, { min, max }]) => min.join() !== max.join());
  return {
    declared: inputs.map((input) => ({ ...input, shape: openShape(ranges.get(input.name)!) })),
    frozen: [],
    profiles: open.length === 0 ? [] : [Object.fromEntries(open)],
  };
}

/** Whether the shapes of inputs lie in a profile. */
const fits = (profile: Profile, inputs: NamedTensors): boolean =>
  Object.entries(profile).every(([name, { min, max, values }]) => {
    const shape = inputs.get(name)?.shape;
    return !values && shape?.every((size, axis) => min[axis]! <= size && size <= max[axis]!) === true;
  });

const withoutShape = (value: BorderValue): BorderValue => ({ ...value, shape: null });

const storedAs = ({ name, dtype }: BorderValue, { shape, bytes }: Tensor): TensorProto =>
  create(TensorProtoSchema, {
    name,
    dataType: dtypes[dtype].onnx,
    dims: shape.map(BigInt),
    rawData: bytes.slice(),
  });

/** What is run of a part, and how; null where no engine can be built of it. */
async function engineOf({ engines, work }: Failing, model: string, profiles: readonly Profile[]) {
  if (engines === null)
    return { path: model, options: ({ threads }: BisectRequest): OpenOptions => ({ threads }) };
  try {
    const { path } = await engines.build(model, join(work, 'reduced.engine'), {}, profiles);
    return {
      path,
      options: (request: BisectRequest): OpenOptions => ({
        ...engineLoadOptionsOf(request),
        device: request.device,
      }),
    };
  } catch (error) {
    whyUnresolved(error);
    return null;
  }
}

function countInfinite(tensor: Tensor | undefined): number {
  if (tensor === undefined || dtypes[tensor.dtype].kind !== 'float') return 0;
  return float32Values(tensor).reduce((count, value) => count + Number(!Number.isFinite(value)), 0);
}

/** What the FP32 model computes for some of its values, by default on the sample that failed; names that it does not have are left out. */
async function valuesOf(
  { model: path, reference, seed, sample, work }: Failing,
  names: readonly string[],
  { threads }: BisectRequest,
  context: BisectContext,
  inputs = sampleOf(reference.plan, seed, sample),
): Promise<NamedTensors> {
  const marked = join(work, 'marked.onnx');
  const made = names.filter((name) => !inputs.has(name));
  await copyWithOutputs(path, marked, made, context.signal);
  await using session = await openSession(marked, { threads }, context, context.backEnds);
  return new Map([...inputs, ...(await session.run(inputs, { signal: context.signal }))]);
}
