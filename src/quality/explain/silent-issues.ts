import { behaviour, holds } from '../../behaviour/facts.js';
import { rangeText } from '../../behaviour/versions.js';
import { attributeOf } from '../../formats/onnx/attributes.js';
import { type GraphView, isOnnxDomain } from '../../formats/onnx/graph.js';
import type { NodeProto } from '../../formats/onnx/onnx_pb.js';
import { constantTensor, smallIntegers } from '../../formats/onnx/shapes/stored-value.js';
import type { ExplainedIssue } from './explained-issue.js';
import type { KnownIssue, SilentlyBuilt } from './known-issues/issue.js';
import { type ModelNodes, openModelNodes } from './model-nodes.js';

/** Something that TensorRT is known to compute wrongly without a line in any log: only the model and the version show it. */
interface SilentIssue extends Pick<KnownIssue, 'remedy'> {
  readonly id: 'cumsum-merged' | 'grid-sample-wrong';
  /** The nodes of one graph that it strikes. */
  readonly find: (view: GraphView) => readonly NodeProto[];
}

const silentIssues: readonly SilentIssue[] = [
  {
    id: 'cumsum-merged',
    find: differingSums,
    remedy: `Compare the engine with the model (\`trtforge verify\`); where it is wrong, write all but one CumSum as a product with a triangular matrix, or build with TensorRT before ${behaviour['cumsum-merged'].tensorrt.since}.`,
  },
  {
    id: 'grid-sample-wrong',
    find: ofType('GridSample'),
    remedy:
      'Compare the engine with the model (`trtforge verify`); where it is wrong, export with a Gather form or with MultiscaleDeformableAttnPlugin_TRT.',
  },
];

/**
 * Known issues that an engine of this model may have without a word in any log, each with the nodes it strikes; none for other products than TensorRT,
 * whose are not known. The model is opened only where the version has any; one that cannot be read has none.
 */
export function silentIssuesOf(model: string | ModelNodes, built: SilentlyBuilt): ExplainedIssue[] {
  const possible = silentIssues.filter(({ id }) => holds(id, built));
  if (possible.length === 0) return [];
  const nodes = typeof model === 'string' ? openModelNodes(model) : model;
  return possible.flatMap(({ id, remedy, find }) => {
    const place = nodes?.struck(find) ?? null;
    if (place === null) return [];
    const { holds: cause, tensorrt, source } = behaviour[id];
    const versions = rangeText(tensorrt, 'and later');
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
