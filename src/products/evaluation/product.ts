import type { Product } from '../../cli/command.js';

/** Whether an engine still does its job: task metrics, with the identity of engine and data beside them. */
export const evaluation: Product = {
  name: 'evaluation',
  families: { eval: 'task metrics: does the engine still do its job' },
  verbs: [
    {
      path: 'eval coco',
      group: 'Products',
      summary: 'mAP of detections, with the figures of pycocotools',
      load: async () => (await import('./commands/coco.js')).command,
    },
    {
      path: 'eval detector',
      group: 'Products',
      summary: 'mAP of a detector, run over annotated images',
      load: async () => (await import('./commands/detector.js')).command,
    },
    {
      path: 'eval classify',
      group: 'Products',
      summary: 'top-1 and top-5 of a classifier, run over labelled images',
      load: async () => (await import('./commands/classify.js')).command,
    },
    {
      path: 'eval embeddings',
      group: 'Products',
      summary: 'cosine and distance between the embeddings of two networks',
      load: async () => (await import('./commands/embeddings.js')).command,
    },
    {
      path: 'eval recogniser',
      group: 'Products',
      summary: 'word error rate of a bundle, run over audio',
      load: async () => (await import('./commands/recogniser.js')).command,
    },
    {
      path: 'eval wer',
      group: 'Products',
      summary: 'word error rate of transcripts',
      load: async () => (await import('./commands/wer.js')).command,
    },
    {
      path: 'convert advise',
      group: 'Products',
      summary: 'which nodes to quantize within a budget of accuracy, and the model that has them',
      load: async () => (await import('./commands/advise.js')).command,
    },
    {
      path: 'compare-backends',
      group: 'Products',
      summary: 'accuracy and latency of a model on several back ends, beside a typed or Q/DQ candidate',
      load: async () => (await import('./commands/compare-backends.js')).command,
    },
    {
      path: 'compare-backends repair',
      group: 'Products',
      summary: 'write table, summary and report again from the metrics.json files of a comparison',
      load: async () => (await import('./commands/compare-backends-repair.js')).command,
    },
  ],
  foreignFlags: async () => (await import('./script-flags.js')).scriptFlags,
  files: {
    'detector-metrics': async () => (await import('./detection/metrics-file.js')).detectorMetricsSchema,
    'not-run': async () => (await import('./run/variant.js')).notRunSchema,
  },
  reports: async () => [
    (await import('./compare/page.js')).comparisonReport,
    (await import('../../report/pages/advise.js')).adviseReport,
  ],
  runRootSections: async () => (await import('./report/run-root.js')).evaluationSections,
};
