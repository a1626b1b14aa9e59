import { describe, expect, it } from 'vitest';
import { explainLines } from '../../../src/quality/explain/explain.js';
import { knownIssues } from '../../../src/quality/explain/known-issues/index.js';

const explained = (...lines: readonly string[]) => explainLines('log', lines);
const banner = (code: number, flags = '') =>
  `&&&& RUNNING TensorRT.trtexec [TensorRT v${code}] # trtexec --onnx=m.onnx${flags}`;

/** One line for each issue, as users of TensorRT reported or trtexec's source prints it; a banner before it where the version matters. */
const lines: Readonly<Record<string, string | readonly string[]>> = {
  'workspace-parsed-tiny': '[I] Memory Pools: workspace: 0.03125 MiB, dlaSRAM: default',
  'workspace-unit-bytes': [
    banner(100600, ' --memPoolSize=workspace:8388608MiB'),
    '[I] Memory Pools: workspace: 8 MiB, dlaSRAM: default',
  ],
  'workspace-suffix-ignored': banner(8601, ' --memPoolSize=workspace:8G'),
  'no-implementation-foreign-node':
    '[E] Error[10]: IBuilder::buildSerializedNetwork: Error Code 10: Internal Error (Could not find any implementation for node {ForeignNode[/model/Cast_2.../model/Sigmoid]} due to insufficient workspace.)',
  'no-implementation':
    '[E] Error Code 10: Internal Error (Could not find any implementation for node /maxpool/MaxPool.)',
  'tactic-skipped-device-memory':
    '[W] [TRT] Tactic Device request: 4229MB Available: 2658MB. Device memory is insufficient to use tactic.',
  'kernel-failed': '[E] Error[1]: [cask.cpp::launch::75] Error Code 1: Cask (Cask convolution execution)',
  'output-address-missing':
    '[E] IExecutionContext::enqueueV3: Error Code 3: API Usage Error (Neither address or allocator is set for output tensor pairs.)',
  'cpp-name-removed': "trtbackend.cpp:100:45: error: 'kFP16' is not a member of 'nvinfer1::BuilderFlag'",
  'node-addon-not-registered': "Error: Module did not self-register: '/app/onnxruntime_binding.node'.",
  'plan-for-dla':
    '[E] Error[9]: Cannot deserialize serialized engine built with EngineCapability::kDLA_STANDALONE, use cuDLA APIs instead.',
  'ep-plan-not-loaded':
    'onnxruntime.capi.onnxruntime_pybind11_state.EPFail: [ONNXRuntimeError] : 11 : EP_FAIL : TensorRT EP could not deserialize engine from binary data',
  'ep-context-without-provider':
    "[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : Could not find an implementation for EPContext(1) node with name 'EPContextNode0'",
  'ep-profile-incomplete':
    '  what():  User needs to provide all the shapes. Following input(s) has no associated shape profiles provided: /model/NonZero_output_0',
  'triton-batch-above-engine':
    "E0101 10:00:00.000000 1 model_lifecycle.cc:638] failed to load 'det' version 1: Internal: autofill failed for model 'det': configuration specified max-batch 16 but TensorRT engine only supports max-batch 1",
  'triton-field-unknown':
    '[libprotobuf ERROR /protobuf/text_format.cc:317] Error parsing text-format inference.ModelConfig: 24:20: Message type "inference.ModelSequenceBatching.State" has no field named "initial_state".',
  'ir-version-too-new':
    '[ONNXRuntimeError] : 1 : FAIL : model.cc:181 Unsupported model IR version: 11, max supported IR version: 10',
  'int8-scales-widened': '  tensorrt-rtx warning (foreignNode) Converting conv activation scales to fp32.',
  'refit-needs-gpu':
    '[E] Error Code 1: Myelin (MyelinCheckException: graph_jit.cpp:278: CHECK(status == CUDA_SUCCESS) failed.)',
  'tactic-skipped-memory':
    '[W] [TRT] Skipping tactic 3 due to insuficient memory on requested size of 4300 detected for tactic 4.',
  'tactic-skipped-exception':
    '[E] Error Code: 9: Skipping tactic 0x0000000000000000 due to exception cudaEventElapsedTime',
  'gpu-out-of-memory':
    '[E] Error[2]: Requested amount of GPU memory (8589934592 bytes) could not be allocated.',
  'host-memory-pageable':
    '[W] Allocate pageable host memory instead of pinned host memory. H2D and D2H copy latencies may become longer.',
  'tensor-too-large': 'Tensor x exceeds the maximum element count of 2147483647',
  'host-out-of-memory': 'terminate called after throwing an instance of std::bad_alloc',
  'builder-resource-missing':
    'Unable to load library: libnvinfer_builder_resource_sm86.so.10.16.2: cannot open shared object file',
  'lean-runtime-missing': 'Unable to load library: libnvinfer_lean.so.10: cannot open shared object file',
  'gpu-not-supported': 'Target GPU SM 70 is not supported by this TensorRT release.',
  'driver-not-needed':
    '[E] [checkMacros.cpp::catchCudaError::250] Error Code 1: Cuda Runtime (In catchCudaError at /_src/common/dispatch/checkMacros.cpp:250 (cudaError 35: CUDA driver version is insufficient for CUDA runtime version))',
  'driver-too-old': 'CUDA initialization failure with error: 35',
  'cuda-initialization-failed': 'CUDA initialization failure with error: 999',
  'no-gpu': '[E] Cannot find any available devices (GPUs)!',
  'gpu-number-unknown': '[I] Cannot find device ID 3!',
  'installation-mixed': 'Assertion validateCaskKLibSize(buffer.size) failed.',
  'library-mismatch': '[W] [TRT] TensorRT was linked against cuDNN 8.6.0 but loaded cuDNN 8.4.1',
  'plugin-not-found': 'getPluginCreator could not find plugin: EfficientNMS_TRT version: 1',
  'architecture-not-in-library': 'CUDA error: no kernel image is available for execution on the device',
  'lazy-loading-off': '[W] [TRT] CUDA lazy loading is not enabled.',
  'onnxruntime-provider-not-installed':
    'Failed to load library /node_modules/onnxruntime-node/bin/libonnxruntime_providers_shared.so with error: /node_modules/onnxruntime-node/bin/libonnxruntime_providers_shared.so: cannot open shared object file: No such file or directory',
  'onnxruntime-provider-unloadable':
    'Failed to load library libonnxruntime_providers_tensorrt.so with error: libnvinfer.so.10: cannot open shared object file',
  'library-not-found':
    'trtexec: error while loading shared libraries: libnvinfer.so.8: cannot open shared object file: No such file or directory',
  'library-unloadable':
    '[E] Uncaught exception detected: Unable to open library: /opt/p.so due to /opt/p.so: cannot open shared object file: No such file or directory',
  'nvrtc-architecture-unknown': 'nvrtc: error: invalid value for --gpu-architecture (-arch)',
  'python-flag-removed':
    "AttributeError: type object 'tensorrt_bindings.tensorrt.BuilderFlag' has no attribute 'FP16'",
  'python-attribute-removed':
    "AttributeError: 'tensorrt_bindings.tensorrt.IBuilderConfig' object has no attribute 'max_workspace_size'",
  'wheel-downloads-silently': 'Collecting tensorrt-cu12-libs==10.6.0',
  'plan-other-version':
    'Serialization assertion stdVersionRead == serializationVersion failed.Version tag does not match. Note: Current Version: 213, Serialized Engine Version: 232',
  'plan-carries-runtime':
    'IRuntime::deserializeCudaEngine: Error Code 4: API Usage Error (Cannot deserialize engine with lean runtime since IRuntime::getEngineHostCodeAllowed() is false.)',
  'plan-needs-a-runtime':
    'IRuntime::deserializeCudaEngine: Error Code 1: Internal Error (Unexpected call to stub deserializeEngine. In deserializeEngine at /_src/runtime/dispatchOnly/dispatchStubs.cpp:40)',
  'plan-corrupt': 'Serialization assertion magicTagRead == kMAGIC_TAG failed.Magic tag does not match',
  'plan-other-gpu':
    'The engine plan file is generated on an incompatible device, expecting compute 8.6 got compute 7.5, please rebuild.',
  'plan-other-gpu-model': 'Using an engine plan file across different models of devices is not recommended',
  'plan-empty': 'Assertion failure: false && "Attempting to access an empty engine!"',
  'engine-file-missing': '[11/20/2026-21:37:38] [E] Error opening engine file: missing.plan',
  'engine-not-saved': '[11/20/2026-21:37:38] [E] Saving engine to file failed.',
  'timing-cache-rejected': '[W] [TRT] Detected invalid timing cache, setup a local cache instead',
  'multi-gpu-process': 'Cask Pooling Runner Execute Failure',
  'myelin-cache-line': '[E] [TRT] 1: [myelinCache.h::deserializeFromBuffer::52] Error Code 1: Myelin',
  'host-code-not-allowed': 'call IRuntime::setEngineHostCodeAllowed(true) to load this plan',
  'shapes-overridden':
    '[W] Dynamic dimensions required for input: data, but no shapes were provided. Automatically overriding shape to: 1x3x224x224',
  'shape-missing-at-run':
    '[W] Shape missing for input with dynamic shape: dataAutomatically setting shape to: 1x3x224x224',
  'profile-missing': 'Network has dynamic or shape inputs, but no optimization profile has been defined.',
  'profile-not-ordered': 'Specified optimization profiles must satisfy MIN<=OPT<=MAX.',
  'profile-wrong-rank': 'x: number of dimensions is 4 but profile 0 has 3.',
  'profile-too-small':
    "IBuilder::buildSerializedNetwork: Error Code 4: Internal Error (kOPT values for profile 0 violate shape constraints: Conv_2: spatial dimension of convolution/deconvolution output cannot be negative (build-time output dimension of axis 2 is (+ (CEIL_DIV (+ samples -671) 160) 1)) Condition '<' violated: 351 >= 128. In operator() at /_src/runtime/core/shapeMachine.cpp:628)",
  'several-sizes-inferred':
    '[TensorRT] ERROR: (Unnamed Layer* 480) [Shuffle]: at most one dimension may be inferred',
  'profile-violates-shapes': 'kOPT values for profile 0 violate shape constraints: a != b',
  'reshape-changes-volume': 'IShuffleLayer /Reshape: reshape changes volume.',
  'static-shape-differs':
    '[E] [TRT] 3: [executionContext.cpp::setInputShape::2309] Error Code 3: API Usage Error (Parameter check failed, condition: engineDims.d[i] == dims.d[i]. Static dimension mismatch while setting input shape for images. Set dimensions are [4,3,640,640]. Expected dimensions are [1,3,640,640].)',
  'shape-outside-profile': 'Dimensions [8,3] exceed min ~ max range at index 0, maximum dimension is 4',
  'input-name-unknown': '[E] Cannot find input tensor with name "nope" in the network inputs!',
  'input-file-size':
    'Unexpected file size for input file: x.bin. Note: Input binding size is: 602112 bytes but the file size is 6 bytes. Double check',
  'int64-binding': '[W] [TRT] ModelImporter.cpp:420: Make sure input input_ids has Int64 binding.',
  'profile-not-self-consistent':
    '[W] [TRT] Profile kMIN values are not self-consistent. IShuffleLayer /l.0/Reshape_4: reshaping failed',
  'shapes-for-static-model':
    '[E] Static model does not take explicit shapes since the shape of inference tensors will be determined',
  'profile-out-of-range': 'Selected profile index 3 exceeds the number of profiles that the engine holds.',
  'profile-defaulted': '[W] 2 profiles detected but not set. Running with profile 0',
  'profile-copied': '[W] optShapes is being broadcasted to minShapes for tensor data',
  'option-too-new': [banner(8601), '[E] Unknown option: --bf16 '],
  'option-removed-precision': '[E] Unknown option: --fp16 ',
  'option-removed': '[E] Unknown option: --workspace 4096',
  'option-unknown': '[E] Unknown option: --nosuchflag ',
  'option-value-invalid':
    '[E] stoi conversion failure: failed to parse minShapes/optShapes/maxShapes. Please double check your input string.',
  'rms-normalization-unknown':
    '[E] [TRT] 3: getPluginCreator could not find plugin: RMSNormalization version: 1',
  'operator-unsupported': '[8] No importer registered for op: DCN',
  'group-normalization-form': 'While parsing node number 17 [GroupNormalization -> "y"]:',
  'topk-too-many': 'ITopKLayer /TopK: K exceeds the maximum value allowed (3840)',
  'topk-integer': 'Found invalid input type of INT32',
  'model-over-2gb': 'ValueError: message ModelProto exceeds maximum protobuf size of 2GB: 3143456712',
  'node-rejected': '[E] [TRT] ModelImporter.cpp:771: While parsing node number 1 [Einsum -> "y"]:',
  'input-not-constant':
    'This version of TensorRT only supports input K as an initializer. Try applying constant folding',
  'importer-assertion':
    'ERROR: builtin_op_importers.cpp:4531 In function importRange: [8] Assertion failed: inputs.at(0).isInt32()',
  'no-runner':
    '[07/04/2025-23:19:50] [E] Error[2]: [tacticSupply.cpp::getSupportedFormats::48] Error Code 2: Internal Error (Assertion !layerImpls.empty() failed. /NonMaxSuppression_1094 has no runners that implement it)',
  'if-ranks-differ':
    '[E] IBuilder::buildSerializedNetwork: Error Code 4: API Usage Error (IConditionalOutputLayer if_OutputLayer: Must have inputs with equal ranks when condition is not a build-time constant. Dimensions are [B,8] and [B,C,8].)',
  'uint8-between-operators':
    '[01/02/2026-12:10:31] [E] Error[4]: [network.cpp::validate::3162] Error Code 4: Internal Error (img: UInt8 network inputs must be consumed directly by a cast layer)',
  'zero-point-not-zero':
    '[6] Assertion failed: shiftIsAllZeros(zeroPoint): Non-zero zero point is not supported. Please set kENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA to enable asymmetric quantization if it is on DLA.',
  'scale-not-positive':
    '[6] Assertion failed: (scaleAllPositive || allowNegativeScale): Scale coefficients must all be positive',
  'if-branches-differ': 'IIfConditionalOutputLayer inputs must have the same shape. Shapes are [2] and [3].',
  'external-data-unnamed':
    '[TensorRT] ERROR: [TRT]/opt/tensorrt/TensorRT/parsers/onnx/onnx2trt_utils.cpp:1312: Failed to open file: ',
  'external-data-escapes':
    'Fail: [ONNXRuntimeError] : 1 : FAIL : External data path validation failed for initializer: enc.bias. Error: tensorprotoutils.cc:346 ValidateExternalDataPath External data path: "encoder.onnx.data" escapes model directory: "/home/u/.cache/huggingface"',
  'network-without-output':
    '[01/14/2022-11:30:19] [TRT] [E] 4: [network.cpp::validate::2633] Error Code 4: Internal Error (Network must have at least one output)',
  'external-data-missing': 'Failed to open file: model.onnx_data',
  'model-file-missing': [
    'Could not open file missing.onnx',
    '[11/20/2026-21:36:43] [E] [TRT] ModelImporter.cpp:901: Failed to parse ONNX model from file: missing.onnx!',
  ],
  'model-unreadable': 'Failed to parse ONNX model from file: missing.onnx!',
  'types-differ': "/Add: element type (half) differs from input 1's element type (float)",
  'weak-typing-rejected': 'Parameter check failed, condition: !config.getFlag(BuilderFlag::kFP16)',
  'int64-weights': '[W] [TRT] Your ONNX model has been generated with INT64 weights',
  'int64-clamped': '[W] [TRT] One or more weights outside the range of INT32 was clamped',
  'layernorm-fp16-overflow': 'Detected layernorm nodes in FP16: /ln/Pow',
  'fp16-subnormal-weights': '- 54 weights are affected by this issue: Detected subnormal FP16 values.',
  'fp16-overflow-weights':
    '[W]  - 2 weights are affected by this issue: Detected finite FP32 values which would overflow in FP16 and converted them to the closest finite FP16 value.',
  'int8-scale-missing':
    'Missing scale and zero-point for tensor y, expect fall back to non-int8 implementation',
  'int8-constant-without-dequantize':
    'IBuilder::buildSerializedNetwork: Error Code 4: API Usage Error (Quantized constant (wq) is only allowed before DQ or PLUGIN_V2 or kPLUGIN_V3 node. If this constant is not intended as a quantized floating-point value, consider using other data types such as kBOOL, kINT32, or kINT64 instead. In matchQuantizedConstantPluginOrDQ at /_src/optimizer/common/rewrite/qdqGraphOptimizer.cpp:4327)',
  'no-low-precision-conv': 'No low-precision conv kernel available for this strongly-typed Conv',
  'turing-fp32-products':
    "[E] IBuilder::buildSerializedNetwork: Error Code 1: Myelin ([pass.cpp:337: check_turing_op_compatibility] Cannot compile operation 'layer.0' for Turing (SM75): FP32 GEMM is not supported. In compileGraph at /_src/optimizer/myelin/codeGenerator.cpp:2012)",
  'weak-typing-deprecated': '[W] Weakly-typed networks have been deprecated in TensorRT',
  'precision-flag-dropped':
    '[W] Invalid usage, setting fp16 mode is not allowed if graph is strongly typed. Disabling BuilderFlag::kFP16.',
  'int8-random-ranges': banner(100600, ' --saveEngine=m.plan --int8'),
  'fp16-not-native':
    '[W] [TRT] Half2 support requested on hardware without native FP16 support, performance will be negatively affected.',
  'dla-not-there': '[E] Cannot create DLA engine, 0 not available',
  'dla-fallback':
    '[W] [TRT] Default DLA is enabled but layer Gather in embedding is not supported on DLA, falling back to GPU.',
  'graph-capture-failed': 'operation not permitted when stream is capturing',
  'profile-taken':
    '[E] [TRT] IExecutionContext::setOptimizationProfileAsync: Error Code 3: API Usage Error (Profile 0 has been chosen by another IExecutionContext. Use another profileIndex or destroy the IExecutionContext that use this profile.)',
  'timing-cache-merged':
    '[TensorRT] 2: [caskBuilderUtils.cpp::getCaskHandle::408] Error Code 2: Internal Error (Assertion !isGroupConv || (findConvShaderByHandle(klib, caskHandle) failed.)',
  'illegal-memory-access': 'Cuda Runtime (an illegal memory access was encountered)',
  'enqueue-bound': '[W] * Throughput may be bound by Enqueue Time rather than GPU Compute',
  'compute-time-unstable': '[W] * GPU compute time is unstable, with coefficient of variance = 7.3%.',
  'transfer-bound': '[W] * Throughput may be bound by host-to-device transfers for the inputs',
  'multiple-dynamic-values':
    'Myelin graph with multiple dynamic values may have poor performance if they differ.',
  'streams-overlap': '[W] * Multiple inference streams are used. Latencies may not be accurate',
  'timing-not-reported':
    '[I] The e2e network timing is not reported since it is inaccurate due to the extra synchronizations when the profiler is enabled.',
  'layers-overlap':
    '[W] The engine uses 2 auxiliary streams, so the "Total" latency may not be accurate because some layers may have run in parallel!',
  'first-load-slow':
    '[I] First deserialization time divided by average time is 2.7. Exceeds tolerance of 2x.',
  'refit-weights-missing': '[E] Missing (conv1, Kernel) for refitting.',
  'transfers-serialized': banner(100600, ' --exposeDMA'),
  'accuracy-check-failed': 'Accuracy loss for tensor y (cos): 0.3 [FAIL: >= threshold 0.1]',
  'process-crashed': './build.sh: line 3: 4711 Segmentation fault (core dumped) trtexec',
  'assertion-failed': 'Assertion failure: engine != nullptr',
  'uncaught-exception': '[E] Uncaught exception detected: std::exception',
};

