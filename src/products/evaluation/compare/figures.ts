import { z } from 'zod';
import { type Metric, metricSchema } from '../../../quality/tasks/task.js';
import { classificationResultSchema } from '../classification/result.js';
import { type DetectorMetrics, detectorMetricsSchema, metricsOf } from '../detection/metrics-file.js';
import { detectorResultSchema } from '../detection/result.js';
import { type EmbeddingsResult, embeddingsResultSchema } from '../embeddings/result.js';
import { latencySchema } from '../run/evaluate.js';
import type { ComparedTaskId, Variant } from '../run/variant.js';
import { recogniserResultSchema } from '../speech/result.js';

/** The figures that a comparison shows of one variant, whatever the task. */
export const figuresSchema = z.object({
  /** The one that is compared comes first. */
  metrics: z.array(metricSchema),
  comparabilityKey: z.string(),
  dataDigest: z.string(),
  samples: z.number(),
  /** Of runs alone, of speech from the features of an utterance to its text; null where every time was skipped. */
  latency: latencySchema,
  providers: z.array(z.string()),
  placement: z.array(z.string()),
  /** The files that ran: models or engines, with the SHA-256 of each. */
  files: z.array(z.object({ file: z.string(), sha256: z.string() })),
  /** Of an engine with a passport: its identity. */
  engineIdentity: z.string().nullable(),
  /** Precision at 101 recalls, overlap 0.50. */
  precisionCurve: z.array(z.number()).nullable(),
});
export type Figures = z.infer<typeof figuresSchema>;

interface Reader {
  /** null where it is not the metrics.json of a variant. */
  read(json: unknown): { readonly variant: Variant; readonly figures: Figures } | null;
}

function reader<T extends { readonly variant?: Variant | undefined }>(
  schema: z.ZodType<T>,
  figuresOf: (metrics: T) => Figures,
): Reader {
  return {
    read: (json) => {
      const { data } = schema.safeParse(json);
      return data?.variant === undefined ? null : { variant: data.variant, figures: figuresOf(data) };
    },
  };
}

/** Figures of any result of an evaluation that has a candidate: what its verb prints with `--json`, or writes as metrics.json; null for other JSON. */
export function figuresOfResult(json: unknown): Figures | null {
  const detected = detectorResultSchema.safeParse(json).data;
  const detector =
    detected === undefined ? detectorMetricsSchema.safeParse(json).data : metricsOf(detected, undefined);
  if (detector !== undefined) return detectorFigures(detector);
  const classified = classificationResultSchema.safeParse(json).data;
  if (classified !== undefined) return classifierFigures(classified);
  const spoken = recogniserResultSchema.safeParse(json).data;
  if (spoken !== undefined) return recogniserFigures(spoken);
  const embedded = embeddingsResultSchema.safeParse(json).data;
  return embedded === undefined ? null : embeddingsFigures(embedded);
}

/** The reader of each task's metrics.json. */
export const figureReaders: Readonly<Record<ComparedTaskId, Reader>> = {
  coco: reader(detectorMetricsSchema, detectorFigures),
  classify: reader(classificationResultSchema, classifierFigures),
  wer: reader(recogniserResultSchema, recogniserFigures),
};

function detectorFigures(file: DetectorMetrics): Figures {
  const names = ['mAP_50_95', 'mAP_50', 'mAP_75', 'mAP_small', 'mAP_medium', 'mAP_large'] as const;
  return {
    metrics: names.map(
      (name): Metric => ({ name, value: file.metrics[name], unit: 'share', higherIsBetter: true }),
    ),
    comparabilityKey: file.comparability_key,
    dataDigest: file.data_digest,
    samples: file.metrics.num_images,
    latency: file.latency,
    providers: file.providers,
    placement: file.placement,
    files: [{ file: file.engine_path ?? file.onnx_path ?? '', sha256: file.sha256 }],
    engineIdentity: file.identity,
    precisionCurve: file.precision_curves?.at50 ?? null,
  };
}

const factsOf = ({ backend, warnings, file, sha256, identity }: EmbeddingsResult['candidate']) => ({
  providers: [backend],
  placement: warnings,
  files: [{ file, sha256 }],
  engineIdentity: identity,
  precisionCurve: null,
});

function classifierFigures({ candidate, run, ...file }: z.infer<typeof classificationResultSchema>): Figures {
  return {
    metrics: file.metrics,
    comparabilityKey: file.comparabilityKey,
    dataDigest: file.dataDigest,
    samples: file.images,
    latency: run.latency,
    ...factsOf(candidate),
  };
}

function recogniserFigures({ run, ...file }: z.infer<typeof recogniserResultSchema>): Figures {
  return {
    metrics: [
      ...file.metrics,
      { name: 'speed', value: run.speed, unit: 'times the speed of the sound', higherIsBetter: true },
    ],
    comparabilityKey: file.comparabilityKey,
    dataDigest: file.dataDigest,
    samples: file.utterances,
    latency: run.latency,
    providers: [run.backend],
    placement: [],
    files: run.files,
    engineIdentity: null,
    precisionCurve: null,
  };
}

function embeddingsFigures({ candidate, runs, ...result }: EmbeddingsResult): Figures {
  return {
    metrics: result.metrics,
    comparabilityKey: result.comparabilityKey,
    dataDigest: result.dataDigest,
    samples: result.n_samples,
    latency: runs.candidate.latency,
    ...factsOf(candidate),
  };
}
