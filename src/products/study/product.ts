import type { Product } from '../../cli/command.js';

/** What is inside two models or engines: what makes one fail, where values diverge, what to quantize. */
export const study: Product = {
  name: 'study',
  verbs: [
    {
      path: 'compare layers',
      group: 'Quality',
      summary: 'compare the tensors inside a model with those of its original: where it diverges first',
      load: async () => (await import('./commands/compare-layers.js')).command,
    },
    {
      path: 'compare quantized',
      group: 'Quality',
      summary:
        'compare a quantized model with its original on real samples, node by node, as auto-quantize-model does',
      load: async () => (await import('./commands/compare-quantized.js')).command,
    },
    {
      path: 'bisect',
      group: 'Quality',
      summary: 'find what makes a typed model or an engine fail: nodes in 16 bits, a fusion, TF32',
      load: async () => (await import('./commands/bisect.js')).command,
    },
    {
      path: 'convert advise',
      group: 'Products',
      summary: 'which nodes to quantize within a budget of accuracy, and the model that has them',
      load: async () => (await import('./commands/advise.js')).command,
    },
  ],
  files: {
    'io-contract': async () => (await import('./quantized/result.js')).ioContractSchema,
    'precision-scheme': async () => (await import('./quantized/result.js')).precisionSchemeSchema,
  },
  reports: async () => [
    (await import('./report/bisect.js')).bisectReport,
    (await import('./report/layers.js')).layersReport,
    (await import('./report/advise.js')).adviseReport,
  ],
  afterFailure: async () => (await import('./bisect/after-failure.js')).afterFailure,
};
