import { attribute } from 'trtforge/onnx';
import { conv, silu } from '../../examples/models/layers.js';
import {
  channelsReversed,
  largestFlattened,
  moved,
  negated,
  othersWeights,
  quarterZeroed,
  scaled,
  setTo,
  shifted,
  shuffled,
  withAttributes,
  zeroed,
} from './faults.js';
import { type Kind, picture } from './kind.js';
import type { VariantNetwork } from './variant-network.js';

/** Pixels of 0 to 1 with mean 0 and deviation 1. */
export function normalised(network: VariantNetwork, x: string): string {
  const centred = network.node('Sub', 'normalise.mean', [x, network.scalar(0.45)]);
  return network.node('Div', 'normalise.deviation', [centred, network.scalar(0.25)]);
}

interface Block {
  readonly from: number;
  readonly to: number;
  readonly stride: number;
}

/** Convolution without change of scale, batch normalization, SiLU. */
function block(network: VariantNetwork, name: string, x: string, { from, to, stride }: Block): string {
  const y = conv(network, `${name}.conv`, x, { from, to, kernel: [3, 3], stride, padding: 1, gain: 2 });
  const vector = (part: string, mean: number, deviation: number) =>
    network.weight(`${name}.bn.${part}`, [to], { mean, deviation });
  const statistics = [
    vector('scale', 1.2, 0.15),
    vector('bias', 0, 0.2),
    vector('mean', 0, 0.2),
    vector('variance', 1, 0.1),
  ];
  const normal = network.node('BatchNormalization', `${name}.bn`, [y, ...statistics], {
    epsilon: attribute.float(1e-5),
  });
  return silu(network, `${name}.silu`, normal);
}

/** A 1x1 convolution whose logits have `deviation`, around `bias`. */
function head(
  network: VariantNetwork,
  name: string,
  x: string,
  { from, to, bias, deviation }: { from: number; to: number; bias: number; deviation: number },
): string {
  const weight = network.weight(`${name}.weight`, [to, from, 1, 1], {
    deviation: deviation / Math.sqrt(from / 2),
  });
  const offsets = network.weight(`${name}.bias`, [to], { mean: bias, deviation: 0.3 });
  return network.node('Conv', name, [x, weight, offsets], { kernel_shape: [1, 1] });
}

/** Features with mean 0 and deviation 1 over a sample: scores of trained detectors are spread, those of random weights are all 1 by some seeds. */
function ofOneSize(network: VariantNetwork, name: string, x: string, shape: readonly number[]): string {
  const one = (values: number) => network.computed(`${name}.${values}`, [1], () => values);
  const flat = network.node('Reshape', `${name}.flat`, [x, network.integers([1, 1, -1])]);
  const normal = network.node('InstanceNormalization', name, [flat, one(1), one(0)]);
  return network.node('Reshape', `${name}.shaped`, [normal, network.integers(shape)]);
}

/** Cells along a side of a map, and the pixels that each stands for. */
export interface Scale {
  readonly grid: number;
  readonly stride: number;
}

/** Boxes [1, 4, places] in pixels, centre and size, of a regression [1, 4, places], as YOLOv5 decodes them. */
export function boxesOf(
  network: VariantNetwork,
  name: string,
  offsets: string,
  { grid, stride }: Scale,
): string {
  const places = grid ** 2;
  const shares = network.node('Sigmoid', `${name}.shares`, [offsets]);
  const [centre, size] = network.nodes(
    'Split',
    `${name}.split`,
    [shares, network.integers([2, 2])],
    { axis: 1 },
    2,
  );
  const cells = network.computed(`${name}.cells`, [1, 2, places], (i) =>
    i < places ? i % grid : Math.floor((i - places) / grid),
  );
  const moved = network.node('Add', `${name}.centre`, [centre!, cells]);
  const pixels = network.node('Mul', `${name}.pixels`, [moved, network.scalar(stride)]);
  const doubled = network.node('Mul', `${name}.double`, [size!, network.scalar(2)]);
  const squared = network.node('Mul', `${name}.square`, [doubled, doubled]);
  const sized = network.node('Mul', `${name}.size`, [squared, network.scalar(stride)]);
  return network.node('Concat', `${name}.boxes`, [pixels, sized], { axis: 1 });
}

