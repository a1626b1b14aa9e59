import { attribute } from 'trtforge/onnx';
import { conv } from '../../examples/models/layers.js';
import type { RandomStream } from '../../examples/models/random.js';
import {
  epsilonsOf,
  type Fault,
  layersSwapped,
  othersWeights,
  quarterZeroed,
  rewritten,
  rowsTurned,
  scaled,
  withAttributes,
  zeroed,
} from './faults.js';
import { floats, type Kind, normals, type SampleTensor } from './kind.js';
import type { VariantNetwork } from './variant-network.js';

const RATE = 8000;
const LENGTH = 4096;
const WINDOW = 128;
const HOP = 64;
const FRAMES = (LENGTH - WINDOW) / HOP + 1;
const BINS = WINDOW / 2 + 1;
const BANDS = 20;
const WIDTH = 24;
const PHONES = 6;

/** Syllables of a voice, each a vowel of two formants or a hiss, with pauses of faint noise between: [1, LENGTH], at most about `peak`. */
function speech(stream: RandomStream, peak: number): SampleTensor {
  const values = normals(stream, LENGTH, 0.001);
  const pitch = 90 + stream.below(120);
  for (let from = stream.below(600); from < LENGTH; ) {
    const length = 500 + stream.below(900);
    const isVoiced = stream.below(4) > 0;
    const loud = 0.1 + stream.below(100) / 250;
    const formants = [300 + stream.below(500), 900 + stream.below(1500)];
    const hiss = normals(stream, length, 0.1);
    for (let i = 0; i < length && from + i < LENGTH; i++) {
      let value = hiss[i]! - (i > 0 ? hiss[i - 1]! : 0);
      if (isVoiced) {
        value *= 0.05;
        for (let harmonic = 1; harmonic * pitch < RATE / 2; harmonic++) {
          const nearest = Math.min(...formants.map((formant) => Math.abs(harmonic * pitch - formant)));
          value +=
            0.6 * Math.exp(-nearest / 150) * Math.sin((2 * Math.PI * harmonic * pitch * (from + i)) / RATE);
        }
      }
      values[from + i]! += loud * Math.sin((Math.PI * i) / length) ** 2 * value;
    }
    from += length + stream.below(700);
  }
  return floats(
    [1, LENGTH],
    values.map((value) => peak * Math.max(-1, Math.min(1, value))),
  );
}

/** Triangles of equal width in mel, over the bins. */
function melAt(bin: number, band: number): number {
  const mel = (hertz: number) => 2595 * Math.log10(1 + hertz / 700);
  const place = (mel((bin * RATE) / WINDOW) / mel(RATE / 2)) * (BANDS + 1);
  return Math.max(0, 1 - Math.abs(place - band - 1)) + 1e-3;
}

