import { attribute, GraphBuilder } from 'trtforge/onnx';
import { conv, gelu, layerNorm, linear, mergeHeads, silu, splitHeads } from '../../examples/models/layers.js';
import type { RandomStream } from '../../examples/models/random.js';
import {
  headZeroed,
  layersSwapped,
  moved,
  negated,
  othersWeights,
  quarterZeroed,
  rewritten,
  rowsTurned,
  rowsZeroed,
  scaled,
  shifted,
  shuffled,
  withAttributes,
  zeroed,
} from './faults.js';
import { floats, type Kind, longs, normals, type SampleTensor, sound } from './kind.js';
import type { VariantNetwork } from './variant-network.js';

export const WIDTH = 32;
export const HEADS = 4;
const HEAD = WIDTH / HEADS;
export const LENGTH = 24;

/** The values of a linear layer's bias vary as much as a trained one's. */
export function biased(
  network: VariantNetwork,
  name: string,
  x: string,
  from: number,
  to: number,
  gain: number,
): string {
  const product = linear(network, name, x, from, to, { gain, bias: false });
  return network.node('Add', `${name}.sum`, [
    product,
    network.weight(`${name}.bias`, [to], { deviation: 0.3 }),
  ]);
}

/** Given the scores of attention, what Softmax gets. */
export type Mask = (name: string, scores: string) => string;

/** A layer of a transformer, normalized after each branch. */
export function encoderLayer(network: VariantNetwork, name: string, x: string, mask?: Mask): string {
  const projected = (which: string, permutation?: readonly number[]) =>
    splitHeads(
      network,
      `${name}.${which}`,
      biased(network, `${name}.${which}`, x, WIDTH, WIDTH, which === 'v' ? 1 : 1.6),
      HEADS,
      HEAD,
      permutation,
    );
  const products = network.node('MatMul', `${name}.products`, [projected('q'), projected('k', [0, 2, 3, 1])]);
  let scores = network.node('Div', `${name}.scores`, [products, network.scalar(Math.sqrt(HEAD))]);
  if (mask !== undefined) scores = mask(`${name}.masked`, scores);
  const shares = network.node('Softmax', `${name}.softmax`, [scores], { axis: -1 });
  const heads = network.node('MatMul', `${name}.context`, [shares, projected('v')]);
  const context = mergeHeads(network, `${name}.merged`, heads, WIDTH);
  const attended = network.node('Add', `${name}.residual1`, [
    x,
    biased(network, `${name}.out`, context, WIDTH, WIDTH, 2),
  ]);
  const normal = layerNorm(network, `${name}.norm1`, attended, WIDTH);
  const hidden = gelu(network, `${name}.gelu`, biased(network, `${name}.up`, normal, WIDTH, 2 * WIDTH, 1));
  const fed = biased(network, `${name}.down`, hidden, 2 * WIDTH, WIDTH, 2);
  return layerNorm(network, `${name}.norm2`, network.node('Add', `${name}.residual2`, [normal, fed]), WIDTH);
}

const VOCABULARY = 128;

export const embeddingEncoder: Kind = {
  name: 'embedding and encoder',
  define: (network) => {
    const ids = network.input('input_ids', 'int64', [1, LENGTH]);
    const table = network.weight('table.weight', [VOCABULARY, WIDTH], { deviation: 1 });
    const positions = network.weight('positions.weight', [1, LENGTH, WIDTH], { deviation: 0.3 });
    const rows = network.node('Gather', 'rows', [table, ids], { axis: 0 });
    let x = network.node('Add', 'placed', [rows, positions]);
    x = encoderLayer(network, 'layer0', layerNorm(network, 'norm', x, WIDTH));
    network.node('Identity', 'hidden', [x], {}, 'last_hidden_state');
    const mean = network.node('ReduceMean', 'mean', [x, network.integers([1])], { keepdims: 0 });
    const pooled = biased(network, 'pooler', mean, WIDTH, 16, 4);
    const length = network.node('ReduceL2', 'length', [pooled, network.integers([1])], { keepdims: 1 });
    network.node('Div', 'unit', [pooled, length], {}, 'sentence_embedding');
    network.output('last_hidden_state', 'float32', [1, LENGTH, WIDTH]);
    network.output('sentence_embedding', 'float32', [1, 16]);
  },
  faults: [
    rowsTurned()('table', /^table/),
    rowsTurned(2)('table', /^table/),
    rowsZeroed(64)('table', /^table/),
    quarterZeroed(1)('table', /^table/),
    headZeroed(HEADS)('attention:', /^layer0\.out\.weight/),
    zeroed('attention', /^layer0\.out\./),
    zeroed('feed-forward', /^layer0\.down\./),
    scaled(0.5)('scale of a normalization', /^layer0\.norm1\.weight/),
    scaled(0.5)('last layer', /^pooler\.weight/),
    quarterZeroed(1)('last layer', /^pooler\./),
    shifted(3)('last bias', /^pooler\.bias/),
    negated('middle layer', /^layer0\.up\.weight/),
    shuffled('middle layer', /^layer0\.down\.weight/),
    shuffled('positions', /^positions/),
    othersWeights,
  ],
  sample: (stream) => new Map([['input_ids', integersBelow(stream, VOCABULARY, [1, LENGTH])]]),
};