const SIZE = 64;
const CLASSES = 6;
/** Of a 640 picture. */
const SCALES: readonly Scale[] = [
  { grid: 8, stride: 80 },
  { grid: 4, stride: 160 },
];
const PLACES = SCALES.reduce((sum, { grid }) => sum + grid ** 2, 0);

/** Boxes [1, 4, places] in pixels of 0 to 640 (centre, size) and scores [1, classes, places]. */
function detections(network: VariantNetwork): { boxes: string; scores: string } {
  let x = normalised(network, network.input('images', 'float32', [1, 3, SIZE, SIZE]));
  x = block(network, 'stem', x, { from: 3, to: 8, stride: 2 });
  x = block(network, 'stage1', x, { from: 8, to: 16, stride: 2 });
  const fine = block(network, 'stage2', x, { from: 16, to: 32, stride: 2 });
  const coarse = block(network, 'stage3', fine, { from: 32, to: 32, stride: 2 });
  const parts = [fine, coarse].map((features, scale) => {
    const { grid, stride } = SCALES[scale]!;
    const name = `head${scale}`;
    const places = grid ** 2;
    const flat = (which: string, y: string, channels: number) =>
      network.node('Reshape', `${name}.${which}.flat`, [y, network.integers([1, channels, places])]);
    const normal = ofOneSize(network, `${name}.norm`, features, [1, 32, grid, grid]);
    const logits = head(network, `${name}.cls`, normal, {
      from: 32,
      to: CLASSES,
      bias: -2.5,
      deviation: 1.4,
    });
    const offsets = head(network, `${name}.box`, normal, { from: 32, to: 4, bias: 0, deviation: 0.7 });
    const scores = network.node('Sigmoid', `${name}.scores`, [flat('cls', logits, CLASSES)]);
    return { boxes: boxesOf(network, name, flat('box', offsets, 4), { grid, stride }), scores };
  });
  const joined = (which: 'boxes' | 'scores') =>
    network.node(
      'Concat',
      which,
      parts.map((part) => part[which]),
      { axis: 2 },
    );
  return { boxes: joined('boxes'), scores: joined('scores') };
}

const detectorFaults = [
  scaled(0.5)('class heads', /^head\d\.cls\.weight/),
  zeroed('class heads and biases', /^head\d\.cls/),
  shifted(3)('class biases', /^head\d\.cls\.bias/),
  setTo(-30)('class biases (scores all 0)', /^head\d\.cls\.bias/),
  quarterZeroed(0)('class heads', /^head\d\.cls\.weight/),
  quarterZeroed(0)('coarse class head', /^head1\.cls\.weight/),
  zeroed('coarse box head', /^head1\.box\.weight/),
  scaled(0.5)('box heads', /^head\d\.box\.weight/),
  scaled(0.7)('first layer', /^stem\.conv\.weight/),
  scaled(0.5)('scale of a normalization', /^stage2\.bn\.scale/),
  negated('middle layer', /^stage1\.conv\.weight/),
  shuffled('middle layer', /^stage2\.conv\.weight/),
  largestFlattened('a scale of a normalization', /^stage2\.bn\.scale/),
  othersWeights,
];

export const detector: Kind = {
  name: 'detector',
  define: (network) => {
    const { boxes, scores } = detections(network);
    network.node('Concat', 'output', [boxes, scores], { axis: 1 }, 'output0');
    network.output('output0', 'float32', [1, 4 + CLASSES, PLACES]);
  },
  faults: detectorFaults,
  channelsHaveScales: true,
  sample: (stream) => new Map([['images', picture(stream, 3, SIZE)]]),
};

const KEPT = 24;

