import { attribute } from 'trtforge/onnx';
import { conv, silu } from '../../examples/models/layers.js';
import type { RandomStream } from '../../examples/models/random.js';
import {
  channelsReversed,
  epsilonsOf,
  type Fault,
  layersSwapped,
  moved,
  othersWeights,
  rewritten,
  rowAdded,
  rowsTurned,
  rowZeroed,
  scaled,
  setTo,
  withAttributes,
  zeroed,
} from './faults.js';
import type { Kind } from './kind.js';
import { CELL, SCENE_CLASSES, SCENE_SIDE, scene, textureOf } from './scenes.js';
import type { Rewrite, VariantNetwork } from './variant-network.js';
import { boxesOf, normalised, type Scale } from './vision-kinds.js';

/** Of the maps; the first SCENE_CLASSES are the filters of the classes. */
const WIDTH = 32;
const FINE = SCENE_SIDE / CELL / 2;
/** Of a 640 picture. */
const SCALES: readonly [Scale, Scale] = [
  { grid: FINE, stride: 640 / FINE },
  { grid: FINE / 2, stride: 1280 / FINE },
];
const PLACES = SCALES.reduce((sum, { grid }) => sum + grid ** 2, 0);

/** What a class's filter yields where the class is. */
const RESPONSE = 4;

/** Values drawn by a weight's name, with those of the classes in their places. */
function matched(
  network: VariantNetwork,
  name: string,
  shape: readonly number[],
  deviation: number,
  own: (row: number, column: number, at: number) => number | undefined,
): string {
  const [, columns = 1, ...kernel] = shape;
  const inner = kernel.reduce((product, size) => product * size, 1);
  return network.weight(name, shape, { deviation }, (drawn, i) => {
    const [row, column] = [Math.floor(i / (inner * columns)), Math.floor(i / inner) % columns];
    const value = own(row, column, i % inner);
    return value === undefined ? drawn : value + 0.05 * drawn;
  });
}

/** Convolution, batch normalization of a small variance, SiLU. */
function block(
  network: VariantNetwork,
  name: string,
  x: string,
  weight: string,
  attributes: Parameters<VariantNetwork['node']>[3],
): string {
  const y = network.node('Conv', `${name}.conv`, [x, weight], attributes);
  const vector = (part: string, mean: number, deviation: number) =>
    network.weight(`${name}.bn.${part}`, [WIDTH], { mean, deviation });
  const statistics = [
    vector('scale', 0.1, 0.003),
    vector('bias', 0, 0.03),
    vector('mean', 0, 0.003),
    vector('variance', 0.01, 0.0005),
  ];
  const normal = network.node('BatchNormalization', `${name}.bn`, [y, ...statistics], {
    epsilon: attribute.float(1e-5),
  });
  return silu(network, `${name}.silu`, normal);
}

/** The mean of a class's own map, less some of those of others. */
const evidence = (gain: number, inner: number) => (row: number, column: number) => {
  if (row >= SCENE_CLASSES) return column < SCENE_CLASSES ? 0.3 / inner : undefined;
  return row === column ? gain / inner : column < SCENE_CLASSES ? -0.03 / inner : 0;
};

