import type { KnownIssue } from '../../quality/explain/known-issues/issue.js';

const tracker = (number: number) => `https://github.com/marcoslucianops/DeepStream-Yolo/issues/${number}`;

/** What nvinfer, DeepStream's plug-in for TensorRT, prints. */
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
    id: 'nvinfer-engine-missing',
    severity: 'warning',
    pattern: /file path: ?(?<file>\S{1,500}) open error|file ?:(?<plan>\S{1,500}) failed, try rebuild/,
    cause:
      'nvinfer found no engine at {file}{plan}, or could not load it, and builds one from the model in its place.',
    remedy:
      'Check model-engine-file: the name has to be the one that nvinfer writes (MODEL_bN_gpu0_fp16.engine), and the engine of this TensorRT and GPU.',
    versions: 'DeepStream',
    source: tracker(361),
  },
];
