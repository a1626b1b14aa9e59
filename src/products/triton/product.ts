import type { Product } from '../../cli/command.js';

/** Model repositories of NVIDIA Triton Inference Server. */
export const triton: Product = {
  name: 'triton',
  families: { triton: 'model repositories of Triton Inference Server' },
  verbs: [
    {
      path: 'triton export',
      group: 'Products',
      summary: 'write engines as a model repository of Triton: batching, profiles, states, warm-up',
      load: async () => (await import('./commands/export.js')).command,
    },
    {
      path: 'triton check',
      group: 'Products',
      summary: 'what Triton would not load or would serve wrongly in a model repository; needs no server',
      load: async () => (await import('./commands/check.js')).command,
    },
    {
      path: 'triton try',
      group: 'Products',
      summary: "let Triton's server serve a repository: ready, warm-up, a request, states, known answer",
      load: async () => (await import('./commands/try.js')).command,
    },
  ],
  exporters: async () => [(await import('./export/exporter.js')).defaultExporter],
  runRootSections: async () => (await import('./report.js')).tritonSections,
};
