import { layerNorm } from '../../examples/models/layers.js';
import type { RandomStream } from '../../examples/models/random.js';
import {
  epsilonsOf,
  headZeroed,
  layersSwapped,
  othersWeights,
  quarterZeroed,
  rewritten,
  rowsTurned,
  scaled,
  shuffled,
  withAttributes,
  zeroed,
} from './faults.js';
import { type Kind, longs } from './kind.js';
import { biased, encoderLayer, HEADS, HIDDEN, LENGTH, type Mask, WIDTH } from './sequence-kinds.js';

const VOCABULARY = 160;
const LABELS = 9;
const [PAD, START, END] = [0, 1, 2];

/** A sentence as a tokenizer leaves it: START, words of which a few are most, END, and PAD up to the length. */
function sentence(stream: RandomStream): number[] {
  const length = LENGTH / 2 + stream.below(LENGTH / 2 + 1);
  const word = () => 3 + Math.floor((VOCABULARY - 3) * (stream.below(1000) / 1000) ** 3);
  const ids = Array.from({ length: length - 2 }, word);
  return [START, ...ids, END, ...Array.from({ length: LENGTH - length }, () => PAD)];
}

/** A label for each token of a sentence: embeddings as small as BERT's, two layers, probabilities. */
export const tokenLabels: Kind = {
  name: 'labels of tokens',
  define: (network) => {
    const ids = network.input('input_ids', 'int64', [1, LENGTH]);
    const mask = network.input('attention_mask', 'int64', [1, LENGTH]);
    const wide = network.node('Unsqueeze', 'mask.wide', [mask, network.integers([1, 2])]);
    const isOff = network.node('Sub', 'mask.off', [
      network.scalar(1),
      network.cast('mask.float', wide, 'float32'),
    ]);
    const bias = network.node('Mul', 'mask.bias', [isOff, network.scalar(HIDDEN)]);
    const masked: Mask = (name, scores) => network.node('Add', name, [scores, bias]);
    const table = network.weight('table.weight', [VOCABULARY, WIDTH], { deviation: 0.04 });
    const positions = network.weight('positions.weight', [1, LENGTH, WIDTH], { deviation: 0.02 });
    const rows = network.node('Gather', 'rows', [table, ids], { axis: 0 });
    const placed = network.node('Add', 'placed', [rows, positions]);
    let x = layerNorm(network, 'norm', placed, WIDTH);
    x = encoderLayer(network, 'layer0', x, masked);
    x = encoderLayer(network, 'layer1', x, masked);
    const logits = biased(network, 'head', x, WIDTH, LABELS, 8);
    network.node('Softmax', 'softmax', [logits], { axis: -1 }, 'probabilities');
    network.output('probabilities', 'float32', [1, LENGTH, LABELS]);
  },
  faults: [
    epsilonsOf(/norm\d?$/),
    layersSwapped('layer0.', 'layer1.'),
    layersSwapped('.q.', '.k.'),
    headZeroed(HEADS)('first layer:', /^layer0\.out\.weight/),
    headZeroed(HEADS)('second layer:', /^layer1\.out\.weight/),
    rewritten('mask ignored', /^mask\.bias$/, ({ inputs }, network) => ({
      inputs: [inputs[0]!, network.scalar(0)],
    })),
    rewritten('mask inverted', /^mask\.off$/, ({ inputs }, network) => ({
      opType: 'Mul',
      inputs: [network.scalar(1), inputs[1]!],
    })),
    withAttributes('softmax over time', /^softmax$/, { axis: 1 }),
    rewritten('scores not divided', /^layer\d\.scores$/, ({ inputs }, network) => ({
      inputs: [inputs[0]!, network.scalar(1)],
    })),
    rowsTurned(2)('table', /^table/),
    shuffled('positions', /^positions/),
    quarterZeroed(1)('labels', /^head\./),
    scaled(0.8)('last layer', /^head\.weight/),
    zeroed('last bias', /^head\.bias/),
    othersWeights,
  ],
  sample: (stream) => {
    const ids = sentence(stream);
    const mask = ids.map((id) => Number(id !== PAD));
    return new Map([
      ['input_ids', longs([1, LENGTH], ids)],
      ['attention_mask', longs([1, LENGTH], mask)],
    ]);
  },
  // Off by 10 % of the probabilities.
  without: ['fp8'],
};