const integersBelow = (stream: RandomStream, count: number, shape: readonly number[]): SampleTensor =>
  longs(
    shape,
    Array.from({ length: shape.reduce((product, size) => product * size, 1) }, () => stream.below(count)),
  );

/** The largest negative number that exporters add or put in the place of a score. */
export const HIDDEN = -1e4;

/** Features and a mask to logits of every frame; `maskOver` declares the input of the mask. */
function masked(
  name: string,
  maskOver: (network: VariantNetwork) => Mask,
  maskOf: (isOn: Uint8Array) => SampleTensor,
): Kind {
  return {
    name,
    define: (network) => {
      const features = network.input('features', 'float32', [1, LENGTH, WIDTH]);
      const mask = maskOver(network);
      let x = biased(network, 'projection', features, WIDTH, WIDTH, 1);
      x = encoderLayer(network, 'layer0', x, mask);
      x = encoderLayer(network, 'layer1', x, mask);
      network.node('Identity', 'output', [biased(network, 'head', x, WIDTH, 12, 4)], {}, 'logits');
      network.output('logits', 'float32', [1, LENGTH, 12]);
    },
    faults: [
      scaled(0.5)('last layer', /^head\.weight/),
      quarterZeroed(1)('last layer', /^head\./),
      zeroed('last layer', /^head\.weight/),
      shifted(3)('last bias', /^head\.bias/),
      zeroed('attention', /^layer0\.out\./),
      zeroed('queries', /^layer0\.q\./),
      layersSwapped('layer0.', 'layer1.'),
      zeroed('feed-forward', /^layer1\.down\./),
      quarterZeroed(0)('heads of attention', /^layer1\.out\.weight/),
      scaled(0.5)('scale of a normalization', /^layer0\.norm1\.weight/),
      scaled(0.5)('scale of the last normalization', /^layer1\.norm2\.weight/),
      negated('middle layer', /^layer0\.up\.weight/),
      shuffled('middle layer', /^layer1\.v\.weight/),
      scaled(0.7)('first layer', /^projection\.weight/),
      othersWeights,
    ],
    sample: (stream) => {
      const length = LENGTH / 2 + stream.below(LENGTH / 2 + 1);
      return new Map<string, SampleTensor>([
        ['features', floats([1, LENGTH, WIDTH], normals(stream, LENGTH * WIDTH))],
        ['mask', maskOf(Uint8Array.from({ length: LENGTH }, (_, at) => Number(at < length)))],
      ]);
    },
  };
}

export const maskByWhere = masked(
  'mask by Where',
  (network) => {
    const mask = network.graph.input('mask', 'bool', [1, LENGTH]);
    const wide = network.node('Unsqueeze', 'mask.wide', [mask, network.integers([1, 2])]);
    return (name, scores) => network.node('Where', name, [wide, scores, network.scalar(HIDDEN)]);
  },
  (bytes) => ({ dtype: 'bool', shape: [1, LENGTH], bytes }),
);

export const maskByAdd = masked(
  'mask by Add',
  (network) => {
    const mask = network.cast('mask.float', network.input('mask', 'int64', [1, LENGTH]), 'float32');
    const off = network.node('Sub', 'mask.off', [network.scalar(1), mask]);
    const least = network.node('Mul', 'mask.least', [off, network.scalar(HIDDEN)]);
    const wide = network.node('Unsqueeze', 'mask.wide', [least, network.integers([1, 2])]);
    return (name, scores) => network.node('Add', name, [scores, wide]);
  },
  (isOn) => longs([1, LENGTH], [...isOn]),
);