/** The best boxes of a detector, chosen in the graph: what NMS-free exports have. */
export const endToEndDetector: Kind = {
  name: 'end-to-end detector',
  unordered: detector,
  define: (network) => {
    const { boxes, scores } = detections(network);
    const best = network.node('ReduceMax', 'best', [scores, network.integers([1])], { keepdims: 0 });
    const kind = network.node('ArgMax', 'kind', [scores], { axis: 1, keepdims: 0 });
    const [top, places] = network.nodes('TopK', 'top', [best, network.integers([KEPT])], { axis: 1 }, 2);
    const rows = network.node('Transpose', 'rows', [boxes], { perm: [0, 2, 1] });
    const wide = network.node('Unsqueeze', 'places', [places!, network.integers([2])]);
    const wider = network.node('Expand', 'four', [wide, network.integers([1, KEPT, 4])]);
    network.node('GatherElements', 'kept', [rows, wider], { axis: 1 }, 'boxes_out');
    network.node('Identity', 'score', [top!], {}, 'scores_out');
    network.node('GatherElements', 'class', [kind, places!], { axis: 1 }, 'classes_out');
    const isGood = network.node('Greater', 'good', [top!, network.scalar(0.25)]);
    const counted = network.cast('counted', isGood, 'int64');
    network.node('ReduceSum', 'count', [counted, network.integers([1])], { keepdims: 0 }, 'num_detections');
    network.output('boxes_out', 'float32', [1, KEPT, 4]);
    network.output('scores_out', 'float32', [1, KEPT]);
    network.output('classes_out', 'int64', [1, KEPT]);
    network.output('num_detections', 'int64', [1]);
  },
  faults: detectorFaults,
  sample: (stream) => new Map([['images', picture(stream, 3, SIZE)]]),
};

const LABELS = 20;

export const classifier: Kind = {
  name: 'classifier',
  define: (network) => {
    let x = normalised(network, network.input('pixels', 'float32', ['batch', 3, 32, 32]));
    x = block(network, 'stem', x, { from: 3, to: 16, stride: 2 });
    x = block(network, 'stage1', x, { from: 16, to: 24, stride: 2 });
    const branch = block(network, 'branch', x, { from: 24, to: 24, stride: 1 });
    x = network.node('Add', 'join', [x, branch]);
    x = block(network, 'stage2', x, { from: 24, to: 32, stride: 2 });
    x = network.node('Flatten', 'flatten', [x], { axis: 1 });
    const weight = network.weight('fc.weight', [512, LABELS], { deviation: 1.4 / Math.sqrt(256) });
    const product = network.node('MatMul', 'fc', [x, weight]);
    const bias = network.weight('fc.bias', [LABELS], { deviation: 0.5 });
    const logits = network.node('Add', 'fc.sum', [product, bias]);
    network.node('Softmax', 'softmax', [logits], { axis: -1 }, 'probabilities');
    network.output('probabilities', 'float32', ['batch', LABELS]);
  },
  faults: [
    scaled(0.5)('last layer', /^fc\.weight/),
    quarterZeroed(1)('last layer', /^fc\.weight/),
    shifted(3)('scale of a normalization', /^stage2\.bn\.scale/),
    rowOfBias(),
    channelsReversed('stem (BGR for RGB)', /^stem\.conv\.weight/),
    zeroed('branch', /^branch\./),
    zeroed('last layer', /^fc\.weight/),
    scaled(0.7)('first layer', /^stem\.conv\.weight/),
    scaled(0.5)('scale of a normalization', /^stage1\.bn\.scale/),
    negated('middle layer', /^stage1\.conv\.weight/),
    shuffled('middle layer', /^stage2\.conv\.weight/),
    shuffled('last layer', /^fc\.weight/),
    othersWeights,
  ],
  sample: (stream) => new Map([['pixels', picture(stream, 3, 32)]]),
};

/** A bias shifted for half of the labels: the same shift for all would change no probability. */
function rowOfBias() {
  const edit = (values: Float32Array) => {
    for (let i = 0; i < values.length; i += 2) values[i]! += 1.5;
  };
  return { name: 'every other bias shifted by 3 sigma', edits: [{ weight: /^fc\.bias/, edit }] };
}

