import { seenOn } from '../../../behaviour/facts.js';
import {
  contribOperators,
  GRID_SAMPLE_3D,
  OLDEST_OPSET,
  operatorLists,
  operatorRanges,
  opsetRanges,
  ownOperators,
  pluginOperators,
} from '../../../behaviour/operators.js';
import { compareVersions } from '../../../behaviour/versions.js';
import { dtypes } from '../../tensor/dtype.js';
import { attributeOf } from '../attributes.js';
import { editRemedy } from '../edit-steps.js';
import {
  type GraphView,
  isOnnxDomain,
  nodeLabel,
  opsets,
  qualifiedOpType,
  visitGraphs,
  visitNodes,
} from '../graph.js';
import { NEWEST_LOADED_IR, neededIrVersion } from '../ir-version.js';
import { isWrappedEngine, type OnnxModel, WRAPPED_ENGINE, wrappedEngineRemedy } from '../model.js';
import type { ModelProto, NodeProto } from '../onnx_pb.js';
import { operatorSignature } from '../operators.js';
import { inferShapes, type ModelShapes } from '../shapes/infer.js';
import { constantTensor } from '../shapes/stored-value.js';
import type { Findings } from './findings.js';
import { isIntegerOperator } from './quantization.js';

/** Findings about operator types and opsets. */
export function lintOperators(
  model: OnnxModel,
  views: readonly GraphView[],
  inferred: ModelShapes,
  findings: Findings,
): void {
  const { path, proto } = model;
  lintOpsets(model, views, findings);
  lintProducts(views, findings);
  for (const [type, { count, first, where }] of operatorUses(proto, views, () => inferred)) {
    if (isIntegerOperator(first)) continue;
    const times = count === 1 ? '1 node' : `${count} nodes`;
    if (ownOperators.has(first.opType)) continue;
    if (isWrappedEngine(first)) {
      findings.add('op-engine', where, `${type} (${times}) ${WRAPPED_ENGINE}.`, wrappedEngineRemedy(path));
      continue;
    }
    if (pluginOperators.has(first.opType)) {
      findings.add(
        'op-plugin',
        where,
        `${type} (${times}) is a plug-in that comes with TensorRT (libnvinfer_plugin) and is not part of TensorRT-RTX.`,
      );
      continue;
    }
    if (!isOnnxDomain(first.domain) && contribOperators.has(first.opType)) {
      findings.add(
        'op-plugin',
        where,
        `${type} (${times}) is imported by ${seenOn('contrib-operators', 'tensorrt-rtx')}; TensorRT needs a plug-in for it.`,
      );
      continue;
    }
    // The parser looks operators up by their type alone.
    if (!isOnnxDomain(first.domain) && !operatorRanges.has(first.opType)) {
      findings.add(
        'op-unknown',
        where,
        `${type} (${times}) is not an ONNX operator; TensorRT needs a plug-in or a model function for it.`,
      );
      continue;
    }
    const since = operatorRanges.get(isOnnxDomain(first.domain) ? type : first.opType)?.since;
    if (since === undefined) {
      findings.add(
        'op-unknown',
        where,
        `${type} (${times}) is not among the operators of TensorRT ${operatorLists.newest}'s ONNX parser; it needs a plug-in or another export.`,
      );
    } else if (compareVersions(since, operatorLists.recent) >= 0) {
      findings.add(
        'op-needs-newer-tensorrt',
        where,
        `${type} (${times}) needs TensorRT ${since} or newer (by the lists and notes of its parser up to ${operatorLists.newest}).`,
      );
    }
  }
}

function lintProducts(views: readonly GraphView[], findings: Findings): void {
  for (const view of views)
    for (const node of crashingProducts(view))
      findings.add('onnxruntime-crash', `${view.path}/${nodeLabel(node)}`, `${CRASHES_ONNXRUNTIME}.`);
}

function lintOpsets(model: OnnxModel, views: readonly GraphView[], findings: Findings): void {
  const { path, proto } = model;
  const versions = opsets(proto);
  const opset = versions['ai.onnx'];
  const recent = opsetRanges.find(({ version }) => version === operatorLists.recentOpset)?.newest ?? 0;
  if (opset !== undefined) lintOpset(opset, findings, loweringRemedy(model, recent));
  const needed = neededIrVersion(proto);
  if (proto.irVersion > NEWEST_LOADED_IR)
    findings.add(
      'ir-too-new',
      'ir_version',
      `The file states IR version ${proto.irVersion}, and ONNX Runtime loads files up to ${NEWEST_LOADED_IR}; trtforge lowers it where it runs the model.`,
      needed > NEWEST_LOADED_IR ? undefined : editRemedy(path, ['--ir', `${needed}`]),
    );
  const missing = new Set<string>();
  for (const view of views) {
    // A function brings its own imports.
    if (view.kind === 'function') continue;
    for (const { domain } of view.nodes) {
      const name = isOnnxDomain(domain) ? 'ai.onnx' : domain;
      if (!Object.hasOwn(versions, name)) missing.add(name);
    }
  }
  for (const domain of missing) {
    findings.add(
      'opset-missing',
      'opset_import',
      domain === 'ai.onnx'
        ? 'The model does not state the ONNX opset of its operators.'
        : `Nodes of domain "${domain}" are used, but the model imports no version of it.`,
    );
  }
}

