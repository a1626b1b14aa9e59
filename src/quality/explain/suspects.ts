import { behaviour, seenOn } from '../../behaviour/facts.js';
import { isOnnxDomain, qualifiedOpType } from '../../formats/onnx/graph.js';
import type { NodeProto } from '../../formats/onnx/onnx_pb.js';
import type { ModelPlace } from './explained-issue.js';

/** Number of nodes of one suspicion that are named. */
const NAMED = 5;

/** A pattern in the graph that TensorRT is known to stumble over. */
interface Suspicion {
  /** The nodes that show it, among those of the place. */
  readonly find: (nodes: readonly NodeProto[]) => readonly NodeProto[];
  readonly why: string;
}

const ofType =
  (...types: readonly string[]) =>
  (nodes: readonly NodeProto[]) =>
    nodes.filter((node) => types.includes(qualifiedOpType(node)));

/** Patterns that users of TensorRT met behind a failed region, the most telling first. */
const suspicions: readonly Suspicion[] = [
  {
    find: maskOfDetr,
    why: `A mask is cast, resized and used again (Cast, Resize, Sigmoid): the shape of DETR models that ${seenOn('detr-masks', 'tensorrt')} finds no kernel for. Export with the dynamo exporter and a batch Dim, or simplify the graph for one batch.`,
  },
  {
    find: ofType('GridSample'),
    why: `GridSample of deformable attention has no kernel inside a fused region in several versions from ${behaviour['grid-sample-wrong'].tensorrt.since} on, and wrong results in others: use MultiscaleDeformableAttnPlugin_TRT or a Gather form, and verify.`,
  },
  {
    find: (nodes) => nodes.filter((node) => !isOnnxDomain(node.domain)),
    why: 'An operator of another domain needs a plug-in that is loaded at build and at run time.',
  },
  {
    find: ofType('NonZero', 'NonMaxSuppression', 'Unique', 'Compress'),
    why: 'The size of its output depends on the data, which few kernels can be fused around.',
  },
  {
    find: ofType('If', 'Loop', 'Scan', 'SequenceMap'),
    why: 'Control flow inside the region: fold it away with fixed shapes where the condition is known.',
  },
  {
    find: ofType('ConvTranspose'),
    why: `${behaviour['conv-transpose-kernels'].holds} in ${behaviour['conv-transpose-kernels'].tensorrt.since}: keep it in FP32.`,
  },
  {
    find: ofType('TopK'),
    why: `${behaviour['top-k-limit'].holds} before TensorRT ${behaviour['top-k-limit'].tensorrt.until}.`,
  },
  {
    find: ofType('Softmax', 'Attention', 'Einsum'),
    why: 'Attention is fused whole and its kernels need scratch memory: pass a large --workspace first.',
  },
];

/** Nodes among these that are known to cause failures of compiled regions, and why. */
export const suspectsAmong = (nodes: readonly NodeProto[]): ModelPlace['suspects'] =>
  suspicions.flatMap(({ find, why }) => {
    const found = find(nodes).map((node) => (node.name !== '' ? node.name : (node.output[0] ?? '')));
    return found.length === 0 ? [] : [{ nodes: found.slice(0, NAMED), why }];
  });

/** Resize fed by a Cast, in a region that goes on to a Sigmoid. */
function maskOfDetr(nodes: readonly NodeProto[]): readonly NodeProto[] {
  const casts = new Set(ofType('Cast')(nodes).flatMap(({ output }) => output));
  // Unsqueeze and the like may stand between the cast and the resize.
  for (const { opType, input, output } of nodes)
    if (['Unsqueeze', 'Reshape', 'Squeeze', 'Expand'].includes(opType) && casts.has(input[0] ?? ''))
      for (const name of output) casts.add(name);
  const resizes = ofType('Resize')(nodes).filter(({ input }) => casts.has(input[0] ?? ''));
  return ofType('Sigmoid')(nodes).length > 0 ? resizes : [];
}
