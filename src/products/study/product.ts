import { type Product, verbOf } from '../../cli/command.js';

const quality = verbOf('Quality');
const verb = verbOf('Products');

/** The inside of two models or engines: the cause of a failure, where values diverge, what to quantize. */
export const study: Product = {
  name: 'study',
  errors: ['TF_BUDGET_UNREACHABLE'],
  verbs: [
    quality(
      'compare layers',
      'compare the tensors inside a model with those of its original: where it diverges first',
      () => import('./commands/compare-layers.js'),
    ),
    quality(
      'bisect',
      'find what makes a typed model or an engine fail: nodes in 16 bits, a fusion, TF32',
      () => import('./commands/bisect.js'),
    ),
    verb(
      'convert advise',
      'which nodes to quantize within a budget of accuracy, and the model that has them',
      () => import('./commands/advise.js'),
    ),
  ],
  reports: async () => [
    (await import('./bisect/page.js')).bisectReport,
    (await import('./layers/page.js')).layersReport,
    (await import('./advise/page.js')).adviseReport,
  ],
  healer: async () => (await import('./heal.js')).heal,
  afterFailure: async () => (await import('./bisect/after-failure.js')).afterFailure,
};
