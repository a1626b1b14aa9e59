import { type KnownIssue, tensorrtIssue } from './issue.js';

export const parsingIssues: readonly KnownIssue[] = [
  {
    id: 'option-too-new',
    severity: 'error',
    pattern:
      /Unknown option: --(?<flag>bf16|int4|profile|useProfile|stronglyTyped|strip(?:All)?Weights|allowWeightStreaming|weightStreamingBudget|runtimePlatform|maxTactics|monitorMemory|tilingOptimizationLevel|l2LimitForTiling|distributiveIndependence|noCompilationCache|errorOnTimingCacheMiss|getPlanVersionOnly|includeDataTransfers|noSpinWait|noCudaGraph)\b/,
    majors: [8, 10],
    cause: 'This trtexec is too old for --{flag}, which a later version has.',
    remedy: 'Let trtforge translate, which names the version that is needed; or use that version.',
    versions: '8.6 to 10.16',
    source: 'https://github.com/NVIDIA/TensorRT/blob/v8.6.1/samples/common/sampleOptions.cpp',
  },
  {
    id: 'option-removed-precision',
    severity: 'error',
    pattern:
      /Unknown option: --(?<flag>fp16|bf16|int8|fp8|int4|best|calib|precisionConstraints|layerPrecisions|layerOutputTypes)\b/,
    cause: 'TensorRT 11 has no --{flag}: the types in the ONNX decide.',
    remedy:
      '`trtforge convert MODEL --precision fp16` writes a typed model, which TensorRT 10.12 and later build too.',
    versions: '11.0 and later',
    source:
      'https://docs.nvidia.com/deeplearning/tensorrt/latest/api/migration/tensorrt-10x-to-11x-trtexec.html',
  },
  {
    id: 'option-removed',
    severity: 'error',
    pattern:
      /Unknown option: --(?<flag>workspace|buildOnly|explicitBatch|batch|maxBatch|minTiming|heuristic|nvtxMode|deploy|uff\w*)\b/,
    cause:
      'TensorRT 10 removed --{flag} (--workspace became --memPoolSize=workspace:N, --buildOnly became --skipInference).',
    remedy: 'Let trtforge translate: one recipe, the flags of each version.',
    versions: '10.0 and later',
    source: 'measured',
  },
  {
    id: 'option-unknown',
    severity: 'error',
    pattern: /Unknown option: (?<flag>--?\S+)/,
    cause: 'This trtexec has no option {flag}. It printed its whole help, so the reason is easily missed.',
    remedy: 'Check the spelling and the version.',
    versions: 'all',
    source: 'measured',
  },
  {
    id: 'option-value-invalid',
    severity: 'error',
    pattern:
      /^(?:Uncaught exception detected: )?(?<what>sto[ifd](?: conversion failure: .{1,300})?$|Unknown (?:memory pool|sparsity mode|precision constraints|profilingVerbosity|tactic source|hardwareCompatibilityLevel|preview feature|useRuntime|runtime platform|allocationStrategy|accuracyAlgorithm|tuning search algorithm): .{1,300}|Invalid (?:DataType|TensorFormat|IOFormat|Device Type) .{1,200}|Error parsing ".{1,300}|Negative memory pool size: .{1,50}|Percentile .{1,50}is not in \[0,100\]|Found invalid number of 's when parsing .{1,300}|(?:Tactic source|Preview features) must be prefixed .{1,200})/,
    cause:
      'trtexec could not read a value on its command line: "{what}". A bare "stoi", "stof" or "stod" means that it expected a number: in a shape such as x:1x3x224x224, a count, a time, a size.',
    remedy: 'Correct the value on the command line, which the first line of the log repeats.',
    versions: '8.6 and later',
    source: 'https://github.com/NVIDIA/TensorRT/blob/v11.1/samples/common/sampleOptions.cpp',
  },
  {
    id: 'rms-normalization-unknown',
    severity: 'error',
    pattern:
      /(?:No importer registered for op: |could not find plugin: |While parsing node number \d+ \[)RMSNormalization/,
    cause: 'RMSNormalization (opset 23) is known from TensorRT 10.15 on.',
    remedy: 'Use 10.15 or later, or export at an opset below 23, which writes it out in primitive operators.',
    versions: 'before 10.15',
    source: tensorrtIssue(4639),
  },
  {
    id: 'plugin-not-found',
    severity: 'error',
    pattern:
      /(?:could not|Cannot) find plugin:?(?<plugin> [^\s,]{1,300})|Plugin not found, are the plugin name, version, and namespace correct|IPluginCreator not found in Plugin Registry/,
    cause:
      'The model or plan uses an operator or plug-in{plugin} that neither this TensorRT nor a loaded library has.',
    remedy:
      "Load the library of the plug-in (--plugin FILE), or NVIDIA's own with libnvinfer_plugin. An operator of ONNX itself needs a newer TensorRT or another opset.",
    versions: 'all',
    source: tensorrtIssue(2367),
  },
  {
    id: 'operator-unsupported',
    severity: 'error',
    pattern:
      /No importer registered for op: (?<operator>\w[\w.:]{0,200}\b)(?!\S{0,200} Attempting to import as plugin)/,
    cause: 'This TensorRT does not know the operator {operator}.',
    remedy:
      '`trtforge inspect` names such operators before the build: use a newer TensorRT, export at another opset, or load a plug-in.',
    versions: 'all',
    source: 'https://github.com/onnx/onnx-tensorrt/issues/465',
  },
  {
    id: 'group-normalization-form',
    severity: 'error',
    pattern: /While parsing node number (?<index>\d+) \[GroupNormalization/,
    cause: 'This TensorRT takes GroupNormalization only in the form before opset 21.',
    remedy: 'Export at opset 20 or below, or use TensorRT 10.9 or later.',
    versions: 'before 10.9',
    source: tensorrtIssue(4336),
  },
  {
    id: 'topk-too-many',
    severity: 'error',
    pattern: /\bK exceeds the maximum value allowed \(3840\)|k <= MAX_TOPK_K/,
    cause: 'TopK takes at most 3840 elements in these versions.',
    remedy: 'Ask for fewer, or take them in tiles.',
    versions: 'before 11.0',
    source: tensorrtIssue(4244),
  },
  {
    id: 'topk-integer',
    severity: 'error',
    pattern: /Found invalid input type of INT32/,
    cause: 'TopK of integers is not known to this version.',
    remedy: 'Cast its input to float, or use a newer TensorRT.',
    versions: 'before 8.6',
    source: 'https://github.com/onnx/onnx-tensorrt/issues/450',
  },
  {
    id: 'model-over-2gb',
    severity: 'error',
    pattern:
      /exceeds maximum protobuf size of 2GB|protocol message was rejected because it was too big|Failed to serialize proto/,
    cause: 'A protobuf file cannot be larger than 2 GB, and the model with its weights is.',
    remedy:
      'Save the weights as external data; every command of trtforge writes models so when they are large.',
    versions: 'all',
    source: tensorrtIssue(4235),
  },
  {
    id: 'node-rejected',
    severity: 'error',
    isPlace: true,
    pattern: /While parsing node number (?<index>\d+) \[(?<operator>\w+)(?: -> "(?<output>[^"]{0,500})")?/,
    cause: 'The parser rejected node {index}, {operator} {output}.',
    remedy:
      'The lines after it have the reason: a plug-in that is not loaded, or an attribute, a type or a constant that this version does not take. Fold constants, change the opset, or use a newer TensorRT.',
    edit: '--fold',
    versions: 'all',
    source: tensorrtIssue(2721),
  },
  {
    id: 'input-not-constant',
    severity: 'error',
    pattern: /only supports input (?<input>\S+) as an initializer/,
    cause: 'An operator needs its input {input} as a constant, and the graph computes it.',
    remedy: 'Fold constants.',
    edit: '--fold',
    versions: 'before 8.6',
    source: tensorrtIssue(2721),
  },
  {
    id: 'importer-assertion',
    severity: 'error',
    isPlace: true,
    pattern:
      /In function (?!(?:import|check)FallbackPlugin|parse(?:Graph|Node|Model):)(?:import|check)?(?<operator>\w+):|Invalid Node - (?<node>\S+)|In node (?<index>\d+) with name: .{0,300}? and operator: (?<type>\w+)|(?<code>(?:UNSUPPORTED|INVALID)_NODE\w*)/,
    cause:
      'The parser rejected a node ({operator}{node}{type}{code}): an attribute, a type or a constant is not what this version takes.',
    remedy: 'The assertion below names it. Fold constants, change the opset, or use a newer TensorRT.',
    edit: '--fold',
    versions: 'all',
    source: tensorrtIssue(2570),
  },
  {
    id: 'no-runner',
    severity: 'error',
    isPlace: true,
    pattern: /(?:failed\. |^)(?<node>\S{1,500}) has no runners that implement it/,
    cause: 'This library has no implementation of the node {node} (NonMaxSuppression on tensorrt-rtx).',
    remedy: 'Export without it and do its work behind the engine, or build with TensorRT.',
    versions: 'TensorRT-RTX',
    source: 'https://github.com/NVIDIA/TensorRT-RTX/issues/5',
  },
  {
    id: 'if-ranks-differ',
    severity: 'error',
    isPlace: true,
    pattern:
      /IConditionalOutputLayer (?<node>\S{1,500}?)(?:_OutputLayer)?: Must have inputs with equal ranks when condition is not a build-time constant/,
    cause: 'The two branches of the If {node} return different numbers of axes.',
    remedy:
      'Let both return the same number of axes, or fix the dimensions the condition depends on so that it folds away.',
    edit: '{sizes} --fold',
    versions: '10.11 and later',
    source: tensorrtIssue(4603),
  },
  {
    id: 'uint8-between-operators',
    severity: 'error',
    pattern:
      /UInt8 network inputs must be consumed directly by a cast layer|does not support UINT8 types for intermediate tensors|input has type UInt8 but must have type/,
    cause: 'UINT8 is taken only as an input that a Cast reads, and as an output that a Cast writes.',
    remedy: 'Move the Cast in front of everything else that reads the input.',
    isPlace: true,
    versions: 'all',
    source: tensorrtIssue(3985),
  },
  {
    id: 'zero-point-not-zero',
    severity: 'error',
    isPlace: true,
    pattern: /Assertion failed: shiftIsAllZeros\(zeroPoint\)/,
    cause: 'The model is quantized with a zero point that is not 0, which only DLA takes.',
    remedy: 'Quantize symmetrically (ONNX Runtime: ActivationSymmetric, WeightSymmetric).',
    versions: 'all',
    source: tensorrtIssue(4698),
  },
  {
    id: 'scale-not-positive',
    severity: 'error',
    isPlace: true,
    pattern: /Assertion failed: \(?scaleAllPositive/,
    cause: 'A scale of the quantized model is 0 or negative: the calibration saw only one value there.',
    remedy: 'Calibrate with data in which no value is constantly 0, or leave that tensor out.',
    versions: 'all',
    source: tensorrtIssue(2267),
  },
  {
    id: 'if-branches-differ',
    severity: 'error',
    pattern: /IIfConditionalOutputLayer inputs must have the same shape/,
    cause: 'The two branches of an If have different shapes.',
    remedy:
      'Fix the dimensions the condition depends on so that it folds away; 10.11 and later allow different shapes of one rank.',
    edit: '{sizes} --fold',
    versions: 'before 10.11',
    source: tensorrtIssue(1731),
  },
  {
    id: 'external-data-unnamed',
    severity: 'error',
    pattern: /Failed to open file: *$/,
    cause:
      'The parser was passed the bytes of the model and not its path, so it cannot find the external data.',
    remedy: 'Pass the path: parse_from_file(PATH), or parse(bytes, path=PATH).',
    versions: 'all',
    source: tensorrtIssue(586),
  },
  {
    id: 'external-data-escapes',
    severity: 'error',
    pattern:
      /External data path: "(?<file>[^"]{1,1000})" escapes model directory|External data path validation failed/,
    cause:
      'The external data {file} lies outside the folder of the model, mostly behind a symbolic link, as in the cache of Hugging Face.',
    remedy:
      'Copy model and data into one folder (cp -L), or download with local_dir; trtforge follows the links itself.',
    versions: 'ONNX Runtime',
    source: 'https://github.com/microsoft/onnxruntime/issues/27353',
  },
  {
    id: 'network-without-output',
    severity: 'error',
    isPlace: true,
    pattern:
      /Network must have at least one output|'NoneType' object has no attribute '(?:serialize|create_execution_context|num_io_tensors|num_bindings)'/,
    cause:
      'The network is empty: the parser failed before, and the program went on without looking at its errors.',
    remedy:
      'Print them: if not parser.parse(…): [print(parser.get_error(i)) for i in range(parser.num_errors)]. The first of them is the cause; `trtforge build MODEL` prints it with what helps.',
    versions: 'all',
    source: tensorrtIssue(1731),
  },
  {
    id: 'external-data-missing',
    severity: 'error',
    pattern: /Failed to open file: (?<file>\S+)/,
    cause: "The model's external data, {file}, is not beside it.",
    remedy: 'Keep the model and every file it refers to together; `trtforge inspect` lists them.',
    versions: 'all',
    source: 'https://github.com/onnx/onnx-tensorrt/issues/818',
  },
  {
    id: 'model-file-missing',
    severity: 'error',
    pattern: /^Could not open file (?<file>\S.{0,1000})/,
    cause: 'The ONNX file {file} is not there, or may not be read.',
    remedy: 'Check the path: it counts from the folder that trtexec was started in.',
    versions: 'all',
    source: 'measured',
  },
  {
    id: 'model-unreadable',
    severity: 'error',
    pattern: /MODEL_DESERIALIZE_FAILED|Failed to parse ONNX model from file: (?<file>[^!]{1,1000})/,
    unless: /^Could not open file /,
    cause: 'The ONNX file is cut short, or no ONNX at all.',
    remedy: '`trtforge inspect` lists what is wrong with the file and where.',
    versions: 'all',
    source: 'measured',
  },
  {
    id: 'ir-version-too-new',
    severity: 'error',
    pattern: /Unsupported model IR version: (?<has>\d+), max supported IR version: (?<max>\d+)/,
    cause: 'The model file states IR version {has}, and this ONNX Runtime reads files up to {max}.',
    remedy:
      'Take a newer ONNX Runtime, or lower the version: a model that uses nothing new loses nothing. trtforge lowers it by itself where it runs the model.',
    edit: '--ir {max}',
    versions: 'ONNX Runtime',
    source: tensorrtIssue(4710),
  },
  {
    id: 'triton-field-unknown',
    severity: 'error',
    pattern:
      /Error parsing text-format inference\.ModelConfig: (?<line>\d+):\d+: .{0,300}has no field named "(?<field>\w{1,100})"/,
    cause:
      'This Triton has no field {field} in config.pbtxt (line {line}): it is misspelt, or of a newer server.',
    remedy:
      '`trtforge triton check` names the field that was meant; for one that is spelt right take a newer Triton, or leave it out.',
    versions: 'Triton',
    source: 'https://github.com/triton-inference-server/server/issues/4775',
  },
  {
    id: 'types-differ',
    severity: 'error',
    pattern:
      /element type \((?<left>\w+)\) differs from input \d+'s element type \((?<right>\w+)\)|must have identical types\. `input` type is (?<from>\w+) and `output` type is (?<to>\w+)/,
    cause: 'A node mixes {left} {from} and {right} {to}; a strongly typed network casts nothing by itself.',
    remedy: '`trtforge convert` puts the casts where they belong and checks every type.',
    versions: '10.x typed, 11.0 and later',
    source: 'https://github.com/NVIDIA/TensorRT/blob/v11.1/CHANGELOG.md',
  },
  {
    id: 'weak-typing-rejected',
    severity: 'error',
    pattern: /condition: !config\.getFlag\(BuilderFlag::kFP16\)/,
    cause: 'TensorRT-RTX builds strongly typed networks only, and a precision flag was set.',
    remedy: 'Convert the model instead: `trtforge convert MODEL --precision fp16`.',
    versions: 'TensorRT-RTX',
    source: 'https://github.com/NVIDIA/TensorRT-RTX/issues/2',
  },
  {
    id: 'int64-weights',
    severity: 'note',
    pattern: /Your ONNX model has been generated with INT64 weights/,
    cause: 'TensorRT before 10 casts INT64 to INT32.',
    remedy: 'Nothing, unless a later line reports clamped weights.',
    versions: 'before 10.0',
    source: 'measured',
  },
  {
    id: 'int64-clamped',
    severity: 'note',
    pattern: /One or more weights outside the range of INT32 was clamped/,
    cause: 'An INT64 constant does not fit INT32; it is nearly always the "to the end" of a Slice.',
    remedy: 'Check that it is a Slice end: `trtforge inspect` names the constants.',
    versions: 'before 10.0',
    source: tensorrtIssue(2721),
  },
];
