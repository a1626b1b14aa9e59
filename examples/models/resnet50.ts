import { biasOf, conv } from './layers.js';
import type { Network } from './network.js';

export interface ResnetShape {
  /** Channels of the stem; the stages have 4, 8, 16 and 32 times as many at their ends. */
  readonly width: number;
  /** Bottleneck blocks in each of the four stages. */
  readonly blocks: readonly [number, number, number, number];
  readonly imageSize: number;
  readonly classes: number;
}

/** ResNet-50 is `full`: 25.5 M parameters. */
export const resnetShapes = {
  tiny: { width: 8, blocks: [1, 1, 1, 1], imageSize: 32, classes: 10 },
  small: { width: 16, blocks: [2, 2, 2, 2], imageSize: 64, classes: 100 },
  full: { width: 64, blocks: [3, 4, 6, 3], imageSize: 224, classes: 1000 },
} as const satisfies Record<string, ResnetShape>;

/** A residual branch adds this much of a standard deviation to its trunk, so that 16 blocks multiply activations by about 6, not by 256. */
const BRANCH_GAIN = 0.5;

/**
 * ResNet-50 v1.5 (He et al. 2015, stride in the 3×3 convolution) as an evaluation-mode export has it: batch normalization folded into the
 * convolutions, so every convolution has a bias. `input` [batch, 3, size, size] to `output` [batch, classes], float32, symbolic batch.
 */
export function resnet50(network: Network, shape: ResnetShape): void {
  let x = network.input('input', 'float32', ['batch', 3, shape.imageSize, shape.imageSize]);
  x = network.node('Relu', 'relu', [
    conv(network, 'conv1', x, { from: 3, to: shape.width, kernel: [7, 7], stride: 2, padding: 3, gain: 2 }),
  ]);
  x = network.node('MaxPool', 'maxpool', [x], {
    kernel_shape: [3, 3],
    strides: [2, 2],
    pads: [1, 1, 1, 1],
  });

  let channels = shape.width;
  shape.blocks.forEach((count, stage) => {
    const middle = shape.width * 2 ** stage;
    for (let block = 0; block < count; block++) {
      const stride = stage > 0 && block === 0 ? 2 : 1;
      x = bottleneck(network, `layer${stage + 1}.${block}`, x, channels, middle, stride);
      channels = 4 * middle;
    }
  });

  x = network.node('GlobalAveragePool', 'avgpool', [x]);
  x = network.node('Flatten', 'flatten', [x], { axis: 1 });
  const weight = network.weight('fc.weight', [shape.classes, channels], { deviation: channels ** -0.5 });
  const bias = biasOf(network, 'fc', shape.classes);
  network.node('Gemm', 'fc', [x, weight, bias], { transB: 1 }, 'output');
  network.output('output', 'float32', ['batch', shape.classes]);
}

/** 1×1 down to `middle` channels, 3×3, 1×1 up to 4 times `middle`, added to the trunk (or its projection) and rectified. */
function bottleneck(
  network: Network,
  name: string,
  trunk: string,
  from: number,
  middle: number,
  stride: number,
): string {
  const rectified = (x: string, which: string) => network.node('Relu', `${name}.${which}`, [x]);
  const point = { kernel: [1, 1], padding: 0 } as const;
  let x = rectified(conv(network, `${name}.conv1`, trunk, { from, to: middle, ...point, gain: 2 }), 'relu1');
  x = rectified(
    conv(network, `${name}.conv2`, x, {
      from: middle,
      to: middle,
      kernel: [3, 3],
      stride,
      padding: 1,
      gain: 2,
    }),
    'relu2',
  );
  x = conv(network, `${name}.conv3`, x, { from: middle, to: 4 * middle, ...point, gain: BRANCH_GAIN ** 2 });
  const kept =
    from === 4 * middle
      ? trunk
      : conv(network, `${name}.downsample.0`, trunk, { from, to: 4 * middle, ...point, stride, gain: 2 });
  return rectified(network.node('Add', `${name}.add`, [x, kept]), 'relu3');
}
