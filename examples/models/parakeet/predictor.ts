import type { Network } from '../network.js';
import type { ParakeetShape } from './shapes.js';

/**
 * The prediction network of a transducer: `y` [batch, token_len] int64 and the LSTM state `h`, `c` [layers, batch, width] to `g`
 * [batch, width, token_len] and the next state `h_out`, `c_out`.
 */
export function parakeetPredictor(network: Network, shape: ParakeetShape): void {
  const { predictorLayers: layers, predictorWidth: width } = shape;
  const tokens = network.input('y', 'int64', ['batch', 'token_len']);
  const state = ['h', 'c'].map((name) => network.input(name, 'float32', [layers, 'batch', width]));

  const table = network.weight('embed.weight', [shape.vocabulary + 1, width], { deviation: 1 });
  const embedded = network.node('Gather', 'embed', [table, tokens], { axis: 0 });
  let x = network.node('Transpose', 'time_first', [embedded], { perm: [1, 0, 2] });
  const next: [string[], string[]] = [[], []];
  for (let layer = 0; layer < layers; layer++) {
    const name = `lstm.${layer}`;
    const before = state.map((tensor) =>
      network.node('Slice', `${name}.${tensor}`, [
        tensor,
        network.integers([layer]),
        network.integers([layer + 1]),
        network.integers([0]),
      ]),
    );
    const inputs = [x, ...lstmWeights(network, name, width), '', ...before];
    const [steps, hidden, cell] = network.nodes('LSTM', name, inputs, { hidden_size: width }, 3);
    x = network.node('Squeeze', `${name}.steps`, [steps!, network.integers([1])]);
    next[0].push(hidden!);
    next[1].push(cell!);
  }
  network.node('Transpose', 'output', [x], { perm: [1, 2, 0] }, 'g');
  network.output('g', 'float32', ['batch', width, 'token_len']);
  ['h_out', 'c_out'].forEach((name, which) => {
    network.node('Concat', name, next[which]!, { axis: 0 }, name);
    network.output(name, 'float32', [layers, 'batch', width]);
  });
}

/** W, R and B of one LSTM, gates in ONNX's order (input, output, forget, cell). */
function lstmWeights(network: Network, name: string, width: number): string[] {
  const deviation = width ** -0.5;
  return [
    network.weight(`${name}.weight_ih`, [1, 4 * width, width], { deviation }),
    network.weight(`${name}.weight_hh`, [1, 4 * width, width], { deviation }),
    network.weight(`${name}.bias`, [1, 8 * width], { deviation: 0.02 }),
  ];
}