describe('every known issue', () => {
  it('has a line here', () => {
    expect(Object.keys(lines).toSorted()).toEqual(knownIssues.map(({ id }) => id).toSorted());
  });

  it.each(Object.entries(lines))('%s is found by its line, and not as another', (id, text) => {
    const { issues } = explained(...[text].flat(), '&&&& PASSED TensorRT.trtexec [TensorRT v8601] # x');
    expect(issues.map((issue) => issue.id)).toEqual([id]);
    expect(`${issues[0]?.cause} ${issues[0]?.remedy}`).not.toMatch(/[{}]|undefined|\(\)| {2}/);
  });

  it.each([
    [
      "triton: unexpected shape for input 'images' for model 'det'. Expected [-1,3,640,640], got [1,3,384,640].",
      'shape-outside-profile',
    ],
    ['RuntimeError: Could not set shape torch.Size([5, 128, 3000]) for tensor x.', 'shape-outside-profile'],
    [
      'TensorRT backend: 2: [helpers.h::nvinfer1::smVerHex2Dig::694] Error Code 2: Internal Error (Assertion major >= 0 && major < 10 failed. )',
      'gpu-not-supported',
    ],
    [
      '[E] Error Code 4: API Usage Error (n: IShuffleLayer `input` and `output` must have identical types. `input` type is Float and `output` type is Int32.)',
      'types-differ',
    ],
    ['[E] Error Code 1: Cuda Runtime (invalid device kernel image)', 'architecture-not-in-library'],
    ['[E] Error Code 1: Myelin ([cublas] failed with CUBLAS_STATUS_EXECUTION_FAILED)', 'kernel-failed'],
    [
      "x.cpp:102: error: 'class nvinfer1::IOptimizationProfile' has no member named 'setShapeValues'",
      'cpp-name-removed',
    ],
    ['Error Code 4: API Usage Error (input ids for profile 0 is not set.)', 'ep-profile-incomplete'],
    // 8.6, 9.x and 10.0 to 10.6 say what CUDA answered, or its number where the macro CHECK asked; later ones where, too.
    ['Cuda failure: out of memory', 'gpu-out-of-memory'],
    ['Cuda failure: 2', 'gpu-out-of-memory'],
    ['Cuda failure at /s/samples/common/sampleDevice.h:301: out of memory', 'gpu-out-of-memory'],
    ['Cuda failure: 35', 'driver-too-old'],
    ['Cuda failure: 100', 'no-gpu'],
    ['Cuda failure: 101', 'gpu-number-unknown'],
    ['Cuda failure: invalid device ordinal', 'gpu-number-unknown'],
    ['Cuda failure: 209', 'architecture-not-in-library'],
    ['Cuda failure: 700', 'illegal-memory-access'],
    [
      'Cuda failure at /s/samples/common/sampleDevice.h:301: unspecified launch failure',
      'illegal-memory-access',
    ],
    // 8.6 says no more of a shape that is none; a number that is too large is an exception in all versions.
    ['[E] stoi', 'option-value-invalid'],
    ['[E] Uncaught exception detected: stoi', 'option-value-invalid'],
    ['[E] Unknown memory pool: foo', 'option-value-invalid'],
    ['[E] Percentile 101.000000is not in [0,100]', 'option-value-invalid'],
    ["[E] Found invalid number of 's when parsing 'x:1. Expected: 2, received: 1", 'option-value-invalid'],
    [
      '[W] Values missing for input shape tensor: sizesAutomatically setting values to: 1x1',
      'shape-missing-at-run',
    ],
    ['[E] Cannot open engine file: /no/such/folder/m.plan', 'engine-not-saved'],
    // 8.6 and 9, and from 10.0 on.
    ['[E] Engine blob is empty. Nothing to deserialize!', 'plan-corrupt'],
    ['[E] Engine is empty. Nothing to deserialize!', 'plan-corrupt'],
    ['[W] The CUDA graph capture on the stream has failed.', 'graph-capture-failed'],
    // 10.6, and 8.6.
    [
      '[E] Error[3]: IExecutionContext::setInputShape: Error Code 3: API Usage Error (Parameter check failed, condition: satisfyProfile. Set dimension [6,128,100] for tensor x does not satisfy any optimization profiles. Valid range for profile 0: [10,128,100]..[30,128,100].)',
      'shape-outside-profile',
    ],
    [
      '[E] Error[3]: [executionContext.cpp::setInputShape::2309] Error Code 3: API Usage Error (Parameter check failed at: runtime/api/executionContext.cpp::setInputShape::2309, condition: satisfyProfile Runtime dimension does not satisfy any optimization profile.)',
      'shape-outside-profile',
    ],
    ['[E] Error[4]: Dynamic input tensor x has 4 dimensions but profile 0 has 3.', 'profile-wrong-rank'],
    [
      '[E] Error[4]: Input tensor x and profile 0. At dimension axis 1, profile has min=1, opt=3, max=3 but tensor has 3.',
      'profile-wrong-rank',
    ],
    ['[E] Error[4]: Not a valid plan stream.', 'plan-corrupt'],
    ['[E] Error[1]: read 999968 out of 52703540 bytes', 'plan-corrupt'],
  ])('"%s" is %s', (line, id) => {
    const { issues } = explained(line, '&&&& PASSED TensorRT.trtexec [TensorRT v100600] # x');
    expect(issues.map((issue) => issue.id)).toEqual([id]);
  });

  it.each([
    [8601, 'option-too-new'],
    [100001, 'option-too-new'],
    [110100, 'option-removed-precision'],
  ])('--int4 is unknown to v%d for another reason than to 11: %s', (code, id) => {
    const { issues } = explained(
      banner(code),
      '[E] Unknown option: --int4 ',
      `&&&& FAILED TensorRT.trtexec [TensorRT v${code}] # x`,
    );
    expect(issues.map((issue) => issue.id)).toEqual([id]);
  });

  it.each([
    ['IShuffleLayer /l.0/Reshape_4: reshaping failed', 'the node /l.0/Reshape_4 cannot work'],
    ['embeddings.add: dimensions not compatible for elementwise.', 'the node embeddings.add cannot work'],
    ['', 'the node cannot work'],
  ])('a profile that contradicts itself, "%s", names the node where the line does', (rest, said) => {
    const line = `[W] [TRT] Profile kMAX values are not self-consistent. ${rest}`;
    expect(explained(line).issues[0]?.cause).toContain(said);
  });

  it('costs time that grows with the line only as the line does', () => {
    // A pattern that goes back at each of its words takes an hour of such a line, and the limit of a test ends it.
    const length = 1 << 20;
    for (const { pattern } of knownIssues) {
      const words = pattern.source
        .split('|')
        .map((part) => part.replace(/\(\?[<:!=][^)]*|[\\^$().*+?[\]{}]/g, ''))
        .filter((word) => word.length > 3);
      for (const word of words) pattern.test(word.repeat(Math.ceil(length / word.length)));
    }
  });

  it('a line of a million characters does no harm', () => {
    for (const text of [
      '[',
      'Skipping tactic ',
      'While parsing node number 1 [',
      '&&&& RUNNING --int8 ',
      '{ForeignNode[',
    ])
      explained(text.repeat(Math.ceil(1e6 / text.length)));
  });
});