/** Sound to the logarithm of its energies, of about 0 and 1; convolutions over time; a score for each phone in each frame. `level` is the usual size of the sound. */
function phones(network: VariantNetwork, level: number): void {
  const audio = network.input('audio', 'float32', [1, LENGTH]);
  const wave = network.node('Unsqueeze', 'wave', [audio, network.integers([1])]);
  const kernel = network.weight('stft.weight', [2 * BINS, 1, WINDOW], { deviation: 0 }, (_, i) => {
    const [row, t] = [Math.floor(i / WINDOW), i % WINDOW];
    const phase = (2 * Math.PI * (row % BINS) * t) / WINDOW;
    return (row < BINS ? Math.cos(phase) : -Math.sin(phase)) * Math.sin((Math.PI * t) / WINDOW) ** 2;
  });
  const spectrum = network.node('Conv', 'stft', [wave, kernel], { kernel_shape: [WINDOW], strides: [HOP] });
  const squares = network.node('Mul', 'squares', [spectrum, spectrum]);
  const parts = network.nodes('Split', 'parts', [squares, network.integers([BINS, BINS])], { axis: 1 }, 2);
  const power = network.node('Add', 'power', parts);
  const rows = network.node('Transpose', 'rows', [power], { perm: [0, 2, 1] });
  const bank = network.weight('mel.weight', [BINS, BANDS], { deviation: 0 }, (_, i) =>
    melAt(Math.floor(i / BANDS), i % BANDS),
  );
  const energies = network.node('MatMul', 'mel', [rows, bank]);
  const floor = network.node('Max', 'floor', [energies, network.scalar(level > 1 ? 1 : 1e-3)]);
  const logs = network.node('Log', 'log', [floor]);
  const centred = network.node('Sub', 'centred', [logs, network.scalar(Math.log(0.1 * level ** 2))]);
  const scaledLogs = network.node('Div', 'scaled', [centred, network.scalar(2.5)]);
  let x = network.node('Transpose', 'channels', [scaledLogs], { perm: [0, 2, 1] });
  for (const [index, name] of ['conv1', 'conv2', 'conv3'].entries()) {
    const from = index === 0 ? BANDS : WIDTH;
    const y = conv(network, name, x, { from, to: WIDTH, kernel: [3], padding: 1, gain: 0.01 });
    const vector = (part: string, mean: number, deviation: number) =>
      network.weight(`${name}.bn.${part}`, [WIDTH], { mean, deviation });
    const statistics = [vector('scale', 1, 0.1), vector('bias', 0, 0.2), vector('mean', 0, 0.02)];
    const normal = network.node(
      'BatchNormalization',
      `${name}.bn`,
      [y, ...statistics, vector('variance', 0.005, 0.0005)],
      { epsilon: attribute.float(1e-5) },
    );
    x = network.node('Relu', `${name}.relu`, [normal]);
  }
  const weight = network.weight('head.weight', [PHONES, WIDTH, 1], { deviation: 3 / Math.sqrt(WIDTH) });
  const bias = network.weight('head.bias', [PHONES], { mean: -2, deviation: 1 });
  const logits = network.node('Conv', 'head', [x, weight, bias], { kernel_shape: [1] });
  network.node('Sigmoid', 'scores', [logits], {}, 'phones');
  network.output('phones', 'float32', [1, PHONES, FRAMES]);
}

const speechFaults: readonly Fault[] = [
  epsilonsOf(/\.bn$/),
  layersSwapped('conv2', 'conv3'),
  withAttributes('padding all before', /^conv2$/, { pads: [2, 0] }),
  rewritten('log10 for ln', /^scaled$/, ({ inputs }, network) => ({
    inputs: [inputs[0]!, network.scalar(2.5 * Math.LN10)],
  })),
  rewritten('amplitudes for power', /^mel$/, ({ inputs }, network) => ({
    inputs: [network.node('Sqrt', 'wrong.root', [inputs[0]!]), inputs[1]!],
  })),
  rowsTurned()('mel filters', /^mel\.weight/),
  quarterZeroed(0)('phones', /^head\.weight/),
  zeroed('last bias', /^head\.bias/),
  scaled(0.8)('last layer', /^head\.weight/),
  rewritten('scores x 0.7', /^scores$/, ({ inputs }, network) => ({
    opType: 'Mul',
    inputs: [network.node('Sigmoid', 'wrong.scores', inputs), network.scalar(0.7)],
  })),
  rewritten('all scores 0', /^scores$/, ({ inputs }, network) => ({
    opType: 'Mul',
    inputs: [inputs[0]!, network.scalar(0)],
  })),
  rewritten('no window', /^stft$/, ({ inputs }, network) => {
    const flat = network.computed('wrong.kernel', [2 * BINS, 1, WINDOW], (i) => {
      const [row, t] = [Math.floor(i / WINDOW), i % WINDOW];
      const phase = (2 * Math.PI * (row % BINS) * t) / WINDOW;
      return row < BINS ? Math.cos(phase) : -Math.sin(phase);
    });
    return { inputs: [inputs[0]!, flat] };
  }),
  othersWeights,
];

export const phonesOfSound: Kind = {
  name: 'phones by log-mel',
  define: (network) => phones(network, 1),
  faults: speechFaults,
  sample: (stream) => new Map([['audio', speech(stream, 1)]]),
  uncoded: [/^stft$/, /^mel$/],
  // Off by 10 % of the scores.
  without: ['fp8'],
};

/** The largest of 16 bits: energies of such sound are beyond FP16's range. */
const INT16 = 32767;

export const phonesOfInt16: Kind = {
  name: 'phones by log-mel of int16',
  define: (network) => phones(network, INT16),
  faults: speechFaults.slice(0, 2),
  sample: (stream) => new Map([['audio', speech(stream, INT16)]]),
  uncoded: [/^stft$/, /^mel$/],
  // Off by 11 % of the scores; the twin has TF32's mantissa in FP16's range.
  without: ['fp8', 'tf32'],
};
