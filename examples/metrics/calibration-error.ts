import type { ImageSample, Scorer } from 'trtforge/evaluation';

const BINS = 15;

/** Guo et al., 2017: the mean distance of accuracy and confidence over bins of equal width, weighted by their samples. Labels are by sample index. */
export function calibrationError(labels: readonly number[]): Scorer<ImageSample, number> {
  const bins = Array.from({ length: BINS }, () => ({ hits: 0, confidence: 0 }));
  return {
    take: ({ index }, outputs) => {
      const [logits] = [...outputs.values()];
      if (logits?.dtype !== 'float32') throw new Error('The model does not have one float32 output.');
      const values = new Float32Array(logits.bytes.slice().buffer);
      const best = values.reduce((at, value, each) => (value > values[at]! ? each : at), 0);
      const confidence = 1 / values.reduce((sum, value) => sum + Math.exp(value - values[best]!), 0);
      const bin = bins[Math.min(BINS - 1, Math.floor(confidence * BINS))]!;
      bin.confidence += confidence;
      if (labels[index] === best) bin.hits++;
    },
    result: () =>
      bins.reduce((sum, { hits, confidence }) => sum + Math.abs(hits - confidence), 0) / labels.length,
  };
}
