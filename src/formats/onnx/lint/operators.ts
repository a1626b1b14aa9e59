import { type GraphView, isOnnxDomain, nodeLabel, qualifiedOpType } from '../graph.js';
import type { ModelProto, NodeProto } from '../onnx_pb.js';
import { opsets } from '../opset-imports.js';
import { OLDEST_OPSET, OPERATOR_LIST_VERSION, opsetRanges, tensorrtSince } from '../tensorrt-ops.js';
import type { Findings } from './findings.js';

/** The version before which a user is told that an operator is recent; older TensorRT is out of use. */
const COMMON_VERSIONS = new Set(['8.6', '10.0']);

/** Findings about operator types and opsets. */
export function lintOperators(proto: ModelProto, views: readonly GraphView[], findings: Findings): void {
  lintOpsets(proto, views, findings);
  const functions = new Set(proto.functions.map(({ domain, name }) => `${domain}::${name}`));
  for (const [type, { count, first, where }] of operatorUses(views)) {
    if (functions.has(`${first.domain}::${first.opType}`)) continue;
    const times = count === 1 ? '1 node' : `${count} nodes`;
    if (!isOnnxDomain(first.domain)) {
      findings.add(
        'op-unknown',
        where,
        `${type} (${times}) is no ONNX operator; TensorRT needs a plug-in or a model function for it.`,
      );
      continue;
    }
    const since = tensorrtSince(first.opType);
    if (since === undefined) {
      findings.add(
        'op-unknown',
        where,
        `${type} (${times}) is not among the operators of TensorRT ${OPERATOR_LIST_VERSION}'s ONNX parser; it needs a plug-in or another export.`,
      );
    } else if (!COMMON_VERSIONS.has(since)) {
      findings.add(
        'op-needs-newer-tensorrt',
        where,
        `${type} (${times}) needs TensorRT ${since} or newer (by the operator lists of 10.1 and 10.15).`,
      );
    }
  }
}

function lintOpsets(proto: ModelProto, views: readonly GraphView[], findings: Findings): void {
  const versions = opsets(proto);
  const opset = versions['ai.onnx'];
  if (opset !== undefined) lintOpset(opset, findings);
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
        ? 'The model does not say which ONNX opset its operators belong to.'
        : `Nodes of domain «${domain}» are used, but the model imports no version of it.`,
    );
  }
}

function lintOpset(opset: number, findings: Findings): void {
  if (opset > opsetRanges[0]!.newest) {
    findings.add(
      'opset-too-new',
      'opset_import',
      `Opset ${opset} is newer than TensorRT ${opsetRanges[0]!.version} knows (up to ${opsetRanges[0]!.newest}).`,
    );
  } else if (opset > (opsetRanges.find(({ version }) => version === OPERATOR_LIST_VERSION)?.newest ?? 0)) {
    const needed = opsetRanges.findLast(({ newest }) => newest >= opset);
    findings.add(
      'opset-too-new',
      'opset_import',
      `Opset ${opset} needs TensorRT ${needed?.version} or newer.`,
    );
  } else if (opset < OLDEST_OPSET) {
    findings.add(
      'opset-too-old',
      'opset_import',
      `Opset ${opset} is older than TensorRT supports (from ${OLDEST_OPSET}); convert the model to a newer one.`,
    );
  }
}

function operatorUses(
  views: readonly GraphView[],
): Map<string, { count: number; first: NodeProto; where: string }> {
  const uses = new Map<string, { count: number; first: NodeProto; where: string }>();
  for (const view of views) {
    if (view.kind === 'training') continue;
    for (const node of view.nodes) {
      const type = qualifiedOpType(node);
      const known = uses.get(type);
      if (known === undefined)
        uses.set(type, { count: 1, first: node, where: `${view.path}/${nodeLabel(node)}` });
      else known.count += 1;
    }
  }
  return uses;
}
