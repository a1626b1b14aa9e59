import { type ForeignFlag, rowsOf } from './flag.js';

const { bare, valued, listed } = rowsOf('modelopt');

/** Flags of `python -m modelopt.onnx.autocast`. */
export const modeloptRows: readonly ForeignFlag[] = [
  ...valued('--onnx_path --onnx', '{value}', 'the model is an argument', {
    verbs: ['convert', 'build', 'forge'],
  }),
  ...valued('--output_path', '-o {value}', 'the same'),
  ...valued('--low_precision_type', '--precision {value}', 'the same'),
  ...listed('--nodes_to_exclude', '--keep-nodes {value}', 'nodes that stay FP32, by a regular expression'),
  ...listed('--op_types_to_exclude', '--keep-ops {value}', 'operators that stay FP32'),
  ...listed(
    '--op_types_to_include',
    '--convert-ops {value}',
    'operators converted although they stay FP32 by default',
  ),
  ...listed('--nodes_to_include', null, '--convert-ops names operators; single nodes are not forced'),
  ...valued('--init_max', '--init-max {value}', 'the same'),
  ...valued('--data_max', '--data-max {value}', 'the same; it needs --calibration'),
  ...valued('--max_depth_of_reduction', '--max-reduction-depth {value}', 'the same'),
  ...valued('--calibration_data', '--calibration {value}', 'one npz of inputs; Polygraphy JSON is not read', {
    values: (value) => (value.endsWith('.npz') ? [value] : null),
  }),
  ...bare('--keep_io_types', '--io-types keep', 'the default of trtforge; AutoCast converts them by default'),
  ...valued('--init_conversion_max_bytes', null, 'weights of any size are converted'),
  ...listed(
    '--providers --trt_plugins --trt_plugins_precision',
    null,
    'calibration runs on ONNX Runtime, on the CPU',
  ),
  ...valued('--opset', null, 'the opset rises only where the type needs it'),
  ...valued('--log_level', null, '--verbose and --quiet'),
  ...bare('--use_standalone_type_inference --trust_calibration_data', null, 'trtforge has no such step'),
];
