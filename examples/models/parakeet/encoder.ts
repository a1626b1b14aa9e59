import type { Network } from '../network.js';
import { conformerLayer } from './conformer-layer.js';
import { padding } from './mask.js';
import { relativePositions } from './positions.js';
import type { ParakeetShape } from './shapes.js';
import { subsampling } from './subsampling.js';

/**
 * A FastConformer encoder (Rekesh et al. 2023): `audio_signal` [batch, mels, time] float32 and `length` [batch] int64 (frames that are no
 * padding) to `encoder_output` [batch, width, time_out] float32 and `encoded_lengths` [batch] int64; 8 frames become one step.
 */
export function parakeetEncoder(network: Network, shape: ParakeetShape): void {
  const audio = network.input('audio_signal', 'float32', ['batch', shape.mels, 'time']);
  const length = network.input('length', 'int64', ['batch']);

  const sub = subsampling(network, audio, length, shape);
  let x = sub.x;
  const masks = padding(network, x, sub.length);
  const positions = relativePositions(network, x, shape);
  for (let layer = 0; layer < shape.layers; layer++) {
    x = conformerLayer(network, `layers.${layer}`, x, { positions, masks }, shape);
  }
  network.node('Transpose', 'output', [x], { perm: [0, 2, 1] }, 'encoder_output');
  network.cast('lengths', sub.length, 'int64', 'encoded_lengths');
  network.output('encoder_output', 'float32', ['batch', shape.width, 'time_out']);
  network.output('encoded_lengths', 'int64', ['batch']);
}