const BYTES = 257;
const SPEAKERS = 10;
const FRAMES = 32;

/** Bytes as one-hot rows by Equal with a range, as JAX writes them, and an index behind the wrap that tf2onnx writes before Gather. */
export const oneHotByEqual: Kind = {
  name: 'one-hot by Equal',
  define: (network) => {
    const bytes = network.graph.input('bytes', 'int32', [1, FRAMES]);
    const speaker = network.input('speaker', 'int64', [1]);
    const range = network.graph.initializer('range', {
      dtype: 'int32',
      shape: [BYTES],
      bytes: new Uint8Array(Int32Array.from({ length: BYTES }, (_, i) => i).buffer),
    });
    const wide = network.node('Unsqueeze', 'wide', [bytes, network.integers([2])]);
    const isByte = network.node('Equal', 'equal', [wide, range]);
    const rows = linear(network, 'table', network.cast('hot', isByte, 'float32'), BYTES, WIDTH, {
      gain: BYTES,
      bias: false,
    });
    const isNegative = network.cast(
      'negative',
      network.node('Less', 'less', [speaker, network.integer(0)]),
      'int64',
    );
    const wrap = network.node('Mul', 'wrap', [isNegative, network.integer(SPEAKERS)]);
    const index = network.node('Add', 'index', [speaker, wrap]);
    const speakers = network.weight('speakers.weight', [SPEAKERS, WIDTH], { deviation: 1 });
    const voice = network.node('Gather', 'voice', [speakers, index], { axis: 0 });
    const spoken = network.node('Add', 'spoken', [
      rows,
      network.node('Unsqueeze', 'one', [voice, network.integers([1])]),
    ]);
    let x = network.node('Transpose', 'channels', [spoken], { perm: [0, 2, 1] });
    const shape = { from: WIDTH, to: WIDTH, kernel: [3], padding: 1, gain: 1 } as const;
    x = silu(network, 'silu', conv(network, 'conv1', x, shape));
    x = conv(network, 'conv2', x, { ...shape, to: 16, gain: 6 });
    network.node('Identity', 'output', [x], {}, 'logits');
    network.output('logits', 'float32', [1, 16, FRAMES]);
  },
  faults: [
    rowsTurned(2)('table', /^table/),
    rowsTurned()('table', /^table/),
    rowsZeroed(128)('table', /^table/),
    rowsZeroed(2)('table', /^table/),
    shuffled('table', /^table/),
    rowsTurned(2)('speakers', /^speakers/),
    rowsZeroed(5)('speakers', /^speakers/),
    rowsTurned()('speakers', /^speakers/),
    scaled(0.5)('last layer', /^conv2\.weight/),
    quarterZeroed(0)('last layer', /^conv2\.weight/),
    moved(1)('last bias', /^conv2\.bias/),
    negated('first layer', /^conv1\.weight/),
    othersWeights,
  ],
  sample: (stream) => {
    const bytes = Int32Array.from({ length: FRAMES }, () => stream.below(BYTES));
    return new Map<string, SampleTensor>([
      ['bytes', { dtype: 'int32', shape: [1, FRAMES], bytes: new Uint8Array(bytes.buffer) }],
      ['speaker', integersBelow(stream, SPEAKERS, [1])],
    ]);
  },
};

const SAMPLES = 512;
const HOP = 16;

