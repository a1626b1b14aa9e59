import { isEngineFile } from '../../engines/plan/header.js';
import { TrtforgeError } from '../../errors.js';
import { inferDtypes } from '../../formats/onnx/dtype-inference.js';
import { qualifiedOpType } from '../../formats/onnx/graph.js';
import { openModel } from '../../formats/onnx/model.js';
import { inOrder } from '../../formats/onnx/node-order.js';
import type { ModelProto } from '../../formats/onnx/onnx_pb.js';
import { addOutputs } from '../../formats/onnx/subgraph.js';
import { writeModel } from '../../formats/onnx/write.js';
import type { Dtype } from '../../formats/tensor/dtype.js';

/** A floating-point value that a node of a graph makes. */
export interface MadeTensor {
  readonly name: string;
  readonly node: string;
  readonly op: string;
  readonly dtype: Dtype;
}

/** Tensors of two models under one name, in the order of the reference's graph. */
export interface CommonTensors {
  readonly tensors: readonly MadeTensor[];
  readonly candidateDtypes: ReadonlyMap<string, Dtype>;
  readonly onlyReference: number;
  readonly onlyCandidate: number;
}

/** Throws TF_USAGE for an engine, TF_VERIFY_MISMATCH where the models have no tensor in common, and what opening a model throws. */
export function commonTensors(reference: string, candidate: string): CommonTensors {
  const [theirs, ours] = [madeIn(reference), madeIn(candidate)];
  const candidateDtypes = new Map(ours.map(({ name, dtype }) => [name, dtype]));
  const tensors = theirs.filter(({ name }) => candidateDtypes.has(name));
  if (tensors.length === 0)
    throw new TrtforgeError(
      'TF_VERIFY_MISMATCH',
      `${candidate} and ${reference} have no floating-point tensor of one name, so no layer can be compared.`,
      {
        remedy:
          'Compare a model with the one that it was converted from: a conversion keeps the names of tensors, a new export may not.',
      },
    );
  return {
    tensors,
    candidateDtypes,
    onlyReference: theirs.length - tensors.length,
    onlyCandidate: ours.length - tensors.length,
  };
}

/** Writes a copy of a model whose outputs are some of its tensors, and with `keepOutputs` its own. */
export async function writeMarked(
  path: string,
  marked: string,
  tensors: readonly { readonly name: string; readonly dtype: Dtype }[],
  signal: AbortSignal | undefined,
  keepOutputs = false,
): Promise<void> {
  const model = openModel(path);
  try {
    if (model.proto.graph !== undefined && !keepOutputs) model.proto.graph.output = [];
    addOutputs(
      model.proto,
      tensors.map(({ name, dtype }) => ({ name, dtype, shape: null })),
    );
    await writeModel(model, marked, { signal });
  } finally {
    model.close();
  }
}

/** Throws TF_USAGE for an engine in the place of a model. */
export function rejectEngine(path: string): void {
  if (isEngineFile(path))
    throw new TrtforgeError('TF_USAGE', `${path} is an engine, which returns its outputs only.`, {
      remedy: 'Pass the ONNX model that it was built from.',
    });
}

function madeIn(path: string): readonly MadeTensor[] {
  rejectEngine(path);
  const model = openModel(path);
  try {
    return floatsOf(model.proto);
  } finally {
    model.close();
  }
}

/** FP8 and FP4 are codes of quantized values, not values. */
const floats: ReadonlySet<string> = new Set(['float16', 'bfloat16', 'float32', 'float64']);

/** Constants are weights: they differ by their rounding only. */
function floatsOf(model: ModelProto): readonly MadeTensor[] {
  const { types } = inferDtypes(model).graph;
  return inOrder(model.graph?.node ?? []).nodes.flatMap((node) =>
    node.opType === 'Constant'
      ? []
      : node.output.flatMap((name) => {
          const type = types.get(name) ?? '';
          if (name === '' || !floats.has(type)) return [];
          return [{ name, node: node.name, op: qualifiedOpType(node), dtype: type as Dtype }];
        }),
  );
}
