import type { Product } from '../../cli/command.js';

/** Sizes of DeepStream pipelines: how many video streams a GPU serves. */
export const deepstream: Product = {
  name: 'deepstream',
  families: { deepstream: "how many video streams a GPU serves, using DeepStream's method" },
  reports: async () => [(await import('./report.js')).sizingReport],
  runRootSections: async () => (await import('./ds-logs.js')).pipelineSections,
  knownIssues: async () => (await import('./known-issues.js')).deepstreamIssues,
  verbs: [
    {
      path: 'deepstream size',
      group: 'Products',
      summary: "how many video streams the GPU serves with a model, using DeepStream's method",
      load: async () => (await import('./commands/size.js')).command,
    },
    {
      path: 'deepstream repair',
      group: 'Products',
      summary: 'write benchmark_data.json again from the logs of an earlier sizing; needs no GPU',
      load: async () => (await import('./commands/repair.js')).command,
    },
    {
      path: 'deepstream summary',
      group: 'Products',
      summary: 'the summary of a model that DeepStream scripts read with grep',
      load: async () => (await import('./commands/summary.js')).command,
    },
    {
      path: 'deepstream config',
      group: 'Products',
      summary: 'write the configuration, labels and parser with which DeepStream runs an engine',
      load: async () => (await import('./commands/config.js')).command,
    },
    {
      path: 'deepstream check',
      group: 'Products',
      summary: 'whether nvinfer loads an engine as configured, or builds at every start; needs no DeepStream',
      load: async () => (await import('./commands/check.js')).command,
    },
  ],
};
