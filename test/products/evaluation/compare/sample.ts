import type { Figures } from '../../../../src/products/evaluation/compare/figures.js';
import type { RecordedVariant } from '../../../../src/products/evaluation/compare/run-root.js';
import type { Variant } from '../../../../src/products/evaluation/run/variant.js';

interface Shape {
  readonly label: string;
  readonly backEnd: string;
  readonly role: Variant['role'];
  readonly mAP: number | null;
  readonly medianMs: number;
  readonly key?: string;
  readonly machine?: string;
}

/** A variant with a curve that falls from 1 and times around a median. */
export function recorded({
  label,
  backEnd,
  role,
  mAP,
  medianMs,
  key = 'k'.repeat(64),
  machine = 'NVIDIA H200',
}: Shape): RecordedVariant {
  const name = `${label}-${backEnd}`;
  const figures: Figures = {
    metrics: [{ name: 'mAP_50_95', value: mAP, unit: 'share', higherIsBetter: true }],
    comparabilityKey: key,
    dataDigest: 'd'.repeat(64),
    samples: 100,
    latency: {
      mean_ms: medianMs,
      median_ms: medianMs,
      p90_ms: medianMs * 1.1,
      throughput_fps: 1000 / medianMs,
      count: 100,
      percentiles_ms: Array.from({ length: 101 }, (_, percent) => medianMs * (0.9 + percent / 500)),
    },
    providers: ['ONNX Runtime 1.30.0 (CPU)'],
    placement: [],
    files: [{ file: `${label}.onnx`, sha256: 'f'.repeat(64) }],
    engineIdentity: null,
    precisionCurve: Array.from({ length: 101 }, (_, at) => 1 - (at / 100) ** 3),
  };
  return {
    folder: `${name}-coco`,
    figures,
    error: null,
    variant: {
      schema: 'trtforge.compared-variant/1',
      name,
      task: 'coco',
      place: 0,
      model: 'yolov10m.onnx',
      label,
      role,
      backEnd,
      machine,
      identity: 'i'.repeat(64),
      data: 'd'.repeat(64),
    },
  };
}

export const notRun = (shape: Omit<Shape, 'mAP' | 'medianMs'>): RecordedVariant => ({
  ...recorded({ ...shape, mAP: null, medianMs: 1 }),
  figures: null,
  error: {
    code: 'TF_GPU_UNAVAILABLE',
    message: 'Running an engine needs an NVIDIA GPU, and this machine shows none.',
    remedy: 'Run trtforge doctor.',
    exitCode: 3,
  },
});

/** FP32 and FP16 on two back ends, a quantised candidate, and an engine that could not run. */
export const sampleVariants: readonly [RecordedVariant, ...RecordedVariant[]] = [
  recorded({ label: 'fp32', backEnd: 'ort-cuda', role: 'model', mAP: 0.5, medianMs: 8 }),
  recorded({ label: 'fp32', backEnd: 'ort-cpu', role: 'model', mAP: 0.5, medianMs: 20, machine: 'Xeon' }),
  notRun({ label: 'fp32', backEnd: 'trt', role: 'model' }),
  recorded({ label: 'fp16', backEnd: 'ort-cuda', role: 'converted', mAP: 0.499, medianMs: 4 }),
  recorded({
    label: 'fp16',
    backEnd: 'ort-cpu',
    role: 'converted',
    mAP: 0.499,
    medianMs: 19,
    machine: 'Xeon',
  }),
  recorded({ label: 'int8', backEnd: 'ort-cuda', role: 'candidate', mAP: 0.48, medianMs: 3 }),
  recorded({
    label: 'int8',
    backEnd: 'ort-cpu',
    role: 'candidate',
    mAP: 0.48,
    medianMs: 10,
    machine: 'Atom',
  }),
];
