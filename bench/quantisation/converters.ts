import { join } from 'node:path';
import { type BenchContext, trtforge } from '../context.js';

/** The program that made a row's model: ours, or one of the peers. */
export type Maker = 'trtforge' | 'ONNX Runtime' | 'ModelOpt';

/** One way to a model of another precision. */
export interface Converter {
  readonly by: Maker;
  /** What of that program: `int8, entropy`. */
  readonly how: string;
  readonly precision: 'FP16' | 'BF16' | 'INT8' | 'FP8';
  /** From the FP32 model and the samples to `out`. */
  command(model: string, samples: string, out: string): readonly string[];
}

export interface Pythons {
  /** Has onnxruntime; undefined: its rows are left out. */
  readonly onnxRuntime: string | undefined;
  /** Has nvidia-modelopt. */
  readonly modelOpt: string | undefined;
}

/** Every program with the options that its documentation starts with; samples and FP32 model are the same for all. */
export function converters(context: BenchContext, { onnxRuntime, modelOpt }: Pythons): readonly Converter[] {
  const own = (precision: Converter['precision'], needsSamples: boolean): Converter => ({
    by: 'trtforge',
    how: `${precision.toLowerCase()}, default`,
    precision,
    command: (model, samples, out) =>
      trtforge(
        context,
        ...['convert', model, '--precision', precision.toLowerCase(), '-o', out],
        ...(needsSamples ? ['--calibration', samples] : []),
      ),
  });
  const script = join(context.root, 'bench', 'quantisation', 'ort_static.py');
  const ort = (how: 'tensorrt' | 'defaults'): Converter[] =>
    onnxRuntime === undefined
      ? []
      : [
          {
            by: 'ONNX Runtime',
            how: how === 'defaults' ? 'static, its defaults' : 'static, options for TensorRT',
            precision: 'INT8',
            command: (model, samples, out) => [onnxRuntime, script, model, out, samples, how],
          },
        ];
  const opt = (precision: 'INT8' | 'FP8', method: 'max' | 'entropy'): Converter[] =>
    modelOpt === undefined
      ? []
      : [
          {
            by: 'ModelOpt',
            how: `${precision.toLowerCase()}, ${method}`,
            precision,
            command: (model, samples, out) => [
              ...[modelOpt, '-m', 'modelopt.onnx.quantization', '--onnx_path', model, '--output_path', out],
              ...['--quantize_mode', precision.toLowerCase(), '--calibration_method', method],
              ...[
                '--calibration_data',
                samples,
                '--calibration_eps',
                'cpu',
                '--high_precision_dtype',
                'fp16',
              ],
            ],
          },
        ];
  return [
    own('FP16', false),
    own('BF16', false),
    own('INT8', true),
    own('FP8', true),
    ...ort('tensorrt'),
    ...ort('defaults'),
    ...opt('INT8', 'max'),
    ...opt('INT8', 'entropy'),
    ...opt('FP8', 'max'),
  ];
}
