import { type Product, verbOf } from '../../cli/command.js';

const verb = verbOf('Products');

/** Whether an engine still does its job: task metrics, with the identity of engine and data beside them. */
export const evaluation: Product = {
  name: 'evaluation',
  errors: ['TF_EVAL_MIXED'],
  families: { eval: 'task metrics: does the engine still do its job' },
  verbs: [
    verb(
      'eval coco',
      'mAP of detections, with the figures of pycocotools',
      () => import('./commands/coco.js'),
    ),
    verb(
      'eval detector',
      'mAP of a detector, run over annotated images',
      () => import('./commands/detector.js'),
    ),
    verb(
      'eval classify',
      'top-1 and top-5 of a classifier, run over labelled images',
      () => import('./commands/classify.js'),
    ),
    verb(
      'eval embeddings',
      'cosine and distance between the embeddings of two networks',
      () => import('./commands/embeddings.js'),
    ),
    verb(
      'eval recogniser',
      'word error rate of a bundle, run over audio',
      () => import('./commands/recogniser.js'),
    ),
    verb('eval wer', 'word error rate of transcripts', () => import('./commands/wer.js')),
    verb(
      'compare-backends',
      'accuracy and latency of a model on several back ends, beside a typed or Q/DQ candidate',
      () => import('./commands/compare-backends.js'),
    ),
    verb(
      'compare-backends repair',
      'write table, summary and report again from the metrics.json files of a comparison',
      () => import('./commands/compare-backends-repair.js'),
    ),
  ],
  foreignFlags: async () => (await import('./script-flags.js')).scriptFlags,
  files: {
    'detector-metrics': async () => (await import('./detection/metrics-file.js')).detectorMetricsSchema,
    'not-run': async () => (await import('./run/variant.js')).notRunSchema,
  },
  reports: async () => [(await import('./compare/page.js')).comparisonReport],
  scorer: async () => (await import('./advise-scorer.js')).scorerFor,
  runRootSections: async () => (await import('./report/run-root.js')).evaluationSections,
};
