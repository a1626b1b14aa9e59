import type { Finding } from '../model-facts.js';

/** Every finding of `inspect`: what it is about and how bad. An error keeps the model from running; a warning often ends in a failed build or wrong numbers. */
const findingKinds = {
  'external-data-missing': 'error',
  'external-data-short': 'error',
  'external-data-outside': 'error',
  'external-data-invalid': 'error',
  'tensor-invalid': 'error',
  'value-undefined': 'error',
  'graph-cycle': 'error',
  'nodes-unsorted': 'warning',
  'type-mismatch': 'error',
  'name-duplicate': 'error',
  'name-empty': 'warning',
  'opset-missing': 'error',
  'opset-too-new': 'warning',
  'opset-too-old': 'warning',
  'ir-too-new': 'warning',
  'op-unknown': 'warning',
  'op-engine': 'warning',
  'onnxruntime-crash': 'warning',
  'op-rejected': 'warning',
  'op-plugin': 'info',
  'op-needs-newer-tensorrt': 'info',
  'sparse-initializer': 'warning',
  'io-type-unsupported': 'warning',
  'io-rank-unsupported': 'warning',
  'dim-without-symbol': 'warning',
  'dim-zero': 'warning',
  'dim-negative': 'warning',
  'float64-narrowed': 'info',
  'size-fixed': 'warning',
  'size-limited': 'info',
  'int64-clamped': 'warning',
  'int64-sentinel': 'info',
  'initializer-is-input': 'info',
  'initializer-unused': 'info',
  'quantized-operator': 'warning',
  'quantized-bias': 'warning',
  'quantized-type': 'warning',
  'quantized-scalar': 'warning',
  'quantized-constant': 'warning',
  'quantized-cast': 'warning',
  'quantized-uint8': 'warning',
  'quantized-zero-point': 'warning',
  'quantized-scale': 'warning',
  'quantized-scale-fp16': 'warning',
  'quantized-scale-computed': 'warning',
  'quantized-blocks': 'warning',
  'quantized-one-operand': 'warning',
  'quantized-weight-axis': 'warning',
  'quantized-activation-channels': 'warning',
  'quantized-int4-scales': 'warning',
  'quantized-conv-transpose': 'warning',
  'quantized-attention': 'warning',
  'quantized-unused': 'info',
  'quantized-target': 'info',
  'weights-nan': 'error',
  'weights-inf': 'warning',
  'weights-fp16-overflow': 'warning',
  'weights-fp16-underflow': 'info',
} as const satisfies Record<string, Finding['severity']>;

export type FindingCode = keyof typeof findingKinds;

/** Findings that hold for some versions of TensorRT: of a version that is chosen, its own facts are reported instead. */
export const byVersion: ReadonlySet<string> = new Set<FindingCode>([
  'opset-too-new',
  'op-needs-newer-tensorrt',
]);

/** Findings on models that TensorRT builds without a warning, but computes wrongly. */
export const wrongResults: ReadonlySet<string> = new Set<FindingCode>([
  'quantized-blocks',
  'quantized-uint8',
  'quantized-scale',
]);

/** Findings that end a build: TensorRT's parser or builder, or a version of them, rejects the model. */
export const rejections: ReadonlySet<string> = new Set<FindingCode>([
  ...([
    'external-data-missing',
    'external-data-short',
    'external-data-outside',
    'external-data-invalid',
  ] as const),
  ...(['tensor-invalid', 'value-undefined', 'graph-cycle', 'type-mismatch', 'sparse-initializer'] as const),
  ...(['op-unknown', 'op-engine', 'op-rejected', 'op-plugin', 'op-needs-newer-tensorrt'] as const),
  ...(['opset-too-new', 'opset-too-old'] as const),
  ...(['io-type-unsupported', 'io-rank-unsupported', 'dim-negative'] as const),
  ...(['quantized-operator', 'quantized-bias', 'quantized-type', 'quantized-scalar'] as const),
  ...(['quantized-constant', 'quantized-zero-point', 'quantized-scale'] as const),
]);

/** More findings of one code than this become one line that counts the rest. */
const MOST_OF_A_CODE = 20;

/** Collects findings, the gravest first. */
export class Findings {
  readonly #byCode = new Map<FindingCode, Finding[]>();

  add(code: FindingCode, where: string, message: string, remedy?: string): void {
    const list = this.#byCode.get(code) ?? [];
    const finding = { code, severity: findingKinds[code], message, where };
    list.push(remedy === undefined ? finding : { ...finding, remedy });
    this.#byCode.set(code, list);
  }

  list(): Finding[] {
    const order = ['error', 'warning', 'info'];
    return [...this.#byCode.values()]
      .flatMap(shortened)
      .sort((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
  }
}

function shortened(findings: readonly Finding[]): readonly Finding[] {
  if (findings.length <= MOST_OF_A_CODE) return findings;
  const { code, severity } = findings[0]!;
  const rest = findings.length - MOST_OF_A_CODE;
  return [
    ...findings.slice(0, MOST_OF_A_CODE),
    { code, severity, message: `The same in ${rest} more places.`, where: 'more' },
  ];
}