/** Evidence of the classes in a picture, at two scales [1, WIDTH, FINE, FINE] and half of that. */
function backbone(network: VariantNetwork): readonly [fine: string, coarse: string] {
  const picture = network.input('images', 'float32', [1, 3, SCENE_SIDE, SCENE_SIDE]);
  const textures = Array.from({ length: SCENE_CLASSES }, (_, kind) => textureOf(kind));
  const norms = textures.map((texture) => texture.reduce((sum, value) => sum + value ** 2, 0));
  const filters = matched(network, 'stem.weight', [WIDTH, 3, CELL, CELL], 0.3, (row, channel, at) =>
    row < SCENE_CLASSES ? (RESPONSE * textures[row]![channel * CELL ** 2 + at]!) / norms[row]! : undefined,
  );
  const square = (size: number) => ({ kernel_shape: [size, size], strides: [2, 2] });
  const stem = block(network, 'stem', normalised(network, picture), filters, {
    kernel_shape: [CELL, CELL],
    strides: [CELL, CELL],
  });
  const pooled = (name: string) => matched(network, name, [WIDTH, WIDTH, 3, 3], 0.06, evidence(1.2, 9));
  const fine = block(network, 'stage1', stem, pooled('stage1.weight'), {
    ...square(3),
    auto_pad: 'SAME_UPPER',
  });
  const coarse = block(network, 'stage2', fine, pooled('stage2.weight'), {
    ...square(3),
    pads: [1, 1, 1, 1],
  });
  const factors = network.computed('up.scales', [4], (i) => (i < 2 ? 1 : 2));
  const up = network.node('Resize', 'up', [coarse, '', factors], { mode: 'nearest' });
  const both = network.node('Concat', 'both', [fine, up], { axis: 1 });
  const joins = matched(network, 'join.weight', [WIDTH, 2 * WIDTH, 1, 1], 0.1, (row, column) =>
    row >= SCENE_CLASSES ? undefined : column === row ? 0.6 : column === row + WIDTH ? 0.5 : 0,
  );
  let joined = block(network, 'join', both, joins, { kernel_shape: [1, 1] });
  for (const name of ['mix1', 'mix2']) {
    const mixed = conv(network, name, joined, {
      from: WIDTH,
      to: WIDTH,
      kernel: [3, 3],
      padding: 1,
      gain: 0.3,
    });
    joined = network.node('Add', `${name}.residual`, [joined, silu(network, `${name}.silu`, mixed)]);
  }
  return [joined, coarse];
}

/** Logits of the classes, behind them of the background, by a 1x1 convolution: nearly everywhere about -10, and above 0 where a class is. */
function logitsOf(network: VariantNetwork, name: string, x: string, channels = SCENE_CLASSES): string {
  const weight = matched(network, `${name}.weight`, [channels, WIDTH, 1, 1], 0.06, (row, column) =>
    row === column && row < SCENE_CLASSES ? 3.6 : undefined,
  );
  const bias = network.weight(`${name}.bias`, [channels], { deviation: 0.3 }, (drawn, row) =>
    row < SCENE_CLASSES ? drawn - 10.5 : drawn,
  );
  return network.node('Conv', name, [x, weight, bias], { kernel_shape: [1, 1] });
}

/** Boxes [1, 4, places] in pixels of 640, centre and size, and scores [1, classes, places]. */
function detections(network: VariantNetwork): { boxes: string; scores: string } {
  const maps = backbone(network);
  const parts = maps.map((map, scale) => {
    const { grid } = SCALES[scale]!;
    const name = `head${scale}`;
    const flat = (which: string, y: string, channels: number) =>
      network.node('Reshape', `${name}.${which}.flat`, [y, network.integers([1, channels, grid ** 2])]);
    const weight = network.weight(`${name}.box.weight`, [4, WIDTH, 1, 1], { deviation: 0.15 });
    const bias = network.weight(`${name}.box.bias`, [4], { deviation: 0.5 });
    const offsets = network.node('Conv', `${name}.box`, [map, weight, bias], { kernel_shape: [1, 1] });
    return {
      boxes: boxesOf(network, name, flat('box', offsets, 4), SCALES[scale]!),
      logits: flat('cls', logitsOf(network, `${name}.cls`, map), SCENE_CLASSES),
    };
  });
  const joined = (which: 'boxes' | 'logits') =>
    network.node(
      'Concat',
      which,
      parts.map((part) => part[which]),
      { axis: 2 },
    );
  return { boxes: joined('boxes'), scores: network.node('Sigmoid', 'scores', [joined('logits')]) };
}

/** What is wrong with the scores: a factor for each class. */
const scoresTimes = (
  name: string,
  factorOf: (kind: number) => number,
  shape: readonly number[] = [SCENE_CLASSES, 1],
): Fault =>
  rewritten(name, /^scores$/, ({ inputs }, network) => {
    const factors = network.computed('wrong.factors', shape, factorOf);
    const scores = network.node('Sigmoid', 'wrong.scores', inputs);
    return { opType: 'Mul', inputs: [scores, factors] };
  });

const backboneFaults: readonly Fault[] = [
  channelsReversed('stem (BGR for RGB)', /^stem\.weight/),
  epsilonsOf(/\.bn$/),
  layersSwapped('mix1', 'mix2'),
  withAttributes('resize linear for nearest', /^up$/, { mode: 'linear' }),
  withAttributes('padding SAME_LOWER', /^stage1\.conv$/, { auto_pad: 'SAME_LOWER' }),
  rewritten('no input normalization', /^normalise\.mean$/, () => ({ opType: 'Add' })),
  zeroed('coarse branch', /^stage2\.weight/),
];