/** Speech in each frame, by one of two filter banks: `If(sr == 16000)`. */
export const branchByRate: Kind = {
  name: 'If by a rate',
  define: (network) => {
    const audio = network.input('audio', 'float32', [1, SAMPLES]);
    const rate = network.input('sr', 'int64', []);
    const wave = network.node('Unsqueeze', 'wave', [audio, network.integers([1])]);
    const isWide = network.node('Equal', 'is16k', [rate, network.integer(16000)]);
    const branch = (name: string, kernel: number) => {
      const weight = network.weight(`${name}.weight`, [16, 1, kernel], { deviation: 10 / Math.sqrt(kernel) });
      const bias = network.weight(`${name}.bias`, [16], { deviation: 0.2 });
      const body = new GraphBuilder(name);
      const outputs = [`${name}.out`];
      const pad = (kernel - HOP) / 2;
      body.node('Conv', {
        name,
        inputs: [wave, weight, bias],
        outputs,
        attributes: {
          kernel_shape: attribute.ints([kernel]),
          strides: attribute.ints([HOP]),
          pads: attribute.ints([pad, pad]),
        },
      });
      body.output(`${name}.out`, 'float32', [1, 16, SAMPLES / HOP]);
      return attribute.body(body);
    };
    const bank = network.node('If', 'bank', [isWide], {
      then_branch: branch('bank16k', 32),
      else_branch: branch('bank8k', 16),
    });
    let x = network.node('Relu', 'relu1', [bank]);
    x = conv(network, 'conv', x, { from: 16, to: 24, kernel: [3], padding: 1, gain: 2 });
    x = network.node('Relu', 'relu2', [x]);
    const weight = network.weight('head.weight', [1, 24, 1], { deviation: 2.5 / Math.sqrt(12) });
    const bias = network.weight('head.bias', [1], { mean: -0.5, deviation: 0.3 });
    const logits = network.node('Conv', 'head', [x, weight, bias], { kernel_shape: [1] });
    network.node('Sigmoid', 'output', [logits], {}, 'speech');
    network.output('speech', 'float32', [1, 1, SAMPLES / HOP]);
  },
  faults: [
    zeroed('branch of 16 kHz', /^bank16k/),
    zeroed('branch of 8 kHz', /^bank8k/),
    scaled(0.3)('branch of 16 kHz', /^bank16k\.weight/),
    scaled(0.3)('branch of 8 kHz', /^bank8k\.weight/),
    shuffled('branch of 16 kHz', /^bank16k\.weight/),
    quarterZeroed(0)('branch of 8 kHz', /^bank8k\./),
    scaled(0.5)('last layer', /^head\.weight/),
    zeroed('last layer', /^head\.weight/),
    moved(-2)('last bias', /^head\.bias/),
    negated('middle layer', /^conv\.weight/),
    shuffled('middle layer', /^conv\.weight/),
    othersWeights,
  ],
  sample: (stream) =>
    new Map([
      ['audio', sound(stream, SAMPLES)],
      ['sr', longs([], [stream.oneOf([16000, 8000])])],
    ]),
};

const STEPS = 20;
const STATE = 32;
const FEATURES = 16;

/** A step of a stream: LSTM with its state in and out. */
export const recurrent: Kind = {
  name: 'RNN with state',
  define: (network) => {
    const features = network.input('features', 'float32', [1, STEPS, FEATURES]);
    const h = network.input('h', 'float32', [1, 1, STATE]);
    const c = network.input('c', 'float32', [1, 1, STATE]);
    const x = network.node('Transpose', 'time', [features], { perm: [1, 0, 2] });
    const gates = 4 * STATE;
    const weights = [
      network.weight('lstm.weight', [1, gates, FEATURES], { deviation: 2 / Math.sqrt(FEATURES) }),
      network.weight('lstm.recurrent', [1, gates, STATE], { deviation: 4 / Math.sqrt(STATE) }),
      network.weight('lstm.bias', [1, 2 * gates], { deviation: 0.3 }),
    ];
    const [y, hn, cn] = network.nodes('LSTM', 'lstm', [x, ...weights, '', h, c], { hidden_size: STATE }, 3);
    network.node('Identity', 'state.h', [hn!], {}, 'hn');
    network.node('Identity', 'state.c', [cn!], {}, 'cn');
    const rows = network.node('Reshape', 'rows', [y!, network.integers([1, STEPS, STATE])]);
    network.node('Identity', 'output', [biased(network, 'head', rows, STATE, 12, 8)], {}, 'logits');
    network.output('logits', 'float32', [1, STEPS, 12]);
    network.output('hn', 'float32', [1, 1, STATE]);
    network.output('cn', 'float32', [1, 1, STATE]);
  },
  faults: [
    scaled(0.8)('recurrent weights', /^lstm\.recurrent/),
    scaled(0.5)('recurrent weights', /^lstm\.recurrent/),
    zeroed('recurrent weights', /^lstm\.recurrent/),
    scaled(0.7)('input weights', /^lstm\.weight/),
    quarterZeroed(1)('gates', /^lstm\./),
    rewritten('hidden state stale', /^state\.h$/, () => ({ inputs: ['h'] })),
    rewritten('cell state stale', /^state\.c$/, () => ({ inputs: ['c'] })),
    rewritten('state ignored', /^lstm$/, ({ inputs }) => ({ inputs: inputs.slice(0, 4) })),
    shifted(3)('biases', /^lstm\.bias/),
    shuffled('recurrent weights', /^lstm\.recurrent/),
    negated('recurrent weights', /^lstm\.recurrent/),
    scaled(0.5)('last layer', /^head\.weight/),
    quarterZeroed(1)('last layer', /^head\./),
    zeroed('last layer', /^head\.weight/),
    shifted(3)('last bias', /^head\.bias/),
    othersWeights,
  ],
  sample: (stream) =>
    new Map([
      ['features', floats([1, STEPS, FEATURES], normals(stream, STEPS * FEATURES))],
      ['h', floats([1, 1, STATE], normals(stream, STATE, 0.4))],
      ['c', floats([1, 1, STATE], normals(stream, STATE, 0.8))],
    ]),
};

