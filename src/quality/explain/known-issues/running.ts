import { type KnownIssue, tensorrtIssue } from './issue.js';

export const runningIssues: readonly KnownIssue[] = [
  {
    id: 'graph-capture-failed',
    severity: 'warning',
    pattern:
      /operation not permitted when stream is capturing|operations that are not permitted under CUDA graph capture mode|CUDA graph capture failed|CUDA graph capture on the stream has failed|useCudaGraph flag has been ignored/,
    cause:
      'The engine does something a CUDA graph cannot capture (loops, data-dependent shapes, weight streaming, some plug-ins), or another thread used the device while it was captured.',
    remedy: 'Run once before capturing and keep other threads off the device; else run without a graph.',
    versions: 'all',
    source: tensorrtIssue(2603),
  },
  {
    id: 'profile-taken',
    severity: 'error',
    pattern: /Profile (?<profile>\d+) has been chosen by another IExecutionContext/,
    cause:
      'Two contexts want profile {profile} at the same time. An engine of TensorRT 8.6 lends a profile to one context at a time, unless it was built to share it.',
    remedy:
      'Build it with `--builder-config preview-features=profile-sharing-0806` (trtexec: --preview=+profileSharing0806), or run one inference at a time (one context, one stream). From 9.0 on every engine shares its profiles.',
    versions: '8.6',
    source: 'https://github.com/NVIDIA/TensorRT/blob/v8.6.1/include/NvInfer.h',
  },
  {
    id: 'timing-cache-merged',
    severity: 'error',
    pattern: /getCaskHandle::\d{1,6}\].{0,100}(?:Assertion|findConvShaderByHandle)/,
    cause:
      'A timing cache was merged from several devices or versions and names kernels that this library lacks.',
    remedy: 'Delete the timing cache and build again; keep one for each GPU and version, as trtforge does.',
    versions: '8.x to 10.x',
    source: tensorrtIssue(2144),
  },
  {
    id: 'illegal-memory-access',
    severity: 'error',
    pattern:
      /an illegal memory access was encountered|unspecified launch failure|CUDA_ERROR_(?:ILLEGAL_ADDRESS|LAUNCH_FAILED)|^Cuda failure: 7(?:00|19)$/,
    cause: 'A buffer is smaller than the engine writes or reads, or a plug-in is wrong.',
    remedy:
      'Check the size and type of every binding for the shapes of the call; compute-sanitizer names the kernel.',
    versions: 'all',
    source: tensorrtIssue(2835),
  },
  {
    id: 'kernel-failed',
    severity: 'error',
    follows: ['gpu-out-of-memory', 'architecture-not-in-library', 'illegal-memory-access'],
    pattern: /Cask convolution execution|CUBLAS_STATUS_EXECUTION_FAILED/,
    cause: 'The GPU could not run a kernel of the engine.',
    remedy:
      'The first CUDA error of the log has the reason; without one, run once with CUDA_LAUNCH_BLOCKING=1, which prints the error where it happens.',
    versions: 'all',
    source: tensorrtIssue(3760),
  },
  {
    id: 'output-address-missing',
    severity: 'error',
    pattern: /Neither address or allocator is set for (?:output )?tensor/,
    cause: 'The program ran an engine without giving it memory for one of its outputs.',
    remedy:
      'Set an address (or an output allocator, where the size depends on the data) for every output; of ONNX Runtime it is a known fault with outputs that nothing reads: leave them out of the model, or take a newer version.',
    versions: '8.5 and later',
    source: 'https://github.com/microsoft/onnxruntime/issues/26170',
  },
  {
    id: 'enqueue-bound',
    severity: 'warning',
    pattern: /Throughput may be bound by Enqueue Time/,
    cause:
      'The CPU needs longer to launch the kernels than the GPU to run them: the figure measures the CPU.',
    remedy: 'Measure with a CUDA graph, or with a larger batch.',
    versions: 'all',
    source: 'measured',
  },
  {
    id: 'compute-time-unstable',
    severity: 'warning',
    pattern: /GPU compute time is unstable, with coefficient of variance = (?<variance>[\d.]+)%/,
    cause: 'The GPU times vary by {variance} %: clocks that move, heat, or somebody else on the GPU.',
    remedy: 'Lock the clocks, use spin wait, measure longer; check that the GPU is yours.',
    versions: 'all',
    source: 'measured',
  },
  {
    id: 'transfer-bound',
    severity: 'warning',
    pattern: /Throughput may be bound by (?<which>host-to-device|device-to-host) transfers/,
    cause: 'The {which} copies take longer than the computation.',
    remedy: 'Keep tensors on the device, or measure without transfers if production has none.',
    versions: 'all',
    source: 'https://github.com/NVIDIA/TensorRT/blob/v11.1/samples/common/sampleReporting.cpp',
  },
  {
    id: 'multiple-dynamic-values',
    severity: 'note',
    pattern: /Myelin graph with multiple dynamic values may have poor performance/,
    cause: 'Several dimensions are dynamic, and the compiler cannot assume that they are equal.',
    remedy: 'Fix those that never change, or use one symbol for equal ones.',
    versions: '8.x',
    source: 'https://github.com/open-mmlab/mmdeploy/issues/869',
  },
  {
    id: 'streams-overlap',
    severity: 'note',
    pattern: /Multiple inference streams are used\. Latencies may not be accurate/,
    cause: 'Several inferences share the GPU, so each takes longer than it would alone.',
    remedy: 'Read the throughput; measure latency with one stream.',
    versions: 'all',
    source: 'https://github.com/NVIDIA/TensorRT/blob/v11.1/samples/common/sampleReporting.cpp',
  },
  {
    id: 'timing-not-reported',
    severity: 'warning',
    pattern: /^The e2e network timing is not reported since it is inaccurate/,
    cause:
      '--dumpProfile or --exportProfile profiled the only run there was, and a profiler slows it: trtexec prints no latency and no throughput.',
    remedy: 'Add --separateProfileRun, as trtforge does; trtexec 11 always profiles in a run of its own.',
    versions: '8.6 to 10.16',
    source: 'https://github.com/NVIDIA/TensorRT/blob/v10.16/samples/trtexec/trtexec.cpp',
  },
  {
    id: 'layers-overlap',
    severity: 'note',
    pattern: /The engine uses (?<streams>\d+) auxiliary streams, so the "Total" latency/,
    cause:
      'Layers run on {streams} auxiliary streams beside the main one, so their times add up to more than the whole takes.',
    remedy:
      'Read the times of layers against each other; build with --builder-config max-aux-streams=0 where the sum is to be the whole.',
    versions: '8.6 and later',
    source: 'https://github.com/NVIDIA/TensorRT/blob/v11.1/samples/common/sampleReporting.cpp',
  },
  {
    id: 'first-load-slow',
    severity: 'error',
    pattern: /First deserialization time divided by average time is (?<ratio>[\d.]+)\. Exceeds tolerance/,
    cause:
      'trtexec --timeDeserialize ends as failed where the first load of the engine takes over twice the average, here {ratio} times: the line is an information only.',
    remedy: 'Nothing is wrong with the engine; run it again with the file in the page cache.',
    versions: '8.6 and later',
    source: 'https://github.com/NVIDIA/TensorRT/blob/v11.1/samples/common/sampleInference.cpp',
  },
  {
    id: 'refit-weights-missing',
    severity: 'error',
    pattern: /Missing \((?<layer>.{1,300}), (?<role>\w{1,50})\) for refitting/,
    cause: 'Refitting the engine needs the {role} weights of {layer} as well.',
    remedy: 'Pass every weight that the refitter asks for; trtexec --dumpRefit lists them.',
    versions: '8.6 and later',
    source: 'https://github.com/NVIDIA/TensorRT/blob/v11.1/samples/common/sampleEngines.cpp',
  },
  {
    id: 'transfers-serialized',
    severity: 'warning',
    pattern: /^&&&& RUNNING [^\n]{0,8000} --exposeDMA/,
    cause: '--exposeDMA makes copies and compute wait for each other: throughput falls by nearly half.',
    remedy: 'Leave it out unless you study the copies themselves.',
    versions: 'all',
    source: 'https://github.com/NVIDIA/TensorRT/blob/v11.1/samples/common/sampleOptions.cpp',
  },
  {
    id: 'accuracy-check-failed',
    severity: 'error',
    pattern:
      /Accuracy validation FAILED|Accuracy loss for tensor (?<tensor>.{1,300}?) \(.{1,20}\): .{0,200}\[FAIL/,
    cause: 'The outputs are further from the reference than the threshold passed to trtexec.',
    remedy: '`trtforge verify` shows which outputs, how far, and against what tolerance.',
    versions: '11.1 and later',
    source: 'https://github.com/NVIDIA/TensorRT/blob/v11.1/samples/trtexec/trtexec.cpp',
  },
  {
    id: 'process-crashed',
    severity: 'error',
    follows: [
      'gpu-out-of-memory',
      'host-out-of-memory',
      'architecture-not-in-library',
      'illegal-memory-access',
    ],
    pattern: /^(?:\S{1,300}: line \d{1,9}: {1,9}\d{1,9} )?(?:Segmentation fault|Aborted|Bus error|Killed)\b/,
    cause: 'The process crashed or was killed without an error of its own.',
    remedy:
      'Killed is usually the kernel for want of memory (see dmesg). A segmentation fault points at a mixed installation, the driver, or this version: run `trtforge doctor`, then try another version. trtforge builds in a child process, so that such an end is an error and not the end of your program.',
    versions: 'all',
    source: tensorrtIssue(3760),
  },
  {
    id: 'assertion-failed',
    severity: 'error',
    pattern: /Assertion failure: (?<what>.{1,300})/,
    cause: 'trtexec stopped at an assertion of its own: {what}.',
    remedy: 'Read the errors before it; the assertion only follows from them.',
    versions: 'all',
    source: 'measured',
  },
  {
    id: 'uncaught-exception',
    severity: 'error',
    pattern: /Uncaught exception detected: (?<what>.{1,300})/,
    cause: 'trtexec ended with an exception: {what}.',
    remedy: 'The exception names the file or value at fault.',
    versions: 'all',
    source: 'measured',
  },
];
