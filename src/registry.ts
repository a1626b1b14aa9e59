import type { CommandEntry } from './cli/command.js';

/** Every command, in the order of an engine's life. Modules load only when their command runs. */
export const registry: readonly CommandEntry[] = [
  {
    name: 'forge',
    summary: 'from an ONNX file to a named, checked engine and its report',
    load: async () => (await import('./cli/commands/forge.js')).command,
  },
  {
    name: 'inspect',
    summary: 'what is in an ONNX model, a TensorRT plan, or the layers of an engine',
    load: async () => (await import('./cli/commands/inspect.js')).command,
  },
  {
    name: 'convert',
    summary: 'FP32 ONNX to strongly typed FP16 or BF16',
    load: async () => (await import('./cli/commands/convert.js')).command,
  },
  {
    name: 'build',
    summary: 'build an engine, or find it in the store',
    load: async () => (await import('./cli/commands/build.js')).command,
  },
  {
    name: 'run',
    summary: 'run an engine, or a model on ONNX Runtime, and keep its outputs',
    load: async () => (await import('./cli/commands/run.js')).command,
  },
  {
    name: 'verify',
    summary: 'hold a model or an engine against another, or against a recorded stream',
    load: async () => (await import('./cli/commands/verify.js')).command,
  },
  {
    name: 'record',
    summary: 'record a streaming reference, convert one, or draft a contract',
    load: async () => (await import('./products/streaming/commands/record.js')).command,
  },
  {
    name: 'compare',
    summary: 'hold recorded outputs against others',
    load: async () => (await import('./cli/commands/compare.js')).command,
  },
  {
    name: 'bench',
    summary: 'measure an engine on the GPU, alone or in turns with another',
    load: async () => (await import('./cli/commands/bench.js')).command,
  },
  {
    name: 'streams',
    summary: 'how many video streams the GPU serves with a model, by the way of DeepStream',
    load: async () => (await import('./products/deepstream/commands/size.js')).command,
  },
  {
    name: 'cache',
    summary: 'what the engine store holds, and why it did not serve',
    load: async () => (await import('./cli/commands/cache.js')).command,
  },
  {
    name: 'gate',
    summary: 'say yes or no to results, by a policy with limits, baselines and waivers',
    load: async () => (await import('./cli/commands/gate.js')).command,
  },
  {
    name: 'report',
    summary: 'render the report of a run again',
    load: async () => (await import('./cli/commands/report.js')).command,
  },
  {
    name: 'explain',
    summary: 'what a TensorRT log means, and what to do about it',
    load: async () => (await import('./cli/commands/explain.js')).command,
  },
  {
    name: 'doctor',
    summary: 'what this machine has for TensorRT, and what to do about the rest',
    load: async () => (await import('./cli/commands/doctor.js')).command,
  },
  {
    name: 'toolchain',
    summary: 'find, install and remove TensorRT',
    load: async () => (await import('./cli/commands/toolchain.js')).command,
  },
];
