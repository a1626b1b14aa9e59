import type { GraphView } from '../../formats/onnx/graph.js';
import { isOnnxDomain } from '../../formats/onnx/graph.js';
import { attributeOf } from '../../formats/onnx/node-types.js';
import type { NodeProto } from '../../formats/onnx/onnx_pb.js';
import { constantTensor, smallIntegers } from '../../formats/onnx/small-integers.js';
import { isWithin } from '../../tensorrt/toolchain/version.js';
import type { ExplainedIssue } from './explained-issue.js';
import { type KnownIssue, tensorrtIssue } from './known-issues/issue.js';
import { type ModelNodes, openModelNodes } from './model-nodes.js';

/** Something that TensorRT is known to compute wrongly without a line in any log: only the model and the version show it. */
interface SilentIssue extends Pick<KnownIssue, 'id' | 'cause' | 'remedy' | 'versions' | 'source'> {
  /** The first version that has it, and the first that is known not to; null where none is. */
  readonly since: string;
  readonly until: string | null;
  /** The nodes of one graph that it strikes. */
  readonly find: (view: GraphView) => readonly NodeProto[];
}

export const silentIssues: readonly SilentIssue[] = [
  {
    id: 'cumsum-merged',
    since: '10.8',
    until: null,
    find: differingSums,
    cause:
      'Several CumSum nodes differ in their axis, or in exclusive or reverse, and TensorRT is known to compute such nodes as if they were the same. No log line shows it.',
    remedy:
      'Hold the engine against the model (trtforge verify); where it is wrong, write all but one CumSum as a product with a triangular matrix, or build with TensorRT before 10.8.',
    versions: '10.8 and later',
    source: tensorrtIssue(4551),
  },
  {
    id: 'grid-sample-wrong',
    since: '10.13',
    until: '11.2',
    find: ofType('GridSample'),
    cause:
      'GridSample, above all in the deformable attention of DETR-like models, is known to compute wrong results in engines that build and run without a warning.',
    remedy:
      'Hold the engine against the model (trtforge verify); where it is wrong, export with a Gather form or with MultiscaleDeformableAttnPlugin_TRT.',
    versions: '10.13 to 11.1',
    source: tensorrtIssue(4813),
  },
];

/** What builds an engine, as far as silent issues depend on it. */
export interface SilentlyBuilt {
  readonly product: string;
  /** As far as it is known: `10.6.0`. */
  readonly version: string;
}

/**
 * Known issues that an engine of this model may have without a word in any log, each with the nodes it strikes; none for other products than TensorRT,
 * whose are not known. The model is opened only where the version has any; one that cannot be read has none.
 */
export function silentIssuesOf(
  model: string | ModelNodes,
  { product, version }: SilentlyBuilt,
): ExplainedIssue[] {
  const possible = product === 'tensorrt' ? silentIssues.filter((issue) => isWithin(version, issue)) : [];
  if (possible.length === 0) return [];
  const nodes = typeof model === 'string' ? openModelNodes(model) : model;
  return possible.flatMap(({ id, cause, remedy, versions, source, find }) => {
    const place = nodes?.struck(find) ?? null;
    if (place === null) return [];
    return [{ id, severity: 'warning', cause, remedy, versions, source, count: 1, lines: [], model: place }];
  });
}

function ofType(type: string): SilentIssue['find'] {
  return ({ nodes }) => nodes.filter(({ domain, opType }) => isOnnxDomain(domain) && opType === type);
}

/** CumSum nodes, where not all of a graph sum alike. An axis that is computed counts as one of its own. */
function differingSums(view: GraphView): readonly NodeProto[] {
  const sums = ofType('CumSum')(view);
  const kinds = new Set(
    sums.map((node) => {
      const [, axis = ''] = node.input;
      const [exclusive, reverse] = ['exclusive', 'reverse'].map((name) =>
        Number(attributeOf(node, name)?.i ?? 0),
      );
      return JSON.stringify([smallIntegers(constantTensor(view, axis)) ?? axis, exclusive, reverse]);
    }),
  );
  return kinds.size > 1 ? sums : [];
}
