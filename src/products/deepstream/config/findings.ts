import type { CheckFinding } from './result.js';

/** Every finding of `deepstream check` and every reason of an outcome, with what to do; `fatal` ends nvinfer whatever the engine is. */
export const findingKinds = {
  'group-missing': ['fatal', 'Put the keys into the group "property".'],
  'group-unknown': ['warning', 'Use property, class-attrs-all or class-attrs-N.'],
  'class-attrs': ['fatal', 'Write class-attrs-all, or a number below num-detected-classes.'],
  'key-unknown': ['warning', 'Correct or remove it; comments begin with #.'],
  'key-legacy': ['info', 'Remove it or write the key that replaced it, unless a custom library reads it.'],
  'key-translated': ['info', 'Write the newer key in its place.'],
  'key-twice': ['warning', 'Remove one.'],
  'value-unreadable': ['fatal', 'Write the value alone on the line.'],
  'value-out-of-range': ['fatal', 'Write an allowed value.'],
  'value-blanks': ['warning', 'Write the path alone on the line.'],
  'engine-missing': ['error', 'Build it, or name the file that nvinfer writes.'],
  'engine-not-named': ['warning', 'Set model-engine-file to the file that is written.'],
  'engine-invalid': ['error', 'Build the engine again.'],
  'engine-rtx': ['error', 'Build an engine with TensorRT: --target tensorrt.'],
  'engine-other-tensorrt': ['error', "Build it with the TensorRT of the pipeline's machine."],
  'engine-other-gpu': ['error', "Build it on the pipeline's GPU."],
  'engine-other-model': ['error', 'Build the engine of the model again; nvinfer loads it as it is.'],
  'engine-batch': ['error', 'Lower batch-size, or build an engine for that batch.'],
  'batch-axis': ['error', 'Export the model so that the first axis of each tensor is the batch.'],
  'engine-dims': ['error', 'Correct infer-dims, or build an engine for them.'],
  'passport-missing': ['info', 'Build it with trtforge, or keep its passport beside it.'],
  'folder-read-only': ['error', 'Build the engine beforehand, and name it in model-engine-file.'],
  'model-not-named': ['error', 'Name an engine and a model.'],
  'model-missing': ['error', 'Correct the path of the model.'],
  'model-invalid': ['error', 'Export the model again.'],
  'model-dims': ['error', 'Set infer-dims to C;H;W of the model.'],
  'model-batch': ['error', 'Lower max_batch_size, or serve an engine for that batch.'],
  'model-typed': ['warning', 'Set strongly-typed=1 and network-mode=0 (DeepStream 9.1).'],
  'mode-strongly-typed': ['warning', 'Set network-mode=0.'],
  'type-unknown': ['fatal', 'Cast it to FP32 in the model.'],
  'input-type': ['error', 'Cast it in the model, so that it takes FP32.'],
  'input-rank': ['fatal', 'nvinfer gives pictures to the first input: batch, channels, height, width.'],
  'color-format': [
    'fatal',
    'Set model-color-format, infer-dims and network-input-order as the model has them.',
  ],
  'offsets-count': ['fatal', 'Write an offset for each channel.'],
  'mean-missing': ['fatal', 'Correct the path, or write offsets in its place.'],
  'mask-output': ['fatal', 'Set cluster-mode=4.'],
  'instance-mask': ['fatal', 'Set cluster-mode=4, custom-lib-path and parse-bbox-instance-mask-func-name.'],
  'calibration-missing': ['warning', 'Set int8-calib-file, or network-mode=2.'],
  'library-missing': ['fatal', 'Build it, or correct custom-lib-path.'],
  'library-elsewhere': ['info', 'Check again where DeepStream is installed.'],
  'library-invalid': ['fatal', 'Build the library again.'],
  'function-missing': ['fatal', 'Correct the name, or declare the function extern "C".'],
  'function-without-library': ['error', 'Set custom-lib-path to the library that has it.'],
  'parser-missing': ['error', 'Set parse-bbox-func-name and custom-lib-path, or network-type=100.'],
  'labels-missing': ['fatal', 'Write a class a line, in the order of the classes.'],
  'labels-count': [
    'warning',
    'Write as many lines as there are classes; one line with ";" is for classifiers.',
  ],
  'labels-classifier': ['warning', 'Write the labels of each output on one line, with ";" between them.'],
  'classifier-logits': [
    'warning',
    'Export the model with Softmax, or choose classifier-threshold by logits.',
  ],
  'task-differs': ['warning', 'Set network-type to that of the task; 100 passes outputs on as they are.'],
  'app-overrides': ['warning', 'Write one value into both files.'],
  'app-config': ['info', 'Check each file that is named.'],
  'classes-count': ['error', "Set num-detected-classes to the model's number of classes."],
  'output-unknown': ['warning', "Write the model's names, or remove the key."],
  'cluster-mode': ['warning', 'Set 4 where the outputs have one box an object, else 2.'],
  'scale-default': ['warning', 'Set it: 0.00392156862745098 for a network of values from 0 to 1.'],
  'preparation-differs': [
    'warning',
    'Prepare pictures as for the calibration, or calibrate as the pipeline prepares.',
  ],
  'preprocessing-doubtful': ['error', 'Set those keys, if the image has objects of the classes.'],
  'scores-low': ['warning', 'Try an image with objects of the classes.'],
} as const satisfies Readonly<
  Record<string, readonly [severity: CheckFinding['severity'] | 'fatal', remedy: string]>
>;

export type FindingCode = keyof typeof findingKinds;

export class Findings {
  readonly list: CheckFinding[] = [];

  /** `lesser` replaces the severity where the finding does not decide this start. */
  add(code: FindingCode, where: string, message: string, lesser?: CheckFinding['severity']): void {
    const [usual, remedy] = findingKinds[code];
    this.list.push({
      ...{ code, severity: lesser ?? (usual === 'fatal' ? 'error' : usual) },
      ...{ where, message, remedy },
    });
  }

  /** The first that ends nvinfer whatever the engine is. */
  get fatal(): CheckFinding | undefined {
    return this.list.find(({ code }) => findingKinds[code as FindingCode][0] === 'fatal');
  }
}
