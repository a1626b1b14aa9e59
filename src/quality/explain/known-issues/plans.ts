import { type KnownIssue, tensorrtIssue } from './issue.js';

const SAMPLE_ENGINES = 'https://github.com/NVIDIA/TensorRT/blob/v11.1/samples/common/sampleEngines.cpp';

export const planIssues: readonly KnownIssue[] = [
  {
    id: 'plan-other-version',
    severity: 'error',
    pattern:
      /stdVersionRead == (?:kSERIALIZATION_VERSION|serializationVersion)|Version tag does not match|verifyHeader: \d{1,9} \(Magic tag does not match\)|engine plan file is not compatible with this version of TensorRT|^Serialization version is not supported/,
    cause: 'The plan was built with another TensorRT version, or the file is not a valid plan.',
    remedy:
      'Build it again with this version, or once with version-compatible and its runtime inside: without that, only the lean runtime of the same version runs it. `trtforge engine inspect PLAN` shows the version it was built with.',
    versions: 'all',
    source: tensorrtIssue(2072),
  },
  {
    id: 'plan-for-dla',
    severity: 'error',
    pattern: /EngineCapability::kDLA_STANDALONE, use cuDLA/,
    cause:
      'The plan was built for the DLA alone (--safe or DLA standalone), and TensorRT does not run such plans.',
    remedy: "Run it through NVIDIA's cuDLA, or build without --buildDLAStandalone.",
    versions: '8.x and later',
    source: tensorrtIssue(3615),
  },
  {
    id: 'ep-plan-not-loaded',
    severity: 'error',
    pattern: /TensorRT EP could not deserialize engine/,
    cause:
      "ONNX Runtime's TensorRT provider could not load the plan: it is of another TensorRT version, another GPU or another model, or is cut short.",
    remedy:
      'Delete the cached engine and its profile (or make the _ctx.onnx file again) and let this version write it; `trtforge engine inspect FILE` shows what the plan was built with.',
    versions: 'ONNX Runtime',
    source: 'https://github.com/microsoft/onnxruntime/issues/22139',
  },
  {
    id: 'ep-context-without-provider',
    severity: 'error',
    pattern: /Could not find an implementation for EPContext/,
    cause: 'The model is a plan wrapped for ONNX Runtime, and the session has not the provider that runs it.',
    remedy:
      'Create the session with the provider that made it (TensorrtExecutionProvider first), on its version and GPU, or run the original model.',
    versions: 'ONNX Runtime',
    source: 'https://github.com/microsoft/onnxruntime/issues/22131',
  },
  {
    id: 'plan-carries-runtime',
    severity: 'error',
    pattern: /Cannot deserialize engine with lean runtime/,
    cause:
      'The plan is version-compatible and carries the runtime that runs it, which is code of the machine; TensorRT asks for leave even in the version that built it.',
    remedy: 'Allow it if you trust the file: --allow-host-code (setEngineHostCodeAllowed in other programs).',
    versions: '8.6 and later',
    source: 'measured',
  },
  {
    id: 'plan-needs-a-runtime',
    severity: 'error',
    pattern: /Unexpected call to stub deserializeEngine/,
    cause: 'A dispatch runtime runs only what a plan carries, and this plan carries no runtime.',
    remedy:
      'Build with version-compatible and without exclude-lean-runtime, or load it with the lean or full runtime of the version that built it.',
    versions: '8.6 and later',
    source: 'measured',
  },
  {
    id: 'plan-corrupt',
    severity: 'error',
    pattern:
      /magicTagRead == kMAGIC_TAG|magicTag == rt::kPLAN_MAGIC_TAG|blobSize > numericCast|Failed to read header from the stream|Failed to verify a plan tag|[Rr]ead \d{1,20} out of \d{1,20} bytes|Not a valid plan stream|No engine found in plan|^Plan file is (?:empty|incorrect)|^Engine (?:blob )?is empty\. Nothing to deserialize/,
    cause:
      'The file is not a plan of this product, or it is cut short: an interrupted download, a Git LFS pointer, or a foreign header in front.',
    remedy: '`trtforge engine inspect FILE` shows what it is; fetch or build it again.',
    // The same reader opens timing caches, and a build goes on without one.
    unless: /Detected invalid timing cache|timing cache will not be used/i,
    versions: 'all',
    source: 'measured',
  },
  {
    id: 'plan-other-gpu',
    severity: 'error',
    pattern: /expecting compute (?<expected>\d+\.\d+) got compute (?<got>\d+\.\d+), please rebuild/,
    cause: 'The plan and this GPU have different compute capabilities ({expected} and {got}).',
    remedy: 'Build for this GPU, or with hardware compatibility.',
    versions: 'all',
    source: tensorrtIssue(564),
  },
  {
    id: 'plan-other-gpu-model',
    severity: 'warning',
    pattern: /Using an engine plan file across different models of devices/,
    cause:
      'The plan was built on another GPU model of the same architecture, or on this one with other clocks (a false alarm known on Jetson).',
    remedy: 'Build on the GPU it serves if speed matters.',
    versions: '8.x to 10.x',
    source: 'https://docs.nvidia.com/deeplearning/tensorrt/latest/reference/support-policies.html',
  },
  {
    id: 'plan-empty',
    severity: 'error',
    hiddenBySuccess: true,
    pattern: /Attempting to access an empty engine|Created engine with size: 0 MiB/,
    cause:
      'The build failed while trtexec streamed the plan into its file, and an empty or cut file is left behind although the log has "Engine built".',
    remedy: 'Read the errors before it, and delete the file: it is not an engine.',
    versions: '10.13 and later',
    source: SAMPLE_ENGINES,
  },
  {
    id: 'engine-file-missing',
    severity: 'error',
    pattern: /Error (?:opening|loading) engine file: (?<file>\S.{0,1000})/,
    cause: 'The engine file {file} is not there, or may not be read.',
    remedy: 'Check the path: it counts from the folder that trtexec was started in.',
    versions: 'all',
    source: SAMPLE_ENGINES,
  },
  {
    id: 'engine-not-saved',
    severity: 'error',
    pattern:
      /Saving engine to file failed|^Cannot open engine file: |Cannot write to FileStreamWriter|Failed to open engine file for reading|^Error when reading engine file/,
    cause: 'The engine was built and could not be written to the path of --saveEngine.',
    remedy: 'Check that the folder exists, is writable and has room; the file that is left is not an engine.',
    versions: 'all',
    source: SAMPLE_ENGINES,
  },
  {
    id: 'timing-cache-rejected',
    severity: 'warning',
    pattern: /Detected invalid timing cache|timing cache will not be used/i,
    cause:
      'TensorRT rejected the timing cache: it was made by another version or for another GPU, and the build takes its full time. 8.6 prints it too for a cache of its own when only the part of its compiler (a line "myelinCache") cannot be read back, and still uses the rest.',
    remedy:
      'Keep one cache file per version and GPU, as trtforge does; the time of the build shows whether it was used.',
    versions: 'all',
    source: tensorrtIssue(1413),
  },
  {
    id: 'multi-gpu-process',
    severity: 'error',
    pattern: /Cask (?:Pooling|Convolution).{0,200}Execute Failure/,
    cause:
      'A second engine was built on another GPU in the same process, which these versions do not survive.',
    remedy: 'One process per GPU, or another version.',
    versions: '10.14.1 to 10.16.1',
    source: tensorrtIssue(4845),
  },
  {
    id: 'myelin-cache-line',
    severity: 'note',
    pattern: /myelinCache\.h::deserializeFromBuffer/,
    cause: "The compiler's own cache could not be kept. It is printed as an error on builds that are fine.",
    remedy: 'Nothing.',
    versions: '8.6',
    source: 'measured',
  },
  {
    id: 'host-code-not-allowed',
    severity: 'error',
    pattern: /setEngineHostCodeAllowed/,
    cause:
      'A version-compatible plan carries its own runtime, which is code, and the loader has no permission to run it.',
    remedy:
      'Allow it only for plans you trust: IRuntime::setEngineHostCodeAllowed(true); trtexec does so with --versionCompatible.',
    versions: '8.6 and later',
    source: 'https://docs.nvidia.com/deeplearning/tensorrt/latest/reference/support-policies.html',
  },
];
