import { broughtBy, type Product } from '../command.js';
import { type ForeignFlag, rowsOf } from '../foreign-flag.js';
import { polygraphyRows } from './polygraphy.js';
import { trtexecRows } from './trtexec.js';

const autocast = rowsOf('modelopt');

/** Flags of `python -m modelopt.onnx.autocast` and `modelopt.onnx.quantization`. */
const modeloptRows: readonly ForeignFlag[] = [
  ...autocast.valued('--onnx_path --onnx', '{value}', 'the model is an argument', {
    verbs: ['convert', 'build', 'forge'],
  }),
  ...autocast.valued('--output_path', '-o {value}', 'the same'),
  ...autocast.valued('--low_precision_type', '--precision {value}', 'the same'),
  ...autocast.listed(
    '--nodes_to_exclude',
    '--keep-nodes {value}',
    'nodes that stay FP32, by a regular expression',
  ),
  ...autocast.listed('--op_types_to_exclude', '--keep-ops {value}', 'operators that stay FP32'),
  ...autocast.listed(
    '--op_types_to_include',
    '--convert-ops {value}',
    'operators converted although they stay FP32 by default',
  ),
  ...autocast.listed(
    '--nodes_to_include',
    null,
    '--convert-ops names operators; single nodes are not forced',
  ),
  ...autocast.valued('--quantize_mode', '--precision {value}', 'the same; 4-bit weights are int4, nvfp4', {
    values: (value) => (/^(?:int8|fp8)$/.test(value) ? [value] : value.startsWith('int4') ? ['int4'] : null),
  }),
  ...autocast.valued('--calibration_method', '--calibration-method {value}', 'how ranges are chosen', {
    values: (value) => (value === 'entropy' || value === 'max' ? [value] : null),
  }),
  ...autocast.valued('--high_precision_dtype', '--high-precision {value}', 'what is around quantized nodes', {
    values: (value) => (/^(?:fp16|bf16|fp32)$/.test(value) ? [value] : null),
  }),
  ...autocast.listed(
    '--op_types_to_quantize --nodes_to_quantize',
    null,
    'everything that gains is quantized; `trtforge convert advise` chooses',
  ),
  ...autocast.valued('--init_max', '--init-max {value}', 'the same'),
  ...autocast.valued('--data_max', '--data-max {value}', 'the same; it needs --calibration'),
  ...autocast.valued('--max_depth_of_reduction', '--max-reduction-depth {value}', 'the same'),
  ...autocast.valued(
    '--calibration_data --calibration_data_path',
    '--calibration {value}',
    'npz or npy; Polygraphy JSON is not read',
    {
      values: (value) => (/\.np[yz]$/.test(value) ? [value] : null),
    },
  ),
  ...autocast.bare(
    '--keep_io_types',
    '--io-types keep',
    'the default of trtforge; AutoCast converts them by default',
  ),
  ...autocast.valued('--init_conversion_max_bytes', null, 'weights of any size are converted'),
  ...autocast.listed(
    '--trt_plugins_precision',
    '--plugin-types {value}',
    'the same; INT8 and FP8 come as Q/DQ nodes',
  ),
  ...autocast.listed(
    '--providers --trt_plugins --calibration_eps',
    null,
    'calibration runs on ONNX Runtime, on the CPU',
  ),
  ...autocast.valued('--calibration_cache_path', '--calibration-cache {value}', 'ranges that are kept'),
  ...autocast.valued('--calibration_shapes', null, 'calibration takes the shapes of its samples'),
  ...autocast.valued('--opset', null, 'the opset rises only where the type needs it'),
  ...autocast.valued('--log_level', null, '--verbose and --quiet'),
  ...autocast.bare(
    '--use_standalone_type_inference --trust_calibration_data',
    null,
    'trtforge has no such step',
  ),
];

const yolo = rowsOf('yolo');
const AS_IS = 'as-is builds the types of the graph, FP32 in an FP32 model';

/** Options of Ultralytics' exporter and of scripts like it. */
const exporterRows: readonly ForeignFlag[] = [
  ...yolo.bare('--half', '--precision fp16', 'half precision is FP16'),
  ...yolo.bare('--fp32', '--precision as-is', AS_IS, { isExplained: true }),
  ...yolo.valued('--precision', '--precision as-is', AS_IS, {
    only: 'fp32',
    verbs: ['build', 'forge', 'cache why', 'bundle build', 'bundle forge', 'deepstream size'],
    isExplained: true,
  }),
  ...yolo.valued('--batch-size --batch_size', '--batch {value}', 'the size of the open first axis'),
  ...yolo.valued(
    '--imgsz --img-size --img',
    ['--imgsz {value}', '--shapes images:1x3x{value}x{value}'],
    'the exporter calls its input images',
  ),
];

/** Flags that concern every verb. */
export const coreRows: readonly ForeignFlag[] = [
  ...trtexecRows,
  ...polygraphyRows,
  ...modeloptRows,
  ...exporterRows,
];

/** Every row, of the core and of products. */
export const foreignFlags = (products: readonly Product[]): Promise<readonly ForeignFlag[]> =>
  broughtBy(products, 'foreignFlags');
