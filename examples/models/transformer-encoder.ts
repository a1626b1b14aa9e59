import { axisSize, gelu, layerNorm, linear, mergeHeads, splitHeads } from './layers.js';
import type { Network } from './network.js';

export interface TransformerShape {
  readonly layers: number;
  readonly width: number;
  readonly heads: number;
  readonly vocabulary: number;
  /** Longest sequence the position table serves. */
  readonly positions: number;
}

/** `full` is BERT-base without its pooler: 109 M parameters. */
export const transformerShapes = {
  tiny: { layers: 2, width: 32, heads: 4, vocabulary: 100, positions: 64 },
  small: { layers: 4, width: 256, heads: 4, vocabulary: 5000, positions: 256 },
  medium: { layers: 12, width: 256, heads: 4, vocabulary: 5000, positions: 256 },
  full: { layers: 12, width: 768, heads: 12, vocabulary: 30522, positions: 512 },
} as const satisfies Record<string, TransformerShape>;

/** Added to the scores of masked positions; inside the FP16 range, unlike float32's lowest value. */
const MASKED = -10_000;

/**
 * A post-norm transformer encoder (Devlin et al. 2018). `input_ids` and `attention_mask` [batch, sequence] int64 to `last_hidden_state`
 * [batch, sequence, width] float32; batch and sequence are symbols.
 */
export function transformerEncoder(network: Network, shape: TransformerShape): void {
  const { width } = shape;
  const ids = network.input('input_ids', 'int64', ['batch', 'sequence']);
  const mask = network.input('attention_mask', 'int64', ['batch', 'sequence']);

  const words = network.weight('embeddings.word.weight', [shape.vocabulary, width], { deviation: 1 });
  const positions = network.weight('embeddings.position.weight', [shape.positions, width], {
    deviation: 0.5,
  });
  const position = network.node('Slice', 'embeddings.position', [
    positions,
    network.integers([0]),
    axisSize(network, 'embeddings.sequence', ids, 1),
    network.integers([0]),
  ]);
  const embedded = network.node('Add', 'embeddings.add', [
    network.node('Gather', 'embeddings.word', [words, ids], { axis: 0 }),
    position,
  ]);
  let x = layerNorm(network, 'embeddings.norm', embedded, width);

  const penalty = maskPenalty(network, mask);
  for (let layer = 0; layer < shape.layers; layer++) {
    const name = `encoder.layer.${layer}`;
    const attended = selfAttention(network, `${name}.attention`, x, penalty, shape);
    x = layerNorm(
      network,
      `${name}.attention.norm`,
      network.node('Add', `${name}.attention.add`, [attended, x]),
      width,
    );
    const wide = gelu(network, `${name}.gelu`, linear(network, `${name}.up`, x, width, 4 * width));
    const narrow = linear(network, `${name}.down`, wide, 4 * width, width, { gain: 2 });
    const sum = network.node('Add', `${name}.add`, [narrow, x]);
    const last = layer === shape.layers - 1;
    x = layerNorm(network, `${name}.norm`, sum, width, last ? 'last_hidden_state' : undefined);
  }
  network.output('last_hidden_state', 'float32', ['batch', 'sequence', width]);
}

/** 0 where the mask is 1 and MASKED where it is 0, as [batch, 1, 1, sequence] to be added to the scores. */
function maskPenalty(network: Network, mask: string): string {
  const wide = network.node('Unsqueeze', 'mask.axes', [mask, network.integers([1, 2])]);
  const kept = network.cast('mask.float', wide, 'float32');
  const masked = network.node('Sub', 'mask.inverse', [network.scalar(1), kept]);
  return network.node('Mul', 'mask.penalty', [masked, network.scalar(MASKED)]);
}

function selfAttention(
  network: Network,
  name: string,
  x: string,
  penalty: string,
  { width, heads }: TransformerShape,
): string {
  const size = width / heads;
  const projected = (which: string, permutation?: readonly number[]) =>
    splitHeads(
      network,
      `${name}.${which}`,
      linear(network, `${name}.${which}`, x, width, width),
      heads,
      size,
      permutation,
    );
  const scores = network.node('MatMul', `${name}.scores`, [
    projected('query'),
    projected('key', [0, 2, 3, 1]),
  ]);
  const scaled = network.node('Div', `${name}.scaled`, [scores, network.scalar(Math.sqrt(size))]);
  const masked = network.node('Add', `${name}.masked`, [scaled, penalty]);
  const weights = network.node('Softmax', `${name}.softmax`, [masked], { axis: -1 });
  const mixed = network.node('MatMul', `${name}.mixed`, [weights, projected('value')]);
  return linear(network, `${name}.output`, mergeHeads(network, name, mixed, width), width, width);
}