describe('success that hides a failure', () => {
  it.each<[string, readonly string[], string, string]>([
    [
      'an engine of a shape nobody asked for',
      [lines['shapes-overridden'] as string],
      'shapes-overridden',
      'error',
    ],
    ['a workspace of 32 KB', [lines['workspace-parsed-tiny'] as string], 'workspace-parsed-tiny', 'error'],
    ['INT8 with made-up ranges', [], 'int8-random-ranges', 'error'],
    [
      'error lines nobody knows',
      ['[11/20/2026-10:00:01] [E] trouble of a new kind'],
      'passed-with-errors',
      'warning',
    ],
    [
      'a graph that was not used',
      [lines['graph-capture-failed'] as string],
      'graph-capture-failed',
      'warning',
    ],
    ['a layer that fell back', [lines['dla-fallback'] as string], 'dla-fallback', 'warning'],
    ['an empty plan', ['[I] Created engine with size: 0 MiB'], 'plan-empty', 'error'],
  ])('%s', (_what, middle, id, severity) => {
    const flags = id === 'int8-random-ranges' ? ' --int8' : '';
    const result = explained(
      banner(100600, flags),
      ...middle,
      '&&&& PASSED TensorRT.trtexec [TensorRT v100600]',
    );
    expect(result.outcome).toBe('passed');
    expect(result.issues).toMatchObject([{ id, severity }]);
  });

  it('INT8 with a calibration cache, or of an engine that is there, hides no failure', () => {
    for (const flags of [' --int8 --calib=c.cache', ' --calib=c.cache --int8', ' --loadEngine=m.plan --int8'])
      expect(explained(banner(100600, flags)).issues.map(({ id }) => id)).toEqual(['process-died']);
  });
});
