import type { KnownIssue } from '../../quality/explain/known-issues/issue.js';

const tracker = (number: number) => `https://github.com/marcoslucianops/DeepStream-Yolo/issues/${number}`;

/** The known messages of nvinfer, DeepStream's plug-in for TensorRT. */
export const deepstreamIssues: readonly KnownIssue[] = [
  {
    id: 'nvinfer-parser-not-set',
    severity: 'error',
    pattern: /Could not find output coverage layer|Failed to parse bboxes/,
    cause:
      "nvinfer reads the outputs with its own parser for DetectNet, which looks for a coverage layer: the model's parser is not set.",
    remedy:
      'Set parse-bbox-func-name and custom-lib-path in the configuration of nvinfer, to the library made for the model.',
    versions: 'DeepStream',
    source: tracker(640),
  },
  {
    id: 'nvinfer-function-missing',
    severity: 'error',
    pattern: /dlsym failed to get func (?<name>\w{1,200})|NVDSINFER_CUSTOM_LIB_FAILED/,
    cause: 'The library of custom-lib-path has no function {name}, or does not load.',
    remedy:
      'Compare parse-bbox-func-name with nm -D LIBRARY, and compile the library for the CUDA and DeepStream that are here.',
    versions: 'DeepStream',
    source: tracker(609),
  },
  {
    id: 'nvinfer-batch-too-large',
    severity: 'error',
    pattern: /Backend has maxBatchSize (?<has>\d+) whereas (?<wanted>\d+) has been requested/,
    cause:
      'The engine takes {has} pictures at a time, and the configuration asks for {wanted}: nvinfer builds another one.',
    remedy:
      'Lower batch-size in the configuration (deepstream-app has it in its own file, too), or build with --batch 1/{wanted}/{wanted}.',
    versions: 'DeepStream',
    source: 'https://github.com/NVIDIA/retinanet-examples/issues/249',
  },
  {
    id: 'nvinfer-dimensions-differ',
    severity: 'error',
    pattern: /Backend's input dims mismatch|Infer Context prepare preprocessing resource failed/,
    cause: 'The input of the engine has other dimensions than infer-dims in the configuration.',
    remedy: '`trtforge deepstream check CONFIG` compares them; correct infer-dims, or leave it out.',
    versions: 'DeepStream',
    source: tracker(595),
  },
  {
    id: 'nvinfer-engine-missing',
    severity: 'warning',
    pattern:
      /file path: ?(?<file>\S{1,500}) open error|file ?:(?<plan>\S{1,500}) failed, try rebuild|deserialized backend context :(?<context>\S{1,500}) failed to match config params/,
    cause:
      'nvinfer found no engine at {file} {plan} {context}, or could not load it, and builds one from the model in its place.',
    remedy:
      'Check model-engine-file: the name has to be the one that nvinfer writes (MODEL_bN_gpu0_fp16.engine), and the engine of this TensorRT and GPU.',
    versions: 'DeepStream',
    source: tracker(361),
  },
];
