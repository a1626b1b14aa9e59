import { type Product, verbOf } from '../../cli/command.js';

const verb = verbOf('Products');

/** Model repositories of NVIDIA Triton Inference Server. */
export const triton: Product = {
  name: 'triton',
  errors: ['TF_TRITON_UNAVAILABLE'],
  families: { triton: 'model repositories of Triton Inference Server' },
  verbs: [
    verb(
      'triton export',
      'write engines as a model repository of Triton: batching, profiles, states, warm-up',
      () => import('./commands/export.js'),
    ),
    verb(
      'triton check',
      'what Triton would not load or would serve wrongly in a model repository; needs no server',
      () => import('./commands/check.js'),
    ),
    verb(
      'triton try',
      "let Triton's server serve a repository: ready, warm-up, a request, states, known answer",
      () => import('./commands/try.js'),
    ),
  ],
  exporters: async () => [(await import('./export/repository.js')).defaultExporter],
  runRootSections: async () => (await import('./page.js')).tritonSections,
};
