import { dtypeFromOnnx } from '../tensor/dtype.js';
import { visitTensors } from './graph.js';
import type { ModelProto } from './onnx_pb.js';
import { plainDomain } from './operators.js';

/** The oldest IR version that goes with an opset, as ONNX released them together. */
const ofOpset: readonly (readonly [opset: number, ir: bigint])[] = [
  [25, 13n],
  [24, 12n],
  [23, 11n],
  [21, 10n],
  [19, 9n],
  [15, 8n],
  [13, 7n],
  [11, 6n],
];

/** The same of types of tensors that came later than others. */
const ofType: readonly (readonly [type: RegExp, ir: bigint])[] = [
  [/^u?int2$/, 13n],
  [/^float8_e8m0/, 12n],
  [/^float4/, 11n],
  [/^u?int4$/, 10n],
  [/^float8/, 9n],
];

/** Files of ONNX's functions and of everything older. */
const USUAL = 8n;

/** The IR version that the content of a model needs, whatever the file states: readers reject a newer one although nothing of it is used. */
export function neededIrVersion(proto: ModelProto): bigint {
  const opset = Number(proto.opsetImport.find(({ domain }) => plainDomain(domain) === '')?.version ?? 0);
  const types = new Set([...visitTensors(proto)].map(({ tensor }) => dtypeFromOnnx(tensor.dataType) ?? ''));
  const needed = [
    ofOpset.find(([since]) => opset >= since)?.[1] ?? 0n,
    ...ofType.filter(([type]) => [...types].some((dtype) => type.test(dtype))).map(([, ir]) => ir),
    proto.functions.some(({ overload }) => overload !== '') ? 10n : USUAL,
  ];
  return needed.reduce((most, ir) => (ir > most ? ir : most));
}

/** The newest that ONNX Runtime 1.30 loads; a file that states more seldom needs it. */
export const NEWEST_LOADED_IR = 13n;

/** States no newer IR version than is needed. */
export function lowerIrVersion(proto: ModelProto): void {
  const needed = neededIrVersion(proto);
  if (proto.irVersion > needed) proto.irVersion = needed;
}