/** The remedy that gives a model an older opset, where that changes no operator of it; undefined where it might. */
export function loweringRemedy({ path, proto }: OnnxModel, to: number): string | undefined {
  const opset = opsets(proto)['ai.onnx'] ?? 0;
  const isSame = ({ domain, opType }: NodeProto) => {
    const [now, then] = [opset, to].map((each) => operatorSignature('', opType, each)?.since);
    return !isOnnxDomain(domain) || (now !== undefined && now === then);
  };
  return proto.functions.length === 0 && [...visitNodes(proto)].every(({ node }) => isSame(node))
    ? editRemedy(path, ['--opset', `${to}`])
    : undefined;
}

function lintOpset(opset: number, findings: Findings, remedy: string | undefined): void {
  const needed = opsetRanges.findLast(({ newest }) => newest >= opset);
  if (needed === undefined) {
    findings.add(
      'opset-too-new',
      'opset_import',
      `Opset ${opset} is newer than TensorRT ${operatorLists.newest} knows (up to ${opsetRanges[0]?.newest}).`,
      remedy,
    );
  } else if (compareVersions(needed.version, operatorLists.recentOpset) > 0) {
    findings.add(
      'opset-too-new',
      'opset_import',
      `TensorRT supports opset ${opset} from ${needed.version} on; TensorRT-RTX imports such a model operator by operator.`,
      remedy,
    );
  } else if (opset < OLDEST_OPSET) {
    findings.add(
      'opset-too-old',
      'opset_import',
      `Opset ${opset} is older than TensorRT supports (from ${OLDEST_OPSET}); convert the model to a newer one.`,
    );
  }
}

/** Number of uses of each operator that TensorRT's parser has to import by its name: functions of the model do not count. */
export function parsedOperators(model: OnnxModel): Readonly<Record<string, number>> {
  const uses = operatorUses(model.proto, [...visitGraphs(model.proto)], () => inferShapes(model));
  return Object.fromEntries(
    [...uses].map(([type, { count, first }]) => [isOnnxDomain(first.domain) ? type : first.opType, count]),
  );
}

function operatorUses(
  { functions }: ModelProto,
  views: readonly GraphView[],
  shapes: () => ModelShapes,
): Map<string, { count: number; first: NodeProto; where: string }> {
  const own = new Set(functions.map(({ domain, name }) => `${domain}::${name}`));
  const uses = new Map<string, { count: number; first: NodeProto; where: string }>();
  for (const view of views) {
    if (view.kind === 'training') continue;
    for (const node of view.nodes) {
      if (own.has(`${node.domain}::${node.opType}`)) continue;
      const isVolume = () => shapes().nodes.get(node)?.shapes[0]?.length === 5;
      const type = node.opType === 'GridSample' && isVolume() ? GRID_SAMPLE_3D : qualifiedOpType(node);
      const known = uses.get(type);
      if (known === undefined)
        uses.set(type, { count: 1, first: node, where: `${view.path}/${nodeLabel(node)}` });
      else known.count += 1;
    }
  }
  return uses;
}

/**
 * Products of 16-bit weights with a Transpose that moves the first axis behind others ([1, 0, 2]): ONNX Runtime 1.30 to 1.32 fuses them into an operator that has no
 * such kernel, and the process ends while it loads the file (tried: a constant of two axes on the right, no other).
 */
export function crashingProducts(view: GraphView): readonly NodeProto[] {
  const transposes = new Map(
    view.nodes.flatMap((node) => (node.opType === 'Transpose' ? [[node.output[0], node] as const] : [])),
  );
  return view.nodes.filter(({ opType, input: [left, right = ''] }) => {
    const transpose = opType === 'MatMul' ? transposes.get(left) : undefined;
    const weight = transpose === undefined ? undefined : constantTensor(view, right);
    if (transpose === undefined || weight?.dims.length !== 2) return false;
    const order = attributeOf(transpose, 'perm')?.ints.map(Number) ?? [];
    const [first = -1, ...others] = order.toSorted((a, b) => a - b);
    const isMoved = order.filter((axis) => axis !== 0).every((axis, at) => axis === others[at]);
    const at = order.indexOf(first);
    return weight.dataType === dtypes.float16.onnx && isMoved && order.length > 2 && at >= order.length - 2;
  });
}

export const CRASHES_ONNXRUNTIME =
  'ONNX Runtime 1.30 to 1.32 ends with a segmentation fault when it opens the file with its default optimizations (an FP16 product behind a Transpose): open it with graph_optimization_level = ORT_ENABLE_BASIC, or build an engine of it';
