import {
  CALIBRATED,
  CALIBRATION_TABLE,
  DLA,
  type ForeignFlag,
  KEPT_TYPES,
  poolSettings,
  QUANTIZED,
  QUANTIZES,
  REMOVED,
  rowsOf,
  spelled,
  weightBudget,
} from '../foreign-flag.js';

const { bare, valued, listed, ranked, rest, builderFlag, setting, permitted, shapeFlags } =
  rowsOf('polygraphy');
const shape = (value: string) => [
  value.replace(
    /\[([\d,\s]*)\]/g,
    (_, dims: string) => dims.replaceAll(' ', '').replaceAll(',', 'x') || 'scalar',
  ),
];

const RUNNERS = '`trtforge verify` runs both sides: the engine, and the model on ONNX Runtime';
const SCRIPTS = 'trtforge runs no code from the command line: use the library, `import … from "trtforge"`';

/** Flags of `polygraphy run`, `convert`, `inspect`, `check` and `debug`. */
export const polygraphyRows: readonly ForeignFlag[] = [
  ...bare('--trt --onnxrt', '', RUNNERS, { verbs: ['verify', 'run', 'build'] }),
  ...bare('--pluginref', null, 'trtforge has no such runner'),
  ...valued('--convert-to', '', 'the verb decides: build, convert', { verbs: ['build', 'convert'] }),
  ...valued('--model-type', '', 'the content of the file decides', {
    verbs: ['build', 'run', 'verify', 'inspect', 'engine inspect', 'engine layers'],
  }),
  ...valued('--output', '-o {value}', 'the same'),
  ...valued('--save-engine', '-o {value}', 'the engine goes there; without it, into the store'),
  ...permitted('--fp16'),
  ...permitted('--bf16'),
  ...bare('--fp-to-fp16', '--precision fp16', '`trtforge convert` converts the model'),
  ...bare('--int8 --fp8', null, QUANTIZED, QUANTIZES),
  ...bare('--tf32', '', 'TF32 is on by default; --builder-config flags=no-tf32 switches it off', {
    verbs: ['build', 'forge', 'cache why'],
  }),
  ...bare('--strongly-typed', '', "builds are strongly typed: the graph's types decide", {
    verbs: ['build', 'forge', 'cache why'],
  }),
  ...valued('--calibration-cache', '--calibration-cache {value}', CALIBRATION_TABLE, REMOVED),
  ...valued('--calib-base-cls --quantile --regression-cutoff', null, CALIBRATED, REMOVED),
  ...valued('--precision-constraints', null, KEPT_TYPES, REMOVED),
  ...listed('--layer-precisions --tensor-dtypes --tensor-datatypes', null, KEPT_TYPES, REMOVED),
  ...shapeFlags((end) => `--trt-${end}-shapes`, 'listed', { values: shape }),
  ...listed('--input-shapes --inputs', '--shapes {value}', 'shapes of random inputs', { values: shape }),
  ...listed(
    '--pool-limit --memory-pool-limit',
    '--builder-config {value}',
    'Polygraphy counts bytes without a unit, trtforge MiB',
    { values: poolSettings('B') },
  ),
  ...valued('--workspace', '--workspace {value}', 'Polygraphy counts bytes without a unit, trtforge MiB', {
    values: (value) => [/\d$/.test(value) ? `${value}B` : value],
  }),
  ...setting('--builder-optimization-level --builder-opt-level', 'optimization-level'),
  ...setting('--max-aux-streams', 'max-aux-streams'),
  ...setting('--tiling-optimization-level', 'tiling-optimization-level'),
  ...setting('--hardware-compatibility-level', 'hardware-compatibility', {
    values: spelled({
      none: 'none',
      ampere_plus: 'ampere-plus',
      same_compute_capability: 'same-compute-capability',
    }),
  }),
  ...setting('--profiling-verbosity', 'profiling-verbosity', {
    values: spelled({ layer_names_only: 'layer-names-only', none: 'none', detailed: 'detailed' }),
  }),
  ...setting('--runtime-platform', 'runtime-platform', {
    values: spelled({ same_as_build: 'same-as-build', windows_amd64: 'windows-amd64' }),
  }),
  ...listed('--tactic-sources', '--builder-config tactic-sources={value}', 'a builder setting', {
    values: (value) => [value.toLowerCase().replaceAll('_', '-')],
  }),
  ...listed('--preview-features', '--builder-config preview-features={value}', 'a builder setting', {
    values: (value) => [value.toLowerCase().replaceAll('_', '-')],
  }),
  ...builderFlag('--sparse-weights', 'sparse-weights'),
  ...bare('--refittable', '--refit', '`trtforge engine refit` replaces the weights later'),
  ...builderFlag('--strip-plan', 'strip-plan'),
  ...builderFlag('--weight-streaming', 'weight-streaming'),
  ...builderFlag('--version-compatible', 'version-compatible'),
  ...builderFlag('--exclude-lean-runtime', 'exclude-lean-runtime'),
  ...builderFlag('--direct-io', 'direct-io'),
  ...builderFlag('--allow-gpu-fallback', 'gpu-fallback'),
  ...builderFlag('--disable-compilation-cache', 'disable-compilation-cache'),
  ...builderFlag('--error-on-timing-cache-miss', 'error-on-timing-cache-miss'),
  ...bare('--use-dla', null, DLA),
  ...valued(
    '--load-timing-cache --save-timing-cache --timing-cache',
    '--timing-cache {value}',
    'one file is read and extended',
  ),
  ...valued(
    '--save-tactics --load-tactics',
    null,
    'the timing cache keeps measured kernels: --timing-cache FILE',
  ),
  ...listed('--plugins', '--plugin {value}', 'the same'),
  ...valued('--weight-streaming-budget', '--weight-budget {value}', 'sizes; percentages have no equivalent', {
    values: weightBudget(/^(0|[\d.]+[KMG])$/i),
  }),
  ...valued(
    '--optimization-profile',
    '--profile {value}',
    'the same; without it the profile that takes the shapes',
    { verbs: ['run'] },
  ),
  ...valued('--seed', '--seed {value}', 'the same'),
  ...listed(
    '--val-range --float-min --float-max --int-min --int-max',
    '--val-range {value}',
    'the same, as [0,1] or x:[0,1]',
    {
      values: (value) => (/\[.*,.*\]$/.test(value) ? [value] : null),
    },
  ),
  ...valued('--iterations --iters', ['--samples {value}', '--iterations {value}'], 'sets of inputs', {
    verbs: ['verify', 'run', 'forge'],
  }),
  ...valued('--warm-up', null, 'the first run is timed apart'),
  ...listed('--atol', '--atol {value}', 'the same'),
  ...listed('--rtol', '--rtol {value}', 'the same'),
  ...listed('--check-error-stat', '--check {value}', 'of `trtforge compare`'),
  ...valued(
    '--compare-func --compare',
    null,
    '`trtforge compare --check cosine=0.999,psnr=40` has the other comparisons',
  ),
  ...bare('--validate', '', 'NaN and infinities are always reported', { verbs: ['run', 'verify'] }),
  ...bare(
    '--fail-fast --no-shape-check --show-heatmaps --show-error-metrics-plot --no-color',
    null,
    'trtforge compares every output, always with its shape',
  ),
  ...valued('--load-inputs', null, '`trtforge run FILE INPUTS.npz` and --inputs NAME=@FILE.npy take inputs'),
  ...valued('--save-inputs', null, 'seeded inputs are drawn again: --seed'),
  ...valued('--save-outputs --save-results', '-o {value}', 'npz, or a folder of npy', {
    verbs: ['run'],
    values: (value) => [value.replace(/\.json$/, '.npz')],
  }),
  ...valued('--load-outputs --load-results', null, '`trtforge compare A B` reads them'),
  ...listed('--trt-outputs --onnx-outputs', null, '`trtforge compare layers` compares the tensors inside'),
  ...ranked(
    '--providers',
    '--provider {value}',
    'what of ONNX Runtime runs the model; TensorRT engines are built',
    {
      values: spelled({
        cpu: 'cpu',
        cuda: 'cuda',
        tensorrt: 'tensorrt',
        CPUExecutionProvider: 'cpu',
        CUDAExecutionProvider: 'cuda',
        TensorrtExecutionProvider: 'tensorrt',
      }),
    },
  ),
  ...['layers', 'attrs', 'weights'].flatMap((only) =>
    listed(
      '--show',
      `--${only === 'weights' ? only : 'nodes'} .`,
      'nodes with their attributes, and weights',
      {
        verbs: ['inspect'],
        only,
      },
    ),
  ),
  ...listed('--show', null, '--nodes REGEX and --weights REGEX list them'),
  ...valued('--display-as', '', 'facts of the model are shown as it is', { verbs: ['inspect'] }),
  ...valued(
    '--trt-config-script --trt-config-func-name --trt-network-func-name --data-loader-script --data-loader-func-name --trt-config-postprocess-script',
    null,
    SCRIPTS,
  ),
  ...valued('--gen-script', null, SCRIPTS),
  ...bare('--use-subprocess --silent --super-verbose --extra-verbose', null, 'trtforge has no such setting'),
  ...valued('--mode --direction --until --iter-artifact', null, '`trtforge bisect` chooses what it tries'),
  ...rest('--check', null, '`trtforge bisect` compares with the model; --check-command judges otherwise'),
  ...bare('--verbose', '--verbose', 'the same'),
];