/** Where something is: nearly everywhere exactly 0. */
export const heatMap: Kind = {
  name: 'heat map',
  define: (network) => {
    const input = normalised(network, network.input('image', 'float32', [1, 1, SIZE, SIZE]));
    const full = block(network, 'stem', input, { from: 1, to: 8, stride: 1 });
    let x = block(network, 'down', full, { from: 8, to: 16, stride: 2 });
    x = block(network, 'middle', x, { from: 16, to: 16, stride: 1 });
    x = network.node('Resize', 'up', [x, '', network.computed('up.scales', [4], (i) => (i < 2 ? 1 : 2))], {
      mode: 'nearest',
    });
    const both = network.node('Concat', 'skip', [x, full], { axis: 1 });
    const logits = head(network, 'head', both, { from: 24, to: 1, bias: -0.5, deviation: 1.6 });
    network.node('Relu', 'relu', [logits], {}, 'map');
    network.output('map', 'float32', [1, 1, SIZE, SIZE]);
  },
  faults: [
    scaled(0.5)('last layer', /^head\.weight/),
    scaled(0.62)('non-zeros: last layer and bias', /^head\./),
    quarterZeroed(1)('last layer', /^head\.weight/),
    moved(-0.5)('bias', /^head\.bias/),
    moved(1)('bias', /^head\.bias/),
    zeroed('last layer', /^head\.weight/),
    withAttributes('resize linear for nearest', /^up$/, { mode: 'linear' }),
    withAttributes('padding SAME_LOWER for SAME_UPPER', /^down\.conv$/, { pads: [2, 2, 0, 0] }),
    zeroed('branch', /^middle\.conv/),
    scaled(0.7)('first layer', /^stem\.conv\.weight/),
    scaled(0.5)('scale of a normalization', /^middle\.bn\.scale/),
    negated('middle layer', /^down\.conv\.weight/),
    shuffled('middle layer', /^middle\.conv\.weight/),
    othersWeights,
  ],
  sample: (stream) => new Map([['image', picture(stream, 1, SIZE)]]),
};

const QUANTIZED_STEPS = { input: 0.03, hidden: 0.02 } as const;

/** A network with Q/DQ pairs before every product and on its weights, as TensorRT's quantizer leaves them. */
export const quantizedNetwork: Kind = {
  name: 'Q/DQ network',
  define: (network) => {
    const zero = network.graph.initializer('zero', { dtype: 'int8', shape: [], bytes: new Uint8Array(1) });
    const pair = (name: string, x: string, step: number) => {
      const scale = network.scalar(step);
      const codes = network.node('QuantizeLinear', `${name}.q`, [x, scale, zero]);
      return network.node('DequantizeLinear', `${name}.dq`, [codes, scale, zero]);
    };
    const layer = (name: string, x: string, from: number, to: number, stride: number, step: number) => {
      const weight = network.weight(`${name}.weight`, [to, from, 3, 3], {
        deviation: Math.sqrt(2 / (9 * from)),
      });
      const scale = network.scalar(Math.sqrt(2 / (9 * from)) / 32);
      const codes = network.node('QuantizeLinear', `${name}.weight.q`, [weight, scale, zero]);
      const kernel = network.node('DequantizeLinear', `${name}.weight.dq`, [codes, scale, zero]);
      const bias = network.weight(`${name}.bias`, [to], { deviation: 0.2 });
      return network.node('Conv', name, [pair(`${name}.input`, x, step), kernel, bias], {
        kernel_shape: [3, 3],
        strides: [stride, stride],
        pads: [1, 1, 1, 1],
      });
    };
    const { input, hidden } = QUANTIZED_STEPS;
    let x = normalised(network, network.input('image', 'float32', [1, 3, 32, 32]));
    x = network.node('Relu', 'relu1', [layer('conv1', x, 3, 16, 2, input)]);
    x = network.node('Relu', 'relu2', [layer('conv2', x, 16, 24, 2, hidden)]);
    const branch = network.node('Relu', 'relu3', [layer('conv3', x, 24, 24, 1, hidden)]);
    x = network.node('Add', 'join', [x, branch]);
    const last = layer('conv4', x, 24, 12, 1, hidden);
    network.node('Identity', 'output', [last], {}, 'logits');
    network.output('logits', 'float32', [1, 12, 8, 8]);
  },
  faults: [
    scaled(0.5)('last layer', /^conv4\.weight/),
    quarterZeroed(0)('last layer', /^conv4\.weight/),
    zeroed('last layer', /^conv4\.weight/),
    shifted(3)('last bias', /^conv4\.bias/),
    zeroed('branch', /^conv3\./),
    scaled(0.7)('first layer', /^conv1\.weight/),
    negated('middle layer', /^conv2\.weight/),
    shuffled('middle layer', /^conv3\.weight/),
    shifted(3)('middle bias', /^conv2\.bias/),
    scaled(0.5)('middle layer', /^conv2\.weight/),
    othersWeights,
  ],
  sample: (stream) => new Map([['image', picture(stream, 3, 32)]]),
  without: ['int8', 'fp8'],
};
