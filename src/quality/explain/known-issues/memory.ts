import { type KnownIssue, tensorrtIssue } from './issue.js';

/** Issues that leave a layer without a kernel. */
const MEMORY = ['gpu-out-of-memory', 'tactic-skipped-device-memory', 'host-out-of-memory'];

export const memoryIssues: readonly KnownIssue[] = [
  {
    id: 'workspace-parsed-tiny',
    severity: 'error',
    hiddenBySuccess: true,
    pattern: /Memory Pools: workspace: (?<size>0(?:\.\d+)?|[\d.]+e-\d+) MiB/,
    cause:
      'The workspace limit is {size} MiB. From TensorRT 10 on only the last character of --memPoolSize is the unit, so "32768MiB" means 32768 bytes, and nothing warns.',
    remedy:
      'Pass trtexec the bare number of MiB (workspace:32768), or let trtforge do it: it takes 32G, 32GiB and 32768M and passes the right number.',
    versions: '10.0 and later',
    source: 'measured',
  },
  {
    id: 'workspace-unit-bytes',
    severity: 'error',
    hiddenBySuccess: true,
    pattern: /^&&&& RUNNING .*--memPoolSize=\S*?:(?<number>\d+)(?<suffix>[KkMmGg]i?[Bb])(?=[\s,]|$)/,
    majors: [10, 99],
    unless: /Memory Pools: workspace: (?:0(?:\.\d+)?|[\d.]+e-\d+) MiB/,
    cause:
      'The size {number}{suffix} is read as {number} bytes: from TensorRT 10 on only the last character is the unit, and nothing warns. The line "Memory Pools" has what was used.',
    remedy: 'Write the bare number of MiB, which every version reads alike.',
    versions: '10.0 and later',
    source: 'measured',
  },
  {
    id: 'workspace-suffix-ignored',
    severity: 'error',
    hiddenBySuccess: true,
    pattern:
      /^&&&& RUNNING .*--memPoolSize=\S*?:(?<number>\d+)(?<suffix>(?:[KkGg]i?)?[Bb]|[KkGg])(?=[\s,]|$)/,
    majors: [8, 9],
    cause:
      'The size {number}{suffix} has a suffix that trtexec 8.6 and 9 ignore: they read {number} MiB. The line "Memory Pools" has what was used.',
    remedy: 'Write the bare number of MiB, which every version reads alike.',
    versions: '8.6 to 9.3',
    source: 'measured',
  },
  {
    id: 'no-implementation-foreign-node',
    severity: 'error',
    follows: MEMORY,
    pattern: /Could not find any implementation for node \{?ForeignNode\[(?<region>[^\]]{1,2000})/,
    cause:
      'The compiler fused the nodes {region} into one and found no kernel for it: the workspace is too small for every candidate, or the fused pattern is not supported (masks of DETR models are the usual case).',
    remedy:
      'Raise the workspace first (--workspace 32G). If it stays: export again with the dynamo exporter and a batch Dim, simplify the graph, or lower the optimization level to 2.',
    versions: 'all',
    source: tensorrtIssue(2035),
  },
  {
    id: 'no-implementation',
    severity: 'error',
    follows: MEMORY,
    pattern:
      /Could not find any implementation for node (?!\{?ForeignNode)(?<node>.{1,2000}?)(?:\.\)| due to |\.? In |\.?$)/,
    cause:
      'No kernel could be timed for the node {node}: the GPU ran out of memory while tuning, or this library has none for it.',
    remedy:
      'Free the GPU of other processes and raise the workspace; then try another TensorRT version. On 10.14.1 to 10.16.1 use one process per GPU.',
    versions: 'all',
    source: tensorrtIssue(3748),
  },
  {
    id: 'tactic-skipped-device-memory',
    severity: 'note',
    pattern:
      /Device memory is insufficient to use tactic|[Tt]ry decreasing the workspace|virtualMemoryBuffer\.cpp::.{0,100}resizePhysical.{0,40}OutOfMemory/,
    cause:
      'The GPU had less memory free than a kernel needed, which was left out of the choice. The build goes on with the others.',
    remedy: 'Nothing, unless the engine is slower than expected: then free the GPU and build again.',
    whenFollowed: {
      severity: 'error',
      cause:
        'The GPU had less memory free than every kernel of a layer needed. On Jetson it is the memory of the whole machine.',
      remedy:
        'Stop other programs, lower the maximum shapes of the profile or the precision (--precision fp16), or build on a machine of the same GPU with more memory free. A larger workspace needs more memory, not less: lower --workspace.',
    },
    versions: '8.0 and later',
    source: tensorrtIssue(3355),
  },
  {
    id: 'tactic-skipped-memory',
    severity: 'note',
    pattern:
      /Skipping tactic .{0,200}insu?ff?icient memory|insu?ff?icient memory on requested size|Some tactics do not have sufficient workspace memory/,
    cause:
      'One kernel needed more memory than there was and was left out of the choice. The build goes on with the others.',
    remedy: 'Nothing, unless the engine is slower than expected: then raise the workspace or free the GPU.',
    versions: '8.0 and later',
    source: 'https://github.com/ultralytics/ultralytics/issues/22271',
  },
  {
    id: 'tactic-skipped-exception',
    severity: 'note',
    pattern: /Skipping tactic \S{1,40} due to (?!insu)/,
    cause:
      'A kernel failed while it was timed and was left out of the choice. It is printed as an error, and the build can still pass.',
    remedy: 'Nothing, when the build passes.',
    versions: '10.x',
    source: tensorrtIssue(4028),
  },
  {
    id: 'gpu-out-of-memory',
    severity: 'error',
    pattern:
      /Requested amount of GPU memory \((?<bytes>\d+) bytes\) could not be allocated|Error Code \d+: OutOfMemory|Cuda Runtime \(out of memory\)|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|CUDA out of memory|CUDA initialization failure with error: 2\b|^Cuda failure(?: at .{1,500}?)?: (?:out of memory|2$)|Unable to determine GPU memory usage: out of memory/,
    cause:
      'The GPU has no room for an allocation the library needs: other processes use it, or the largest shape of the profile is too large.',
    remedy:
      'Stop other processes on the GPU, lower the maximum shapes, or build with weight streaming (10.0 and later).',
    whenPassed: {
      severity: 'warning',
      cause:
        'The GPU had no room for an allocation that was tried. The run went well all the same: kernels that needed it were left out of the choice.',
      remedy:
        'Nothing, unless the engine is slower than expected: then stop other processes on the GPU and build again.',
    },
    versions: 'all',
    source: tensorrtIssue(948),
  },
  {
    id: 'host-memory-pageable',
    severity: 'warning',
    pattern: /Allocate pageable host memory instead of pinned host memory/,
    cause:
      'The machine gave trtexec no page-locked memory for inputs and outputs, so it copies from ordinary memory: the times of the copies, and latency with them, are longer than a program with pinned buffers would see.',
    remedy: 'Free host memory or raise the limit of locked memory (ulimit -l), or measure without transfers.',
    versions: '10.8 and later',
    source: 'https://github.com/NVIDIA/TensorRT/blob/v11.1/samples/common/sampleDevice.h',
  },
  {
    id: 'tensor-too-large',
    severity: 'error',
    pattern: /exceeds the maximum element count of 2147483647/,
    cause: 'A tensor would have more than 2^31 - 1 elements.',
    remedy:
      'Lower the maximum batch or sequence of the profile; TensorRT 10.11 and later allow larger tensors in most layers.',
    versions: 'before 10.11',
    source: tensorrtIssue(1348),
  },
  {
    id: 'host-out-of-memory',
    severity: 'error',
    pattern: /std::bad_alloc|Cannot allocate memory|Out of memory: Killed process/,
    cause:
      'The machine, not the GPU, has no memory left: the builder keeps the model and its kernels in host memory, 2 GB and more for the kernels alone.',
    remedy:
      'Allow the process (or its container) more memory, build one engine at a time, or lower the optimization level.',
    versions: 'all',
    source: tensorrtIssue(4658),
  },
];
