import { conv, linear } from '../layers.js';
import type { Network } from '../network.js';
import { validSteps } from './mask.js';
import type { ParakeetShape } from './shapes.js';

/** Three stages of stride 2: eight frames become one step. */
const STAGES = 3;

/**
 * Depthwise-separable convolutions over time and frequency. Lengths are computed as exporters write them, in float32: floor((L − 1) / 2) + 1
 * a stage; a precision that cannot count to L must not touch them. Padding is zeroed before each stage.
 */
export function subsampling(
  network: Network,
  audio: string,
  frames: string,
  shape: Pick<ParakeetShape, 'mels' | 'subsamplingChannels' | 'width'>,
): { readonly x: string; readonly length: string } {
  const channels = shape.subsamplingChannels;
  const timeFirst = network.node('Transpose', 'pre_encode.time_first', [audio], { perm: [0, 2, 1] });
  let x = network.node('Unsqueeze', 'pre_encode.channel', [timeFirst, network.integers([1])]);
  let length = network.cast('pre_encode.length', frames, 'float32');
  let bins = shape.mels;

  for (let stage = 0; stage < STAGES; stage++) {
    const name = `pre_encode.${stage}`;
    const kept = withoutPadding(network, name, x, length);
    const halved = { kernel: [3, 3], stride: 2, padding: 1 } as const;
    if (stage === 0) {
      x = conv(network, `${name}.conv`, kept, { from: 1, to: channels, ...halved, gain: 2 });
    } else {
      const depthwise = { from: channels, to: channels, ...halved, groups: channels, gain: 1 };
      const spread = conv(network, `${name}.depthwise`, kept, depthwise);
      x = conv(network, `${name}.pointwise`, spread, {
        from: channels,
        to: channels,
        kernel: [1, 1],
        padding: 0,
        gain: 2,
      });
    }
    x = network.node('Relu', `${name}.relu`, [x]);
    length = halvedLength(network, name, length);
    bins = Math.floor((bins - 1) / 2) + 1;
  }

  const kept = withoutPadding(network, 'pre_encode.out', x, length);
  const moved = network.node('Transpose', 'pre_encode.time', [kept], { perm: [0, 2, 1, 3] });
  const flat = network.node('Reshape', 'pre_encode.flat', [moved, network.integers([0, 0, channels * bins])]);
  return { x: linear(network, 'pre_encode.linear', flat, channels * bins, shape.width), length };
}

/** `x` [batch, channels, time, bins] with zeros from each length on. */
function withoutPadding(network: Network, name: string, x: string, length: string): string {
  const valid = validSteps(network, `${name}.valid`, x, 2, length);
  const factor = network.cast(`${name}.keep`, valid, 'float32');
  const shaped = network.node('Unsqueeze', `${name}.keep.axes`, [factor, network.integers([1, 3])]);
  return network.node('Mul', `${name}.masked`, [x, shaped]);
}

function halvedLength(network: Network, name: string, length: string): string {
  const less = network.node('Sub', `${name}.length.less`, [length, network.scalar(1)]);
  const half = network.node('Div', `${name}.length.half`, [less, network.scalar(2)]);
  const floor = network.node('Floor', `${name}.length.floor`, [half]);
  return network.node('Add', `${name}.length`, [floor, network.scalar(1)]);
}
