import { linear } from '../layers.js';
import type { Network } from '../network.js';
import type { ParakeetShape } from './shapes.js';

/**
 * The joint network of a token-and-duration transducer (Xu et al. 2023): `encoder_output` [batch, width, time] and `predictor_output`
 * [batch, width, token_len] to raw logits `joint_output` [batch, time, token_len, tokens + blank + durations], tokens first.
 */
export function parakeetJoint(network: Network, shape: ParakeetShape): void {
  const encoder = network.input('encoder_output', 'float32', ['batch', shape.width, 'time']);
  const predictor = network.input('predictor_output', 'float32', [
    'batch',
    shape.predictorWidth,
    'token_len',
  ]);
  const projected = (name: string, x: string, from: number, axis: number) => {
    const rows = network.node('Transpose', `${name}.rows`, [x], { perm: [0, 2, 1] });
    const projection = linear(network, name, rows, from, shape.jointWidth);
    return network.node('Unsqueeze', `${name}.axis`, [projection, network.integers([axis])]);
  };
  const sum = network.node('Add', 'add', [
    projected('enc', encoder, shape.width, 2),
    projected('pred', predictor, shape.predictorWidth, 1),
  ]);
  const active = network.node('Relu', 'relu', [sum]);

  const logits = jointLogits(shape);
  const weight = network.weight('joint_net.weight', [shape.jointWidth, logits], {
    deviation: shape.jointWidth ** -0.5,
    zeroAt: (index) => index % logits === shape.vocabulary,
  });
  const bias = network.computed('joint_net.bias', [logits], (index) =>
    index === shape.vocabulary ? blankBias(shape.vocabulary) : 0,
  );
  const product = network.node('MatMul', 'joint_net', [active, weight]);
  network.node('Add', 'joint_net.bias.add', [product, bias], {}, 'joint_output');
  network.output('joint_output', 'float32', ['batch', 'time', 'token_len', logits]);
}

/** Width of the logits: tokens, the blank, durations. */
export const jointLogits = (shape: ParakeetShape): number => shape.vocabulary + 1 + shape.durations.length;

/**
 * The blank's logit, which is its bias alone: the expected largest of n token logits, so that the blank wins about as often as a token does and a decode
 * goes through every component. Logits deviate by about √½ (a ReLU halves the energy of its input); the largest of n normal values lies at
 * √(2·ln n) - (ln ln n + ln 4π) / (2·√(2·ln n)) on average (Cramér 1946, to the first order).
 */
function blankBias(tokens: number): number {
  const first = Math.sqrt(2 * Math.log(tokens));
  return Math.SQRT1_2 * (first - (Math.log(Math.log(tokens)) + Math.log(4 * Math.PI)) / (2 * first));
}
