import type { CommandEntry } from '../cli/command.js';

/** Every command, in the order of an engine's life. Modules load only when their command runs. */
export const registry: readonly CommandEntry[] = [
  {
    name: 'forge',
    summary: 'from an ONNX file to a named, checked engine and its report',
    load: async () => (await import('./forge.js')).command,
  },
  {
    name: 'inspect',
    summary: 'what is in an ONNX model, a TensorRT plan, or the layers of an engine',
    load: async () => (await import('./inspect.js')).command,
  },
  {
    name: 'convert',
    summary: 'FP32 ONNX to strongly typed FP16 or BF16',
    load: async () => (await import('./convert.js')).command,
  },
  {
    name: 'build',
    summary: 'build an engine, or find it in the store',
    load: async () => (await import('./build.js')).command,
  },
  {
    name: 'run',
    summary: 'run an engine, or a model on ONNX Runtime, and keep its outputs',
    load: async () => (await import('./run.js')).command,
  },
  {
    name: 'verify',
    summary: 'hold a model or an engine against another, or against a recorded stream',
    load: async () => (await import('./verify.js')).command,
  },
  {
    name: 'record',
    summary: 'record a streaming reference, convert one, or draft a contract',
    load: async () => (await import('./record.js')).command,
  },
  {
    name: 'compare',
    summary: 'hold recorded outputs against others',
    load: async () => (await import('./compare.js')).command,
  },
  {
    name: 'bench',
    summary: 'measure an engine on the GPU, alone or in turns with another',
    load: async () => (await import('./bench.js')).command,
  },
  {
    name: 'streams',
    summary: 'how many video streams the GPU serves with a model, by the way of DeepStream',
    load: async () => (await import('./streams.js')).command,
  },
  {
    name: 'cache',
    summary: 'what the engine store holds, and why it did not serve',
    load: async () => (await import('./cache.js')).command,
  },
  {
    name: 'gate',
    summary: 'say yes or no to results, by a policy with limits, baselines and waivers',
    load: async () => (await import('./gate.js')).command,
  },
  {
    name: 'report',
    summary: 'render the report of a run again',
    load: async () => (await import('./report.js')).command,
  },
  {
    name: 'explain',
    summary: 'what a TensorRT log means, and what to do about it',
    load: async () => (await import('./explain.js')).command,
  },
  {
    name: 'doctor',
    summary: 'what this machine has for TensorRT, and what to do about the rest',
    load: async () => (await import('./doctor.js')).command,
  },
  {
    name: 'toolchain',
    summary: 'find, install and remove TensorRT',
    load: async () => (await import('./toolchain.js')).command,
  },
];
