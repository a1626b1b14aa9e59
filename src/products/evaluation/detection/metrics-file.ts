import { dirname, isAbsolute, normalize, resolve, sep } from 'node:path';
import { z } from 'zod';
import { cocoResultSchema } from '../coco/result.js';
import { candidateSchema } from '../run/candidate.js';
import { type Variant, variantSchema } from '../run/variant.js';
import { type DetectorResult, detectorRunSchema } from './result.js';

const run = detectorRunSchema.shape;
const result = cocoResultSchema.shape;

/** metrics.json as auto-quantize-model's evaluators write it, and behind it what makes the figures comparable. */
export const detectorMetricsSchema = z.object({
  /** The file that ran: one of the two. */
  onnx_path: z.string().optional(),
  engine_path: z.string().optional(),
  /** The folder that has instances and images. */
  data_root: z.string(),
  instances: z.string(),
  images_dir: z.string(),
  providers: z.array(z.string()),
  imgsz: z.number(),
  max_images: z.number(),
  warmup_runs: z.number(),
  skip_latency: z.number(),
  conf: z.number(),
  iou: z.number(),
  max_det: z.number(),
  pre_nms_topk: z.number(),
  metrics: result.metrics,
  latency: run.latency,
  sha256: z.string(),
  identity: candidateSchema.shape.identity,
  precision: candidateSchema.shape.precision,
  back_end: z.string(),
  /** Nodes that ran somewhere else, for one. */
  placement: candidateSchema.shape.warnings,
  head: run.head,
  labels: run.labels,
  preprocessing: run.preprocessing,
  images_digest: run.imagesDigest,
  first_input: run.firstInput,
  images_per_second: z.number(),
  stats: result.stats,
  /** Mean precision at 101 recalls. */
  precision_curves: result.precision,
  subset: z.boolean(),
  data_digest: z.string(),
  comparability_key: z.string(),
  /** Irregularities of the data, counted: images that were missing, for one. */
  warnings: result.warnings,
  /** Of a comparison: which of its variants this is. */
  variant: variantSchema.optional(),
});
export type DetectorMetrics = z.infer<typeof detectorMetricsSchema>;

export function metricsOf(
  { run, metrics, ...scored }: DetectorResult,
  variant: Variant | undefined,
): DetectorMetrics {
  const { candidate, settings } = run;
  return {
    [candidate.kind === 'engine' ? 'engine_path' : 'onnx_path']: candidate.file,
    data_root: commonFolder(dirname(scored.instances), scored.imagesDir),
    instances: scored.instances,
    images_dir: scored.imagesDir,
    providers: [candidate.backend],
    imgsz: settings.imgsz[0],
    max_images: metrics.num_images,
    warmup_runs: run.warmupRuns,
    skip_latency: run.skipLatency,
    conf: settings.conf,
    iou: settings.iou,
    max_det: settings.maxDet,
    pre_nms_topk: settings.preNmsTopk,
    metrics,
    latency: run.latency,
    sha256: candidate.sha256,
    identity: candidate.identity,
    precision: candidate.precision,
    back_end: candidate.backEnd,
    placement: candidate.warnings,
    head: run.head,
    labels: run.labels,
    preprocessing: run.preprocessing,
    images_digest: run.imagesDigest,
    first_input: run.firstInput,
    images_per_second: run.imagesPerSecond,
    stats: scored.stats,
    precision_curves: scored.precision,
    subset: scored.subset,
    data_digest: scored.dataDigest,
    comparability_key: scored.comparabilityKey,
    warnings: scored.warnings,
    ...(variant === undefined ? {} : { variant }),
  };
}

/** The deepest folder that both are in, relative where both are. */
export function commonFolder(one: string, other: string): string {
  const spell = isAbsolute(one) === isAbsolute(other) ? normalize : (path: string) => resolve(path);
  const [parts, others] = [spell(one).split(sep), spell(other).split(sep)];
  const end = parts.findIndex((part, at) => part !== others[at]);
  return parts.slice(0, end < 0 ? parts.length : end).join(sep) || (parts[0] === '' ? sep : '.');
}
