import { imageLayout } from '../../formats/onnx/image-layout.js';
import type { ModelFacts, ValueFacts } from '../../formats/onnx/model-facts.js';

type Shape = NonNullable<ValueFacts['shape']>;

/**
 * The lines of the model summary that DeepStream's import scripts read with grep (`input_name:\s*(\S+)`, `height:\s*([0-9]+)`, `width:\s*([0-9]+)`).
 * Unlike the script they come from: initializers are not inputs, the opset is the one of ai.onnx, height and width are judged one by one.
 */
export function deepstreamSummary(facts: ModelFacts): string[] {
  const types = Object.keys(facts.ops).sort();
  return [
    '=== ONNX Model Info ===',
    `File:     ${facts.file}`,
    `Opset:    ${facts.opsets['ai.onnx'] ?? 'N/A'}`,
    `IR ver:   ${facts.irVersion}`,
    `Producer: ${`${facts.producer} ${facts.producerVersion}`.trim()}`,
    `Nodes:    ${facts.nodes}`,
    '',
    '=== INPUTS ===',
    ...facts.inputs.map(valueLine),
    '',
    '=== OUTPUTS ===',
    ...facts.outputs.map(valueLine),
    '',
    '=== Operators ===',
    `  ${types.join(', ')}`,
    `  Total unique ops: ${types.length}`,
    '',
    validityLine(facts),
    '',
    '=== Machine-Parseable Summary ===',
    ...machineLines(facts.inputs[0]),
  ];
}

/** Shapes as Python prints lists: symbols quoted, unknown dimensions empty. */
const valueLine = ({ name, shape, dtype }: ValueFacts): string =>
  `  ${name}: shape=[${(shape ?? []).map((dim) => (typeof dim === 'number' ? dim : `'${dim ?? ''}'`)).join(', ')}], dtype=${dtype ?? 'unknown'}`;

function validityLine(facts: ModelFacts): string {
  const error = facts.findings.find(({ severity }) => severity === 'error');
  return error === undefined ? '✓ ONNX model is valid' : `✗ ONNX validation error: ${error.message}`;
}

function machineLines(input: ValueFacts | undefined): string[] {
  if (input === undefined) return ['WARNING: No inputs found in ONNX graph'];
  const shape: Shape = input.shape ?? [];
  const layout = imageLayout(shape);
  const [height, width] = [shape[layout?.height ?? -1], shape[layout?.width ?? -1]];
  if (layout === null || height === undefined || width === undefined) {
    return [
      `input_name: ${input.name}`,
      `WARNING: Input has ${shape.length} dims — expected 4 (NCHW); cannot auto-detect H/W`,
    ];
  }
  const isFixed = (dim: Shape[number]) => typeof dim === 'number' && dim > 0;
  const sized = (dim: Shape[number]) =>
    isFixed(dim) ? String(dim) : `DYNAMIC (symbol=${typeof dim === 'string' ? dim : 'unknown'})`;
  const warning = 'WARNING: Dynamic H/W — set height and width manually in trtexec flags';
  return [
    `input_name: ${input.name}`,
    `height: ${sized(height)}`,
    `width: ${sized(width)}`,
    ...(layout.layout === 'NHWC'
      ? ['WARNING: NHWC input — set network-input-order=1 in the nvinfer configuration']
      : []),
    ...(isFixed(height) && isFixed(width) ? [] : [warning]),
  ];
}