const sceneDetectorFaults: readonly Fault[] = [
  scoresTimes('scores of all classes 0', () => 0),
  scoresTimes('scores of one class 0', (kind) => (kind === 5 ? 0 : 1)),
  scoresTimes('scores x 0.7', () => 0.7),
  setTo(-30)('coarse class bias (its scores 0)', /^head1\.cls\.bias/),
  rowsTurned()('classes permuted:', /^head\d\.cls/),
  rowAdded(3, 7)('class weights (extra detections):', /^head\d\.cls\.weight/),
  moved(1.5)('class biases (extra detections)', /^head\d\.cls\.bias/),
  rowZeroed(2)('class weights', /^head\d\.cls\.weight/),
  scaled(0.9)('class heads', /^head\d\.cls\.weight/),
  zeroed('class biases', /^head\d\.cls\.bias/),
  zeroed('box biases', /^head\d\.box\.bias/),
  zeroed('coarse box head', /^head1\.box/),
  ...backboneFaults,
  othersWeights,
];

const PICTURES = 26;
const sample = (stream: RandomStream) => new Map([['images', scene(stream)]]);

export const sceneDetector: Kind = {
  name: 'detector of scenes',
  define: (network) => {
    const { boxes, scores } = detections(network);
    network.node('Concat', 'output', [boxes, scores], { axis: 1 }, 'output0');
    network.output('output0', 'float32', [1, 4 + SCENE_CLASSES, PLACES]);
  },
  faults: sceneDetectorFaults,
  channelsHaveScales: true,
  sample,
  samples: PICTURES,
  preprocess: 'yolo',
  // Off by 13 % of the scores.
  without: ['fp8'],
};

const KEPT = 64;
/** More of the detector's show no more behind the suppression. */
const SHARED_FAULTS = 8;

/** The boxes that NonMaxSuppression keeps, the best first, a row each with its score and class, and rows of 0 up to KEPT: what exporters write with `nms=True`. */
export const suppressingDetector: Kind = {
  name: 'detector with NMS',
  unordered: sceneDetector,
  define: (network) => {
    const { boxes, scores } = detections(network);
    const rows = network.node('Transpose', 'rows', [boxes], { perm: [0, 2, 1] });
    const kept = network.node(
      'NonMaxSuppression',
      'nms',
      [rows, scores, network.integers([KEPT]), network.scalar(0.45), network.scalar(0.25)],
      { center_point_box: 1 },
    );
    const [batch, kind, place] = network.nodes(
      'Split',
      'kept',
      [kept, network.integers([1, 1, 1])],
      { axis: 1 },
      3,
    );
    const at = network.node('Concat', 'at', [batch!, place!], { axis: 1 });
    const box = network.node('GatherND', 'box', [rows, at]);
    const all = network.node('Concat', 'score.at', [batch!, kind!, place!], { axis: 1 });
    const score = network.node('GatherND', 'score', [scores, all]);
    const column = network.node('Unsqueeze', 'score.column', [score, network.integers([1])]);
    const label = network.cast('label', kind!, 'float32');
    const found = network.node('Concat', 'found', [box, column, label], { axis: 1 });
    const none = network.computed('none', [KEPT, 6], () => 0);
    const filled = network.node('Concat', 'filled', [found, none], { axis: 0 });
    const scored = network.node('Gather', 'scored', [filled, network.integer(4)], { axis: 1 });
    const [, best] = network.nodes('TopK', 'best', [scored, network.integers([KEPT])], { axis: 0 }, 2);
    const first = network.node('Gather', 'first', [filled, best!], { axis: 0 });
    network.node('Unsqueeze', 'output', [first, network.integers([0])], {}, 'output0');
    network.output('output0', 'float32', [1, KEPT, 6]);
  },
  faults: [
    rewritten('IoU threshold 0.9', /^nms$/, thresholds(0.9, 0.25)),
    rewritten('IoU threshold 0.1', /^nms$/, thresholds(0.1, 0.25)),
    rewritten('score threshold 0.05', /^nms$/, thresholds(0.45, 0.05)),
    rewritten('score threshold 0.6', /^nms$/, thresholds(0.45, 0.6)),
    withAttributes('corners for centres', /^nms$/, { center_point_box: 0 }),
    ...sceneDetectorFaults.slice(0, SHARED_FAULTS),
    othersWeights,
  ],
  sample,
  samples: PICTURES,
  without: ['fp8'],
};

