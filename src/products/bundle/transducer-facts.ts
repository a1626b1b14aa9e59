import { type BundleMeta, logitsOf } from '../../formats/contract/model-meta.js';
import type { ValueFacts } from '../../formats/onnx/model-facts.js';
import { jointInputs } from './check-bundle.js';
import type { Component } from './component.js';
import { roleOfAxis } from './component-profile.js';
import type { TransducerFacts } from './transducer.js';

/** The models that decode: those behind the encoder. */
export type DecodingComponents = Readonly<Record<'predictor' | 'joint', Component>>;

/** The facts for decoding, or why the bundle cannot be decoded. `smallest` are the smallest shapes of inputs that the models or engines take. */
export function transducerFacts(
  meta: BundleMeta,
  { predictor, joint }: DecodingComponents,
  smallest: TransducerFacts['smallest'],
): TransducerFacts | string {
  const logits = logitsOf(meta, joint.outputs[0]?.shape?.at(-1));
  if (typeof logits === 'string') return logits;
  for (const [name, shape] of smallest.predictor) {
    const tokens = predictor.inputs.find((input) => input.name === name && /int/.test(input.dtype ?? ''));
    if (tokens !== undefined && (shape[1] ?? 1) > 1)
      return `its predictor takes no fewer than ${shape[1]} tokens at a time, and a decoder has one`;
  }
  const [fromEncoder, fromPredictor] = jointInputs(joint);
  return {
    ...logits,
    smallest,
    timeAxis: axisAlong('time', joint, meta, fromEncoder),
    tokenAxis: axisAlong('tokens', joint, meta, fromPredictor),
  };
}

function axisAlong(
  role: 'time' | 'tokens',
  joint: Component,
  meta: BundleMeta,
  input: ValueFacts | undefined,
): number {
  const shape = input?.shape ?? [];
  const found = shape.findIndex(
    (symbol, axis) =>
      typeof symbol !== 'number' &&
      roleOfAxis({ component: joint, meta, input: input!, axis, symbol }) === role,
  );
  return found >= 0 ? found : Math.max(0, shape.length - 1);
}
