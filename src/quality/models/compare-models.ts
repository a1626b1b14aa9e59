import * as is from '../../base/options/kinds.js';
import { needed } from '../../base/options/option.js';
import { throwIfCancelled } from '../../base/process/cancel.js';
import { digestModel } from '../../engines/identity/model-digest.js';
import { type EventListener, ignoreEvents, inPhase, type WorkContext } from '../../events.js';
import { type GraphView, isMain, opsets, visitGraphs, visitTensors } from '../../formats/onnx/graph.js';
import { editModel, type OnnxModel } from '../../formats/onnx/model.js';
import { type FunctionProto, type ModelProto, ModelProtoSchema } from '../../formats/onnx/onnx_pb.js';
import { factsAsWritten, feedInputs } from '../../formats/onnx/value-facts.js';
import { distanceOf } from './distance.js';
import { type Differing, differingFields, GraphComparison, valueChanges } from './graphs.js';
import type { FieldChange, ModelComparison } from './result.js';

export type CompareModelsContext = WorkContext;
type Context = CompareModelsContext & { readonly emit: EventListener };

/** Two ONNX files. */
export const comparedModels = { a: needed(is.text), b: needed(is.text) };

/**
 * Compares two ONNX models: interface, opsets, metadata, weights with the distance of their values, nodes with their attributes.
 * Reads every weight once and those that differ once more, in constant memory. Throws what opening and reading a model throw, TF_CANCELLED.
 */
export async function compareModels(
  { a: fileA, b: fileB }: { readonly a: string; readonly b: string },
  { emit = ignoreEvents, signal }: CompareModelsContext = {},
): Promise<ModelComparison> {
  const context = { emit, signal };
  return editModel(fileA, (modelA) =>
    editModel(fileB, async (modelB) => {
      const [a, b] = [await sideOf(modelA, context), await sideOf(modelB, context)];
      const result: ModelComparison = {
        schema: 'trtforge.compare-models/1',
        outcome: a.digest === b.digest ? 'pass' : 'fail',
        a: a.summary,
        b: b.summary,
        facts: fieldChanges(a.facts, b.facts),
        opsets: fieldChanges(a.opsets, b.opsets),
        metadata: fieldChanges(a.metadata, b.metadata),
        inputs: valueChanges(a.inputs, b.inputs),
        outputs: valueChanges(a.outputs, b.outputs),
        functions: functionChanges(modelA.proto, modelB.proto),
        ...(await contentChanges(a, b, context)),
      };
      if (result.outcome === 'fail' && !isAnyListed(result))
        result.others.push({ graph: 'model', field: 'order' });
      return result;
    }),
  );
}

type ModelSide = Awaited<ReturnType<typeof sideOf>>;

/** A model's declarations, and its canonical form with the weights that it had. */
async function sideOf(model: OnnxModel, { emit, signal }: Context) {
  const { proto, path } = model;
  const graph = proto.graph!;
  const views = [...visitGraphs(proto)].filter(isMain);
  const declared = {
    facts: factsOf(proto),
    opsets: textRecord(opsets(proto)),
    metadata: Object.fromEntries(proto.metadataProps.map(({ key, value }) => [key, value])),
    inputs: feedInputs(graph).map(factsAsWritten),
    outputs: graph.output.map(factsAsWritten),
  };
  const weights = new Map(
    Array.from(visitTensors(proto), ({ tensor }) => [tensor, model.weight(tensor)] as const),
  );
  const { digest, weightBytes } = await inPhase(
    'identify',
    emit,
    () => digestModel(model, { emit, signal }),
    path,
  );
  const count = (of: (view: GraphView) => number) => views.reduce((sum, view) => sum + of(view), 0);
  const summary = {
    file: path,
    digest,
    nodes: count(({ nodes }) => nodes.length),
    initializers: count((view) => view.graph?.initializer.length ?? 0),
    weightBytes,
  };
  return { ...declared, proto, weights, digest, summary };
}

const factsOf = (proto: ModelProto): Record<string, string> => {
  const { irVersion, producerName, producerVersion, modelVersion, domain } = proto;
  return textRecord({ irVersion, producer: producerName, producerVersion, modelVersion, domain });
};

const textRecord = (record: Record<string, unknown>): Record<string, string> =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, String(value)]));

function fieldChanges(a: Record<string, string>, b: Record<string, string>): FieldChange[] {
  const of = (record: Record<string, string>, field: string) =>
    Object.hasOwn(record, field) ? (record[field] ?? null) : null;
  return [...new Set([...Object.keys(a), ...Object.keys(b)])]
    .map((field) => ({ field, a: of(a, field), b: of(b, field) }))
    .filter((change) => change.a !== change.b);
}

const functionName = ({ domain, name, overload }: FunctionProto): string =>
  [`${domain}::${name}`, overload].filter((part) => part !== '').join(':');

function functionChanges(a: ModelProto, b: ModelProto): ModelComparison['functions'] {
  const [namesA, namesB] = [a, b].map(({ functions }) => functions.map(functionName)) as [string[], string[]];
  return {
    added: namesB.filter((name) => !namesA.includes(name)),
    removed: namesA.filter((name) => !namesB.includes(name)),
  };
}

/** Of the graph, its bodies and the functions that both have. */
async function contentChanges(a: ModelSide, b: ModelSide, context: Context) {
  const comparison = new GraphComparison(a.weights, b.weights);
  const { found, differing } = comparison;
  if (a.digest === b.digest) {
    found.nodes.same = a.summary.nodes;
    found.initializers.same = a.summary.initializers;
    return found;
  }
  const counterparts = new Map(Array.from(roots(b.proto), (view) => [rootName(view), view]));
  for (const view of roots(a.proto)) {
    const counterpart = counterparts.get(rootName(view));
    if (counterpart !== undefined) comparison.compare(view, counterpart);
  }
  for (const field of differingFields(ModelProtoSchema, a.proto, b.proto, comparedOfModels))
    found.others.push({ graph: 'model', field });
  await inPhase('compare', context.emit, () => measureAll(differing, context), 'weights');
  return found;
}

const comparedOfModels = ['graph', 'ir_version', 'opset_import', 'functions'];

function* roots(proto: ModelProto): Generator<GraphView> {
  for (const view of visitGraphs(proto))
    if (view.parent === undefined && view.kind !== 'training') yield view;
}

const rootName = (view: GraphView): string =>
  view.function === undefined ? '' : functionName(view.function);

async function measureAll(differing: readonly Differing[], { emit, signal }: Context): Promise<void> {
  const total = differing.reduce((sum, { a }) => sum + a.byteLength, 0);
  let done = 0;
  for (const { a, b, into } of differing) {
    throwIfCancelled(signal, 'comparing weights');
    into.distance = distanceOf(a, b);
    done += a.byteLength;
    emit({ type: 'progress', phase: 'compare', done, total });
    await new Promise(setImmediate);
  }
}

function isAnyListed({ facts, opsets: versions, inputs, outputs, ...found }: ModelComparison): boolean {
  const { initializers, nodes, functions, others } = found;
  const listed: readonly (readonly unknown[])[] = [
    facts.filter(({ field }) => field === 'irVersion'),
    versions,
    others,
    ...[inputs, outputs, functions, initializers, nodes].flatMap((changes) =>
      Object.values(changes).filter(Array.isArray),
    ),
  ];
  return listed.some(({ length }) => length > 0);
}
