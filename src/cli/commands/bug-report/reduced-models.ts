import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { GraphUses, nodesReached, usedNames } from '../../../formats/onnx/graph.js';
import { editModel, viewModel } from '../../../formats/onnx/model.js';
import type { NodeProto } from '../../../formats/onnx/onnx_pb.js';
import {
  borderOf,
  borderValues,
  closedPart,
  keepPart,
  nodesBetween,
  partsOf,
} from '../../../formats/onnx/subgraph.js';
import { writeModel } from '../../../formats/onnx/write.js';
import type { FailingRun } from './failing-run.js';

/** Runs of the line at most. */
export const MOST_RUNS = 32;

interface Reducing {
  /** The folder of the whole models, the one that their parts go into, and the models' places in both. */
  readonly whole: string;
  readonly into: string;
  readonly models: readonly string[];
  /** What the line reports of its failure: nodes that it names are tried first. */
  readonly message: string;
  /** Runs the line on the parts; null where it does not fail in the same way. */
  readonly attempt: (run: number) => Promise<FailingRun | null>;
  readonly signal: AbortSignal;
}

interface Reduction {
  /** The run on the smallest part, which is in `into`; null where no part fails by itself. */
  readonly run: FailingRun | null;
  readonly tried: number;
}

type Border = ReturnType<typeof borderOf>;

/**
 * Cuts models to a small part with which a line still fails: the nodes that it names with more and more around them, else the first nodes with which it fails, and of these the
 * last. Models of one line are cut at the same tensors. Throws what reading and writing models and `attempt` throw.
 */
export async function reduceModels(reducing: Reducing): Promise<Reduction> {
  const { whole, into, models, message, attempt, signal } = reducing;
  const graphs = models.map((place) => viewModel(join(whole, place), ({ proto }) => proto.graph!));
  // Conversions add nodes and keep the names that there are.
  const graph = graphs.reduce((least, each) => (each.node.length < least.node.length ? each : least));
  const write = async (border: Border) => {
    for (const place of models)
      if (!(await writePart(join(whole, place), join(into, place), border, signal))) return false;
    return true;
  };
  let tried = 0;
  let best: { readonly border: Border; readonly run: FailingRun; readonly nodes: number } | null = null;
  const fails = async (nodes: Iterable<NodeProto>): Promise<boolean> => {
    const part = closedPart(graph, nodes);
    const border = borderOf(graph, part);
    if (tried === MOST_RUNS || part.size >= (best?.nodes ?? graph.node.length) || !(await write(border)))
      return false;
    const run = await attempt(tried++);
    if (run !== null) best = { border, run, nodes: part.size };
    return run !== null;
  };
  const words = new Set(message.split(/[\s"'`()[\]{},;]+/).map((word) => word.replace(/[.:]+$/, '')));
  const named = graph.node.filter(({ name }) => name !== '' && words.has(name));
  for (const part of partsOf(graph, { single: named, together: named })) if (await fails(part)) break;
  if (best === null) {
    const { node } = graph;
    const end = await boundary(node.length, 0, (at) => fails(node.slice(0, at)));
    const begin = await boundary(0, end, (at) => fails(node.slice(at, end)));
    const left = new Set(node.slice(begin, end));
    const { before } = new GraphUses(graph);
    await fails(
      nodesReached(node.slice(end - 1, end), (each) => before(each).filter((one) => left.has(one))),
    );
  }
  const found = best as { readonly border: Border; readonly run: FailingRun } | null;
  if (found !== null) await write(found.border);
  return { run: found?.run ?? null, tried };
}

/** The last number from one that is known to hold to one that does not, which still holds, where all on its side do. */
async function boundary(
  holding: number,
  other: number,
  holds: (at: number) => Promise<boolean>,
): Promise<number> {
  let [yes, no] = [holding, other];
  while (Math.abs(yes - no) > 1) {
    const at = (yes + no) >> 1;
    if (await holds(at)) yes = at;
    else no = at;
  }
  return yes;
}

/** Writes what lies between some tensors of a model; false where it has them not, or something needs another input. */
const writePart = (path: string, target: string, { inputs, outputs }: Border, signal: AbortSignal) =>
  editModel(path, async (model) => {
    const graph = model.proto.graph!;
    const begins = new Set(inputs);
    const part = nodesBetween(graph, begins, outputs);
    const read = new Set([...part].flatMap(usedNames));
    const stored = new Set(graph.initializer.map(({ name }) => name));
    const lacking = graph.input.find(({ name }) => read.has(name) && !begins.has(name) && !stored.has(name));
    const begun = inputs.filter((name) => read.has(name));
    const known = [...begun, ...outputs].map(borderValues(model)).filter((value) => value !== undefined);
    if (lacking !== undefined || part.size === 0 || known.length < begun.length + outputs.length)
      return false;
    keepPart(model.proto, part, known.slice(0, begun.length), known.slice(begun.length));
    rmSync(`${target}.data`, { force: true });
    await writeModel(model, target, { signal });
    return true;
  });
