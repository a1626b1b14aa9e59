import { type KnownIssue, tensorrtIssue } from './issue.js';

export const installationIssues: readonly KnownIssue[] = [
  {
    id: 'builder-resource-missing',
    severity: 'error',
    pattern: /Unable to load library: (?<library>libnvinfer_builder_resource[^\s:]*)/,
    cause:
      'The library of kernels for this GPU, {library}, is not installed beside libnvinfer. Engines still run; none can be built.',
    remedy: 'Install the builder resource of the same TensorRT version for this compute capability.',
    versions: '10.8 and later',
    source: 'measured',
  },
  {
    id: 'lean-runtime-missing',
    severity: 'error',
    pattern: /Unable to load library: (?<library>libnvinfer_lean[^\s:]*)/,
    cause:
      'A version-compatible engine carries the lean runtime inside, and {library} is not installed beside libnvinfer.',
    remedy:
      'Install the lean runtime, or build with exclude-lean-runtime and load the engine with a lean runtime of the same version.',
    versions: '8.6 and later',
    source: 'measured',
  },
  {
    id: 'gpu-not-supported',
    severity: 'error',
    pattern: /Target GPU SM (?<sm>\d+) is not supported by this TensorRT release|Unsupported SM|smVerHex2Dig/,
    cause:
      'This TensorRT release has no kernels for the GPU: it is newer or older than the release supports.',
    remedy:
      'sm_120 needs 10.8 or later; Pascal (6.x) ended with 8.6, Volta (7.0) with 10.4. `trtforge doctor` shows where this GPU stands.',
    versions: 'all',
    source: tensorrtIssue(3826),
  },
  {
    id: 'driver-not-needed',
    severity: 'note',
    pattern:
      /catchCudaError.{0,300}cudaError 35\b|^CUDA driver version is insufficient for CUDA runtime version$|Cuda Error in \w{1,100}: 35\b/,
    cause:
      'While it reported another error the library looked for a GPU and found no driver, which a build of tensorrt-rtx does not need.',
    remedy: 'Nothing: read the error beside it.',
    versions: 'TensorRT-RTX',
    source: 'measured',
  },
  {
    id: 'driver-too-old',
    severity: 'error',
    pattern:
      /CUDA initialization failure with error: 35\b|CUDA driver version is insufficient|^Cuda failure: 35$/,
    cause: 'The NVIDIA driver is older than the CUDA version of the library, or there is no driver at all.',
    remedy: 'Update the driver (CUDA 13 needs 580 or later). In a container: start it with --gpus all.',
    versions: 'all',
    source: tensorrtIssue(2879),
  },
  {
    id: 'cuda-initialization-failed',
    severity: 'error',
    pattern: /CUDA initialization failure with error: (?!2\b)(?<number>\d+)/,
    cause:
      'CUDA could not start (error {number}): no GPU is visible, or driver and kernel module do not match.',
    remedy: 'Check nvidia-smi, CUDA_VISIBLE_DEVICES and the container flags.',
    versions: 'all',
    source: tensorrtIssue(149),
  },
  {
    id: 'no-gpu',
    severity: 'error',
    pattern:
      /Cannot find any available devices \(GPUs\)|Unable to determine GPU memory usage(?!: out of memory)|no CUDA-capable device is detected|^Cuda failure: 100$/,
    cause: 'No usable GPU was found.',
    remedy:
      'Check nvidia-smi, CUDA_VISIBLE_DEVICES and the container flags. Without a GPU, build with --target tensorrt-rtx.',
    versions: 'all',
    source: 'measured',
  },
  {
    id: 'gpu-number-unknown',
    severity: 'error',
    pattern: /Cannot find device ID \d|invalid device ordinal|^Cuda failure: 101$/,
    cause: 'There is no GPU of the requested number: CUDA counts those that it can see, from 0.',
    remedy:
      'Check --device, and CUDA_VISIBLE_DEVICES, which hides GPUs and numbers the others anew; `trtforge doctor` lists them.',
    versions: 'all',
    source: 'https://github.com/NVIDIA/TensorRT/blob/v11.1/samples/common/sampleDevice.cpp',
  },
  {
    id: 'installation-mixed',
    severity: 'error',
    pattern: /validateCaskKLibSize|createCaskKernelLibraryImpl/,
    cause:
      'The library of kernels for this GPU (libnvinfer_builder_resource) is not the one of this libnvinfer: it is damaged, of another GPU or version, or libraries of different TensorRT builds are loaded together.',
    remedy:
      'Install libnvinfer and its builder resources from one package of one version, and leave one TensorRT on the loader path; `trtforge doctor` lists them all.',
    versions: '10.x',
    source: tensorrtIssue(4569),
  },
  {
    id: 'library-mismatch',
    severity: 'warning',
    pattern:
      /TensorRT was linked against (?<linked>cu[\w/ ]{1,40} [\d.]+) but loaded (?<loaded>cu[\w/ ]{1,40} [\d.]+)/,
    cause: 'TensorRT was linked against {linked} and found {loaded}.',
    remedy: 'Take the other version off LD_LIBRARY_PATH.',
    versions: '7.x to 8.6',
    source: 'https://github.com/open-mmlab/mmdeploy/issues/1941',
  },
  {
    id: 'architecture-not-in-library',
    severity: 'error',
    pattern:
      /no kernel image is available for execution on the device|invalid device kernel image|Internal cuTensor permutate execute failed|^Cuda failure: 209$/,
    cause: 'A library or plug-in was compiled for other GPU architectures than this one.',
    remedy: 'Install the build for this GPU, or compile the plug-in for its architecture.',
    versions: 'all',
    source: 'https://github.com/NVIDIA/Stable-Diffusion-WebUI-TensorRT/issues/163',
  },
  {
    id: 'lazy-loading-off',
    severity: 'note',
    pattern: /CUDA lazy loading is not enabled/,
    cause: 'CUDA loads every kernel at start, which costs memory and time.',
    remedy: 'Set CUDA_MODULE_LOADING=LAZY.',
    versions: '8.5 to 10.x',
    source: tensorrtIssue(2846),
  },
  {
    id: 'onnxruntime-provider-not-installed',
    severity: 'error',
    pattern:
      /Failed to load library \S*libonnxruntime_providers_\w+\.so with error: \S*(?<library>libonnxruntime_providers_\w+\.so): cannot open/,
    cause:
      "ONNX Runtime's CUDA and TensorRT providers are libraries of their own, and {library} is not there.",
    remedy:
      'For Node.js run script/install.js in the folder of onnxruntime-node with ONNXRUNTIME_NODE_INSTALL=cuda12 (Linux x64); for Python install onnxruntime-gpu in place of onnxruntime.',
    versions: 'ONNX Runtime',
    source: 'measured',
  },
  {
    id: 'onnxruntime-provider-unloadable',
    severity: 'error',
    pattern:
      /Failed to load library \S*libonnxruntime_providers_(?<provider>\w+)\.so with error: (?<library>[^\s:]+): cannot open/,
    cause:
      "ONNX Runtime's {provider} provider was built for other CUDA or TensorRT libraries than are here: {library} is missing.",
    remedy:
      'Install the libraries of the versions it was built for, or the ONNX Runtime that fits those installed.',
    versions: 'ONNX Runtime',
    source: 'https://github.com/microsoft/onnxruntime/issues/21264',
  },
  {
    id: 'library-not-found',
    severity: 'error',
    pattern:
      /(?<library>lib(?:nvinfer|nvonnxparser|cudart|cudnn|cublas|nvrtc|tensorrt)[\w.+-]{0,100}): cannot open shared object file/,
    cause: 'The library {library} is not where the loader looks.',
    remedy:
      'Install the package it belongs to, or put its folder on LD_LIBRARY_PATH; `trtforge doctor` lists every TensorRT it finds. The number behind .so is the major version that is needed.',
    whenPassed: {
      severity: 'warning',
      cause:
        'The library {library} is not where the loader looks; what needs it was left out, and the run went well without.',
      remedy:
        'Nothing, unless a model needs what was left out (plug-ins mostly): then install the package it belongs to.',
    },
    versions: 'all',
    source: 'https://github.com/microsoft/onnxruntime/issues/13501',
  },
  {
    id: 'library-unloadable',
    severity: 'error',
    pattern: /Unable to open library: (?<library>\S{1,300}) due to (?<why>.{1,500})/,
    cause: 'trtexec could not load {library}: {why}',
    remedy:
      'A file that is not found needs its full path, or its folder on LD_LIBRARY_PATH; a symbol that is not found is of another TensorRT: compile the plug-in against this one.',
    versions: '8.6 and later',
    source: 'https://github.com/NVIDIA/TensorRT/blob/v11.1/samples/common/common.h',
  },
  {
    id: 'nvrtc-architecture-unknown',
    severity: 'error',
    pattern: /nvrtc: error: invalid value for --gpu-architecture/,
    cause: 'The run-time compiler of this CUDA is older than the GPU.',
    remedy: 'Install the CUDA version that this TensorRT was built for.',
    versions: '8.0 and later',
    source: tensorrtIssue(1398),
  },
  {
    id: 'cpp-name-removed',
    severity: 'error',
    pattern:
      /'(?<name>\w{1,80})' is not a member of '(?<of>nvinfer1::\w{1,80}|nvonnxparser::\w{1,80})|'class (?<type>nvinfer1::\w{1,80})' has no member named '(?<member>\w{1,80})'/,
    cause:
      'A C++ program for an older TensorRT uses {name} {member} of {of} {type}, which these headers no longer have.',
    remedy:
      'Compile it against the TensorRT that it was written for, or port it: in 11 every network is strongly typed and of explicit batch (no kFP16, kINT8, kEXPLICIT_BATCH, platformHasFastFp16; the types are in the model, `trtforge convert`), and setShapeValues is setShapeValuesV2.',
    versions: '10.0 and later',
    source: 'https://github.com/lightvector/KataGo/issues/1207',
  },
  {
    id: 'node-addon-not-registered',
    severity: 'error',
    pattern: /Module did not self-register: '?(?<file>[^'\n]{1,500})/,
    cause:
      'The addon {file} was loaded a second time in one process (worker threads, a test runner that resets modules), or was compiled for another Node.js.',
    remedy:
      'Load it once, in the main thread or in a child process; install it again with the Node.js that runs it.',
    versions: 'Node.js',
    source: 'https://github.com/microsoft/onnxruntime/issues/24486',
  },
  {
    id: 'python-flag-removed',
    severity: 'error',
    pattern: /type object .{0,100}BuilderFlag' has no attribute '(?<flag>\w+)'/,
    cause:
      'A Python script sets BuilderFlag.{flag}, which TensorRT 11 no longer has: every network is strongly typed.',
    remedy: 'Pass a typed model (`trtforge convert`), or pin tensorrt below 11.',
    versions: '11.0 and later',
    source: 'https://github.com/yuvraj108c/ComfyUI-Rife-Tensorrt/issues/25',
  },
  {
    id: 'python-attribute-removed',
    severity: 'error',
    pattern:
      /'(?:tensorrt[\w.]{0,60}\.)?(?<type>I(?:BuilderConfig|CudaEngine|ExecutionContext|NetworkDefinition)|Builder|Runtime)' object has no attribute '(?<name>\w{1,80})'|module 'tensorrt' has no attribute '(?<missing>\w{1,80})'/,
    cause:
      'A Python script for an older TensorRT uses {type} {name}{missing}, which this version no longer has.',
    remedy:
      'max_workspace_size is set_memory_pool_limit(MemoryPoolType.WORKSPACE, …); build_engine is build_serialized_network; num_bindings, get_binding_* and execute_async_v2 are num_io_tensors, get_tensor_* and execute_async_v3. Or pin the tensorrt that the script was written for.',
    versions: '8.4 to 10.0 and later',
    source: tensorrtIssue(3923),
  },
  {
    id: 'wheel-downloads-silently',
    severity: 'note',
    pattern: /(?:Collecting|Preparing metadata for|Downloading) tensorrt[-_]cu1\d[-_]libs/,
    cause:
      'The package on PyPI is a stub that downloads several GB from another index while pip prints only "Preparing metadata".',
    remedy: 'Wait, or name the index: --extra-index-url https://pypi.nvidia.com.',
    versions: '10.0 and later',
    source: 'https://github.com/NVIDIA/TensorRT-LLM/issues/10050',
  },
];
