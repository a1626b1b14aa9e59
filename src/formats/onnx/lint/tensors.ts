import { type ErrorCode, TrtforgeError } from '../../../errors.js';
import { locationOf } from '../external-data.js';
import { type GraphView, nodeLabel, type TensorPlace } from '../graph.js';
import type { OnnxModel } from '../model.js';
import type { NodeProto } from '../onnx_pb.js';
import type { Weight } from '../weight.js';
import type { FindingCode, Findings } from './findings.js';

const INT32_MIN = -(2n ** 31n);
const INT32_MAX = 2n ** 31n - 1n;
/** Exporters write these for "to the end" (Slice) and "no limit"; clamping them changes nothing. */
const sentinels = new Set([2n ** 63n - 1n, -(2n ** 63n), 2n ** 63n - 2n, -(2n ** 63n) + 1n]);

/** The effect on int64 constants where TensorRT narrows them to int32 (before 10, and for shapes and indices in general). */
export function int64Finding(
  values: readonly bigint[],
): { readonly code: 'int64-clamped' | 'int64-sentinel'; readonly what: string } | undefined {
  const outside = values.filter((value) => value < INT32_MIN || value > INT32_MAX);
  const worst = outside.find((value) => !sentinels.has(value));
  if (worst !== undefined) {
    return {
      code: 'int64-clamped',
      what: `contains ${worst}, outside the range of int32; where TensorRT narrows it, it becomes ${worst < 0 ? INT32_MIN : INT32_MAX}`,
    };
  }
  if (outside.length === 0) return undefined;
  return {
    code: 'int64-sentinel',
    what: `contains ${outside[0]}, a mark for "without limit" that stays one when it is clamped to int32`,
  };
}

const findingOf: Partial<Record<ErrorCode, FindingCode>> = {
  TF_ONNX_EXTERNAL_MISSING: 'external-data-missing',
  TF_ONNX_EXTERNAL_SHORT: 'external-data-short',
  TF_ONNX_EXTERNAL_OUTSIDE: 'external-data-outside',
  TF_ONNX_EXTERNAL_INVALID: 'external-data-invalid',
  TF_ONNX_TENSOR_INVALID: 'tensor-invalid',
};

/** The place of a tensor in messages. */
export function tensorLabel({ tensor, role, view, node, attribute }: TensorPlace): string {
  const owner = node === undefined ? view.path : `${view.path}/${nodeLabel(node)}`;
  return role === 'initializer' || attribute === undefined
    ? `${owner} initializer "${tensor.name}"`
    : `${owner}.${attribute.name}`;
}

/** Findings about tensors: values that cannot be found or do not fit, and small int64 constants beyond int32. */
export function lintTensors(model: OnnxModel, tensors: readonly TensorPlace[], findings: Findings): void {
  const blamedFiles = new Set<string>();
  for (const place of tensors) {
    const weight = locate(place, model, findings, blamedFiles);
    if (weight?.dtype === 'int64' && weight.where.kind === 'inline') lintInt64(place, weight, findings);
    if (place.role === 'sparse-values' && place.attribute === undefined) {
      findings.add(
        'sparse-initializer',
        tensorLabel(place),
        `TensorRT's ONNX parser does not take sparse initializers ("${place.tensor.name}").`,
      );
    }
  }
}

/** The same about constants that are attributes and not tensors. */
export function lintConstants(views: readonly GraphView[], findings: Findings): void {
  for (const view of views) {
    for (const node of view.nodes) {
      if (node.opType === 'Constant') lintConstant(node, view, findings);
    }
  }
}

function lintConstant(node: NodeProto, view: GraphView, findings: Findings): void {
  for (const { name, i, ints } of node.attribute) {
    const values = name === 'value_int' ? [i] : name === 'value_ints' ? ints : [];
    const finding = int64Finding(values);
    if (finding === undefined) continue;
    findings.add(finding.code, `${view.path}/${nodeLabel(node)}`, `A constant ${finding.what}.`);
  }
}

function lintInt64(place: TensorPlace, weight: Weight, findings: Findings): void {
  const values = [...weight.chunks()].flatMap((chunk) => [
    ...new BigInt64Array(chunk.buffer, chunk.byteOffset, chunk.length / 8),
  ]);
  const finding = int64Finding(values);
  if (finding !== undefined) {
    findings.add(finding.code, tensorLabel(place), `int64 constant "${place.tensor.name}" ${finding.what}.`);
  }
}

/** One missing file is one finding, however many tensors wait for it. */
function locate(
  place: TensorPlace,
  model: OnnxModel,
  findings: Findings,
  blamed: Set<string>,
): Weight | undefined {
  try {
    return model.weight(place.tensor);
  } catch (error) {
    const code = error instanceof TrtforgeError ? findingOf[error.code] : undefined;
    if (code === undefined || !(error instanceof TrtforgeError)) throw error;
    const file = locationOf(place.tensor);
    const perFile = code === 'external-data-missing' || code === 'external-data-outside';
    if (perFile && file !== undefined) {
      if (blamed.has(file)) return undefined;
      blamed.add(file);
    }
    findings.add(code, perFile && file !== undefined ? file : tensorLabel(place), error.message);
    return undefined;
  }
}