const WAVE = 4000;

/** Audio in, cleaner audio out. */
export const waveform: Kind = {
  name: 'waveform',
  define: (network) => {
    const audio = network.input('audio', 'float32', [1, WAVE]);
    const wave = network.node('Unsqueeze', 'wave', [audio, network.integers([1])]);
    const loud = network.node('Mul', 'loud', [wave, network.scalar(4)]);
    const down1 = conv(network, 'down1', loud, {
      from: 1,
      to: 12,
      kernel: [16],
      stride: 4,
      padding: 6,
      gain: 2,
    });
    const fine = gelu(network, 'gelu1', down1);
    const down2 = conv(network, 'down2', fine, {
      from: 12,
      to: 24,
      kernel: [8],
      stride: 4,
      padding: 2,
      gain: 2,
    });
    const coarse = gelu(network, 'gelu2', down2);
    const middle = conv(network, 'middle', coarse, { from: 24, to: 24, kernel: [3], padding: 1, gain: 2 });
    const joined = network.node('Add', 'join', [coarse, middle]);
    const up1 = raised(network, 'up1', gelu(network, 'gelu3', joined), 24, 12, 8);
    const both = network.node('Add', 'skip', [up1, fine]);
    const up2 = raised(network, 'up2', both, 12, 1, 16);
    const quiet = network.node('Mul', 'quiet', [up2, network.scalar(0.5)]);
    const bounded = network.node('Tanh', 'tanh', [quiet]);
    network.node('Squeeze', 'output', [bounded, network.integers([1])], {}, 'enhanced');
    network.output('enhanced', 'float32', [1, WAVE]);
  },
  faults: [
    scaled(0.5)('last layer', /^up2\.weight/),
    quarterZeroed(0)('last layer', /^up2\.weight/),
    zeroed('last layer', /^up2\.weight/),
    moved(0.3)('last bias', /^up2\.bias/),
    zeroed('branch', /^middle\./),
    zeroed('deep branch', /^up1\./),
    withAttributes('padding of the first layer SAME_LOWER', /^down1$/, { pads: [8, 4] }),
    scaled(0.7)('first layer', /^down1\.weight/),
    scaled(0.5)('middle layer', /^down2\.weight/),
    negated('middle layer', /^middle\.weight/),
    negated('last layer', /^up2\.weight/),
    shuffled('middle layer', /^down2\.weight/),
    othersWeights,
  ],
  sample: (stream) => new Map([['audio', sound(stream, WAVE)]]),
};

/** A transposed convolution that makes four values of each. */
function raised(
  network: VariantNetwork,
  name: string,
  x: string,
  from: number,
  to: number,
  kernel: number,
): string {
  const weight = network.weight(`${name}.weight`, [from, to, kernel], {
    deviation: Math.sqrt(4 / (from * kernel)),
  });
  const bias = network.weight(`${name}.bias`, [to], { deviation: 0.1 });
  const pad = (kernel - 4) / 2;
  return network.node('ConvTranspose', name, [x, weight, bias], {
    kernel_shape: [kernel],
    strides: [4],
    pads: [pad, pad],
  });
}