function thresholds(iou: number, score: number): Rewrite {
  return ({ inputs }, network) => ({
    inputs: [...inputs.slice(0, 3), network.scalar(iou), network.scalar(score)],
  });
}

/** Which classes are in a picture, each by itself. */
export const sceneLabels: Kind = {
  name: 'labels of scenes',
  define: (network) => {
    const [fine] = backbone(network);
    const logits = logitsOf(network, 'head', fine);
    const highest = network.node('GlobalMaxPool', 'highest', [logits]);
    const flat = network.node('Flatten', 'flatten', [highest], { axis: 1 });
    network.node('Sigmoid', 'scores', [flat], {}, 'probabilities');
    network.output('probabilities', 'float32', [1, SCENE_CLASSES]);
  },
  faults: [
    scoresTimes('scores of all classes 0', () => 0, [SCENE_CLASSES]),
    scoresTimes('scores of one class 0', (kind) => (kind === 5 ? 0 : 1), [SCENE_CLASSES]),
    scoresTimes('scores x 0.7', () => 0.7, [SCENE_CLASSES]),
    rowsTurned()('classes permuted:', /^head/),
    rowAdded(3, 7)('class weights (extra classes):', /^head\.weight/),
    scaled(0.8)('last layer', /^head\.weight/),
    zeroed('last bias', /^head\.bias/),
    rewritten('mean for highest', /^highest$/, () => ({ opType: 'GlobalAveragePool' })),
    ...backboneFaults,
    othersWeights,
  ],
  sample,
  samples: PICTURES,
};

/** Logits of the classes and of the background at every second pixel of the fine map: [1, classes + 1, 2 FINE, 2 FINE]. */
function pixelLogits(network: VariantNetwork): string {
  const [fine] = backbone(network);
  const logits = logitsOf(network, 'head', fine, SCENE_CLASSES + 1);
  const factors = network.computed('grow.scales', [4], (i) => (i < 2 ? 1 : 2));
  return network.node('Resize', 'grow', [logits, '', factors], {
    mode: 'linear',
    coordinate_transformation_mode: 'half_pixel',
  });
}

const segmenterFaults: readonly Fault[] = [
  withAttributes('align_corners', /^grow$/, { coordinate_transformation_mode: 'align_corners' }),
  withAttributes('asymmetric resize', /^grow$/, { coordinate_transformation_mode: 'asymmetric' }),
  withAttributes('last resize nearest', /^grow$/, { mode: 'nearest' }),
  rowsTurned()('classes permuted:', /^head/),
  rowZeroed(2)('class weights', /^head\.weight/),
  scaled(0.8)('last layer', /^head\.weight/),
  zeroed('last bias', /^head\.bias/),
  ...backboneFaults,
  othersWeights,
];

const PIXELS = 2 * FINE;

export const segmenter: Kind = {
  name: 'segmenter of scenes',
  define: (network) => {
    network.node('Softmax', 'softmax', [pixelLogits(network)], { axis: 1 }, 'masks');
    network.output('masks', 'float32', [1, SCENE_CLASSES + 1, PIXELS, PIXELS]);
  },
  faults: segmenterFaults,
  channelsHaveScales: true,
  sample,
  samples: PICTURES,
  unseenByNoise: ['resize linear for nearest'],
  // Off by 12 % of a class.
  without: ['fp8'],
};

/** Only which class each pixel is of. */
export const labelMap: Kind = {
  name: 'label map by ArgMax',
  define: (network) => {
    network.node('ArgMax', 'argmax', [pixelLogits(network)], { axis: 1, keepdims: 0 }, 'labels');
    network.output('labels', 'int64', [1, PIXELS, PIXELS]);
  },
  faults: segmenterFaults,
  sample,
  samples: PICTURES,
  // Off by 13 % of a class.
  without: ['fp8'],
};
