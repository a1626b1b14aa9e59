import type { QuantizedComparison } from './result.js';

/** Short name, full name and meaning of the errors of one sample. */
const ofSample: Readonly<Record<string, readonly [string, string, string]>> = {
  mse: ['MSE', 'Mean squared error', 'the squared differences, averaged over the elements'],
  rmse: ['RMSE', 'Root of the mean squared error', 'in the units of the tensor'],
  mean_abs: ['Mean |Δ|', 'Mean absolute error', 'the absolute differences, averaged over the elements'],
  max_abs: ['Max |Δ|', 'Largest absolute error', 'the largest absolute difference of two elements'],
  sqnr_db: [
    'SQNR (dB)',
    'Signal to quantization noise, decibels',
    'power of the baseline over power of the difference; Infinity where nothing differs, NaN where the difference is not a finite number',
  ],
  cosine_sim: ['Cosine', 'Cosine similarity', '1 where both tensors point the same way'],
};

const aggregates: Readonly<Record<string, readonly [string, string]>> = {
  mean: ['Mean', 'the mean over all samples, of decibels over those that are finite'],
  max: ['Max', 'the largest of all samples'],
  min: ['Min', 'the smallest of all samples'],
};

/** What the keys of `errors` and `per_sample` mean. */
export function metricDefinitions(keys: readonly string[]): QuantizedComparison['metric_definitions'] {
  const define = (key: string) => {
    const own = ofSample[key];
    const [aggregate = '', ...rest] = key.split('_');
    const [short, full, description] = own ?? ofSample[rest.join('_')] ?? [key, key, ''];
    const [word, over] = aggregates[aggregate] ?? ['', ''];
    const isOwn = own !== undefined;
    return {
      key_name: key,
      short_name: isOwn ? short : `${word} ${short}`,
      full_name: isOwn ? full : `${full}: ${over}`,
      description: isOwn
        ? `Of one sample: ${description}.`
        : `Of each sample ${description}; of these ${over}.`,
    };
  };
  return Object.fromEntries([...Object.keys(ofSample), ...keys].map((key) => [key, define(key)]));
}
