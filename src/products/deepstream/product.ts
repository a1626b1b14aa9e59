import { type Product, verbOf } from '../../cli/command.js';

const verb = verbOf('Products');

/** Sizes of DeepStream pipelines: how many video streams a GPU serves. */
export const deepstream: Product = {
  name: 'deepstream',
  families: { deepstream: "how many video streams a GPU serves, using DeepStream's method" },
  reports: async () => [(await import('./page.js')).sizingReport],
  runRootSections: async () => (await import('./deepstream-app-log.js')).pipelineSections,
  knownIssues: async () => (await import('./known-issues.js')).deepstreamIssues,
  verbs: [
    verb(
      'deepstream size',
      "how many video streams the GPU serves with a model, using DeepStream's method",
      () => import('./commands/size.js'),
    ),
    verb(
      'deepstream summary',
      'the summary of a model that DeepStream scripts read with grep',
      () => import('./commands/summary.js'),
    ),
    verb(
      'deepstream config',
      'write the configuration, labels and parser with which DeepStream runs an engine',
      () => import('./commands/config.js'),
    ),
    verb(
      'deepstream check',
      'whether nvinfer loads an engine as configured, or builds at every start; needs no DeepStream',
      () => import('./commands/check.js'),
    ),
  ],
};
