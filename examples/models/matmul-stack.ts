import { linear } from './layers.js';
import type { Network } from './network.js';

export interface StackShape {
  readonly layers: number;
  readonly width: number;
}

/** Named by the bytes of their weights: each layer of 1024 is a 4 MiB matrix. What the benchmarks measure large files with. */
export const stackShapes = {
  tiny: { layers: 3, width: 16 },
  '100MB': { layers: 24, width: 1024 },
  '1GiB': { layers: 256, width: 1024 },
  '1.5GB': { layers: 358, width: 1024 },
  '2GiB': { layers: 512, width: 1024 },
} as const satisfies Record<string, StackShape>;

/** Matrix, bias and tanh, `layers` times: `x` to `y`, both [batch, width] float32. */
export function matmulStack(network: Network, { layers, width }: StackShape): void {
  let x = network.input('x', 'float32', ['batch', width]);
  for (let layer = 0; layer < layers; layer++) {
    const name = `layer.${layer}`;
    const last = layer === layers - 1;
    x = network.node(
      'Tanh',
      `${name}.tanh`,
      [linear(network, name, x, width, width)],
      {},
      last ? 'y' : undefined,
    );
  }
  network.output('y', 'float32', ['batch', width]);
}
