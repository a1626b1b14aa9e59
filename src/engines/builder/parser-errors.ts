import { TrtforgeError } from '../../errors.js';
import { openModel } from '../../formats/onnx/model.js';

/** One refusal of the ONNX parser, in the details of TF_MODEL_REJECTED. */
interface RefusedNode {
  readonly code: number;
  /** Index in the graph; -1 when the refusal is not of a node. */
  readonly node: number;
  readonly name: string | null;
  readonly operator: string | null;
  readonly description: string;
  readonly file: string | null;
  readonly line: number;
}

/** TensorRT 8.6 says only the index of a node it refuses: name and operator are looked up in the model. Other errors come back as they are. */
export function withNodeNames(error: unknown, modelPath: string): unknown {
  if (!(error instanceof TrtforgeError) || error.code !== 'TF_MODEL_REJECTED') return error;
  const nodes = error.details?.nodes as readonly RefusedNode[] | undefined;
  if (nodes === undefined || nodes.every(({ node, operator }) => node < 0 || operator !== null)) return error;
  const inModel = graphNodes(modelPath);
  const named = nodes.map((node) => {
    const found = inModel[node.node];
    return found === undefined ? node : { ...node, name: found.name || null, operator: found.opType };
  });
  const [first = ''] = error.message.split('\n');
  return new TrtforgeError('TF_MODEL_REJECTED', [first, ...named.map(sentence)].join('\n'), {
    remedy: error.remedy,
    cause: error,
    details: { ...error.details, nodes: named },
  });
}

function graphNodes(modelPath: string): readonly { readonly name: string; readonly opType: string }[] {
  try {
    const model = openModel(modelPath);
    try {
      return model.proto.graph?.node ?? [];
    } finally {
      model.close();
    }
  } catch {
    // A file that we cannot read either: the parser's own words stand.
    return [];
  }
}

function sentence({ node, name, operator, description }: RefusedNode): string {
  const where = operator === null ? `node ${node}` : `node ${name ?? node} (${operator})`;
  return node < 0 ? description : `${where}: ${description}`;
}
