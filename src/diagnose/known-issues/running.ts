import { type KnownIssue, tensorrtIssue } from './issue.js';

export const runningIssues: readonly KnownIssue[] = [
  {
    id: 'graph-capture-refused',
    severity: 'warning',
    pattern:
      /operation not permitted when stream is capturing|operations that are not permitted under CUDA graph capture mode|CUDA graph capture failed/,
    cause:
      'The engine does something a CUDA graph cannot hold (loops, data-dependent shapes, weight streaming, some plug-ins), or another thread used the device while it was captured.',
    remedy: 'Run once before capturing and keep other threads off the device; else run without a graph.',
    versions: 'all',
    source: tensorrtIssue(2603),
  },
  {
    id: 'illegal-memory-access',
    severity: 'error',
    pattern: /an illegal memory access was encountered/,
    cause: 'A buffer is smaller than the engine writes or reads, or a plug-in is wrong.',
    remedy:
      'Check the size and type of every binding for the shapes at hand; compute-sanitizer names the kernel.',
    versions: 'all',
    source: tensorrtIssue(2835),
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
    remedy: 'Fix those that never change, or give equal ones the same symbol.',
    versions: '8.x',
    source: 'https://github.com/open-mmlab/mmdeploy/issues/869',
  },
];
