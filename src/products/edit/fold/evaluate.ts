import { rmSync } from 'node:fs';
import { create } from '@bufbuild/protobuf';
import { openSession } from '../../../engines/runtime/open-session.js';
import { TrtforgeError } from '../../../errors.js';
import { valueInfo } from '../../../formats/onnx/builder.js';
import { inOrder, isOnnxDomain, nodesReached, usedNames } from '../../../formats/onnx/graph.js';
import { GraphProtoSchema, type NodeProto } from '../../../formats/onnx/onnx_pb.js';
import { isNumber } from '../../../formats/onnx/shapes/size.js';
import { writeModel } from '../../../formats/onnx/write.js';
import { drawsNumbers } from '../../../formats/precision/operator-traits.js';
import { type Dtype, elementCount, packedBytes } from '../../../formats/tensor/dtype.js';
import { isArrayDtype, type NamedTensors } from '../../../formats/tensor/tensor.js';
import type { EditContext } from '../edited-model.js';
import { dtypeIs, type Round } from './round.js';

/** What a folded value may have more than the weights that it is made of: a ConstantOfShape or a Tile stays that would grow the file by more. */
const MOST_GROWTH = 512 << 20;

/** Weights of so many bytes, with what is computed of them, are in memory at once. */
const BATCH_BYTES = 256 << 20;

/** Codes of quantized weights stay codes, and the engine dequantizes them. */
const kept: ReadonlySet<string> = new Set(['DequantizeLinear']);

/** A node that constants decide. */
interface Constant {
  readonly node: NodeProto;
  /** Of what it reads and makes. */
  readonly bytes: number;
}

/**
 * Computes what constants decide on ONNX Runtime, node by node, and stores it as weights. What it cannot compute stays, and is noted in `stuck`. Whether anything
 * changed. Throws TF_CANCELLED, and what writing a model throws.
 */
export async function evaluate(round: Round, stuck: Set<string>, context: EditContext): Promise<boolean> {
  let isChanged = false;
  const compute = async (some: readonly Constant[]): Promise<void> => {
    if (some.length === 0) return;
    try {
      store(round, some, await valuesOf(round, some, context));
      isChanged = true;
    } catch (error) {
      if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED') throw error;
      const middle = some.length >> 1;
      if (some.length === 1) for (const name of some[0]!.node.output) stuck.add(name);
      else for (const half of [some.slice(0, middle), some.slice(middle)]) await compute(half);
    }
  };
  let batch: Constant[] = [];
  for (const constant of constantsOf(round, stuck)) {
    if (batch.reduce((sum, { bytes }) => sum + bytes, constant.bytes) > BATCH_BYTES) {
      await compute(batch);
      batch = [];
    }
    batch.push(constant);
  }
  await compute(batch);
  return isChanged;
}

/** The nodes that constants decide and that others read. */
function constantsOf(round: Round, stuck: ReadonlySet<string>): readonly Constant[] {
  const { graph } = round;
  const sparse = new Set(graph.sparseInitializer.map(({ values }) => values?.name ?? ''));
  const found = new Map<NodeProto, Constant>();
  const makers = new Set<string>();
  for (const node of inOrder(graph.node).nodes) {
    const reads = usedNames(node).filter((name) => name !== '');
    const names = node.output.filter((name) => name !== '');
    const isConstant = reads.every(
      (name) => makers.has(name) || (round.constants.has(name) && !sparse.has(name)),
    );
    if (!isConstant || !canCompute(node) || names.some((name) => stuck.has(name) || round.outputs.has(name)))
      continue;
    const sizeOf = (all: readonly string[]) =>
      all.reduce((sum, name) => sum + (bytesOf(round, name) ?? 0), 0);
    const [read, made] = [sizeOf(reads), sizeOf(names)];
    const isKnown = names.every((name) => bytesOf(round, name) !== undefined);
    if (!isKnown || made > read + MOST_GROWTH) continue;
    found.set(node, { node, bytes: read + made });
    for (const name of names) makers.add(name);
  }
  return [...found.values()].filter(({ node }) => round.after(node).some((reader) => !found.has(reader)));
}

/** Bytes of a value; undefined where its type or shape is open. */
function bytesOf(round: Round, name: string): number | undefined {
  const [type, shape] = [round.types.get(name), round.shape(name)];
  if (!dtypeIs(type) || !isArrayDtype(type) || shape?.every(isNumber) !== true) return undefined;
  return packedBytes(type, elementCount(shape));
}

/** Whether a node gives the same each time: functions and plug-ins may draw numbers, and Dropout in training does. */
export const isRepeatable = ({ opType, domain }: NodeProto): boolean =>
  isOnnxDomain(domain) && !drawsNumbers(opType) && opType !== 'Dropout';

function canCompute(node: NodeProto): boolean {
  return (
    isRepeatable(node) &&
    !kept.has(node.opType) &&
    node.attribute.every(({ g, graphs }) =>
      (g === undefined ? graphs : [g, ...graphs]).every(({ node }) => node.every(canCompute)),
    )
  );
}

/** Runs the nodes as a model of their own. */
async function valuesOf(
  round: Round,
  constants: readonly Constant[],
  { emit, signal, backEnds }: EditContext,
): Promise<NamedTensors> {
  const { editing, graph, weights } = round;
  const { model, streams } = editing;
  const path = editing.file('constants');
  const made = constants.map(({ node }) => node);
  const wanted = nodesReached(made, round.before);
  const node = graph.node.filter((each) => wanted.has(each));
  const read = new Set(node.flatMap(usedNames));
  const initializer = weights.filter(({ name }) => read.has(name));
  const output = made
    .flatMap((each) => each.output.filter((name) => name !== ''))
    .map((name) => valueInfo(name, round.types.get(name) as Dtype, round.shape(name) as number[]));
  const proto = {
    ...model.proto,
    graph: create(GraphProtoSchema, { name: 'constants', node, initializer, output }),
  };
  try {
    await writeModel({ ...model, proto }, path, { replacements: streams, signal }, emit);
    await using session = await openSession(path, {}, { emit, signal }, backEnds);
    return await session.run(new Map(), { signal });
  } finally {
    for (const file of [path, `${path}.data`]) rmSync(file, { force: true });
  }
}

/** Puts computed values in the place of the nodes that made them. */
function store({ editing, graph }: Round, constants: readonly Constant[], values: NamedTensors): void {
  const gone = new Set(constants.map(({ node }) => node));
  graph.node = graph.node.filter((node) => !gone.has(node));
  for (const [name, tensor] of values) editing.storeWeight(name, tensor, graph);
}
