import { type ForeignFlag, rowsOf } from '../../cli/foreign-flag.js';
import { openAxes, runnableShape } from '../../cli/migrate/shapes.js';
import { defaultFormat } from '../../formats/precision/formats/index.js';

const only = { verbs: ['edit'] } as const;
const PROVEN = 'every edit is proven: bit by bit, or to the last rounding of FP32';
const RUNTIME = '--fold computes on ONNX Runtime, which decides what is computed and merged';
const LARGE = 'a constant far larger than what it is made of stays computed';
const CUT = 'names of the tensors between which the graph is kept';
const OUTSIDE = 'weights beside the model';

const simplify = rowsOf('onnxsim');
const simplifyRows: readonly ForeignFlag[] = [
  ...simplify.listed('--overwrite-input-shape --input-shape', '--set-dim {value}', 'sizes of inputs', {
    ...only,
    values: openAxes,
  }),
  ...simplify.listed('--test-input-shape', '--shapes {value}', 'shapes that the proof runs on', {
    ...only,
    values: runnableShape,
  }),
  ...simplify.listed('--unused-output', '--drop-output {value}', 'with what it alone needs', only),
  ...simplify.valued('--target-opset', '--opset {value}', 'the same', {
    ...only,
    values: (value) => (/^\d+$/.test(value) ? [value] : null),
  }),
  ...simplify.bare('--inline-functions', '--inline', 'the same', only),
  ...simplify.bare('--save-as-external-data', '--external-data always', OUTSIDE, only),
  ...simplify.valued('--external-data-threshold', null, 'weights go beside a model that would be too large'),
  ...simplify.bare('--enable-onnxruntime-optimization', '', RUNTIME, only),
  ...simplify.bare('--enable-fuse-bn --dynamic-input-shape', '', 'the default there as well', only),
  ...simplify.bare('--certify --no-certify', '', PROVEN, only),
  ...simplify.valued('--check-rtol --check-atol', null, PROVEN),
  ...simplify.bare('--skip-constant-folding', '', 'the line has no --fold', only),
  ...simplify.listed('--skip-optimization --skip-optimizer --enable-optimization', null, RUNTIME),
  ...simplify.bare('--skip-fuse-bn --skip-shape-inference --skip-schema-import', null, RUNTIME),
  ...simplify.bare('--mutable-initializer --initializers-as-non-constants --cuda', null, RUNTIME),
  ...simplify.listed('--providers', null, RUNTIME),
  ...simplify.bare('--include-subgraph', null, 'bodies of If, Loop and Scan are not folded inside'),
  ...simplify.valued('--no-large-tensor', null, LARGE),
  ...simplify.listed(
    '--input-data-path',
    null,
    'raw bytes have neither type nor shape: --inputs SAMPLES.npz',
  ),
  ...simplify.valued('--input-fill', null, 'random inputs are drawn by --seed; --inputs passes others'),
  ...simplify.valued('--custom-lib --profile', null, 'trtforge has no such setting'),
];

const slim = rowsOf('onnxslim');
const slimRows: readonly ForeignFlag[] = [
  ...slim.listed('--input-shapes', '--set-dim {value}', 'sizes of inputs', { ...only, values: openAxes }),
  ...slim.listed('--inputs --outputs', '--extract {value}', CUT, only),
  ...slim.valued('--dtype', '--precision {value}', '`convert` changes types', {
    verbs: ['convert'],
    values: (value) => (value === defaultFormat.id ? [value] : null),
  }),
  ...slim.bare('--save-as-external-data', '--external-data always', OUTSIDE, only),
  ...slim.bare('--model-check', '', PROVEN, only),
  ...slim.listed('--model-check-inputs', '--shapes {value}', 'shapes that the proof runs on', {
    ...only,
    values: runnableShape,
  }),
  ...slim.bare('--inspect', '', 'the verb decides: inspect', { verbs: ['inspect'] }),
  ...slim.bare('--dump-to-disk', null, '`trtforge inspect MODEL --nodes . --json` lists every node'),
  ...slim.listed('--skip-optimizations --skip-fusion-patterns', null, RUNTIME),
  ...slim.valued('--size-threshold', null, LARGE),
  ...slim.bare('--no-shape-infer', null, RUNTIME),
  ...slim.bare('--verbose', '--verbose', 'the same'),
];

const surgeon = rowsOf('polygraphy surgeon');
const surgeonRows: readonly ForeignFlag[] = [
  ...surgeon.valued('--output --save-onnx', '-o {value}', 'the same', { verbs: ['edit', 'convert'] }),
  ...surgeon.bare('--fold-constants', '--fold', 'also of shapes, until nothing is left', only),
  ...surgeon.bare('--cleanup', '--dead', 'the same', only),
  ...surgeon.bare('--toposort', '', 'nodes are written in the order of use', only),
  ...surgeon.listed('--override-input-shapes --override-inputs', '--set-dim {value}', 'sizes of inputs', {
    ...only,
    values: openAxes,
  }),
  ...surgeon.listed('--inputs --outputs', '--extract {value}', CUT, only),
  ...surgeon.listed('--exclude-outputs', '--drop-output {value}', 'with what it alone needs', {
    ...only,
    values: (value) => (/[*?[]/.test(value) ? null : [value]),
  }),
  ...surgeon.listed(
    '--outputs-by-type',
    null,
    '--mark names the tensors; `trtforge inspect --nodes OPERATOR` lists them',
  ),
  ...surgeon.bare('--fp-to-fp16', '--precision fp16', '`convert` changes types', { verbs: ['convert'] }),
  ...surgeon.valued('--save-external-data --external-data-path', '--external-data always', OUTSIDE, only),
  ...surgeon.valued('--external-data-size-threshold', null, 'trtforge chooses what goes beside the model'),
  ...surgeon.valued(
    '--external-data-dir --load-external-data --ext',
    null,
    'weights are read where the model names them',
  ),
  ...surgeon.valued('--num-passes --num-const-fold-passes --partitioning', null, RUNTIME),
  ...surgeon.valued('--fold-size-threshold', null, LARGE),
  ...surgeon.bare('--no-fold-shapes --no-per-pass-shape-inference', null, RUNTIME),
  ...surgeon.bare(
    '--no-shape-inference --shape-inference --do-shape-inference',
    '',
    'shapes are inferred where a step needs them',
    only,
  ),
  ...surgeon.bare(
    '--force-fallback-shape-inference --no-onnxruntime-shape-inference',
    null,
    'shapes are inferred by rules of the operators',
  ),
  ...surgeon.listed(
    '--model-input-shapes --model-inputs',
    '--shapes {value}',
    'shapes that the proof runs on',
    {
      ...only,
      values: runnableShape,
    },
  ),
  ...surgeon.listed('--set-unbounded-dds-upper-bound', null, 'no step adds nodes that change results'),
  ...surgeon.bare(
    '--ignore-external-data --no-save-all-tensors-to-one-file',
    null,
    'an edit is proven with its weights, in one file',
  ),
  ...surgeon.valued('--seed', '--seed {value}', 'the same', only),
  ...surgeon.bare('--verbose', '--verbose', 'the same'),
];

/** Flags of the tools that edit graphs. */
export const peerFlags: readonly ForeignFlag[] = [...simplifyRows, ...slimRows, ...surgeonRows];
