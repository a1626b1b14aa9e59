import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { removeIfAllowed } from '../../../base/files/files.js';
import { publishFile } from '../../../base/files/publish.js';
import { makeScratch } from '../../../base/files/scratch.js';
import { assertNotInput, protectingInputs } from '../../../base/files/user-files.js';
import { throwIfCancelled } from '../../../base/process/cancel.js';
import { meanOf } from '../../../base/statistics.js';
import { type Preparation, readSamples } from '../../../engines/calibration/read-samples.js';
import type { OpenContext } from '../../../engines/runtime/back-end.js';
import { TrtforgeError } from '../../../errors.js';
import { writeNpy } from '../../../formats/tensor/npy.js';
import { isSameShape, type NamedTensors } from '../../../formats/tensor/tensor.js';
import { type Measure, measure } from '../../../quality/verify/result.js';
import { packageVersion } from '../../../version.js';
import { AccuracySums, type SampleError } from '../accuracy.js';
import { inGroups } from '../groups.js';
import { writeMarked } from '../marked-model.js';
import { firstSamples, runSamples } from '../run-samples.js';
import type { Errors, QuantizedComparison } from './result.js';
import { type QuantizedModel, readQuantized } from './scheme.js';

export interface CompareQuantizedRequest {
  readonly baseline: string;
  readonly quantized: string;
  /** Samples of inputs, as `readSamples` takes them. */
  readonly data: readonly string[];
  readonly preparation: Preparation;
  /** At most so many of them. */
  readonly samples: number;
  readonly threads?: number | undefined;
  /** The folder for metrics.json, precision-scheme.json, io.json and calibration.npy. */
  readonly output: string;
}

/**
 * Compares a quantized model with its original on real samples, outputs and node by node, and writes what auto-quantize-model's scripts write: `metrics.json`,
 * `precision-scheme.json`, `io.json`, and the samples as `calibration.npy` where the model has one input. Throws TF_CALIBRATION_INVALID without a sample,
 * TF_VERIFY_MISMATCH where the models share no floating-point output or one has another shape, and what reading and running throw.
 */
export const compareQuantized = (
  request: CompareQuantizedRequest,
  context: OpenContext = {},
): Promise<QuantizedComparison> =>
  protectingInputs([request.baseline, request.quantized], () => compare(request, context));

/** Models, the outputs that both have, and samples. Throws what `compareQuantized` throws before the first run. */
async function decideQuantized(request: CompareQuantizedRequest, context: OpenContext) {
  const { baseline, quantized, data, threads } = request;
  const [fp, qt] = [readQuantized(baseline), readQuantized(quantized)];
  const layers = matchedLayers(fp, qt);
  const shared = fp.io.outputs
    .map(({ name }) => name)
    .filter((name) => fp.floats.has(name) && qt.floats.has(name));
  if (shared.length === 0)
    throw new TrtforgeError(
      'TF_VERIFY_MISMATCH',
      `${quantized} and ${baseline} have no floating-point output of one name.`,
      { remedy: 'Compare a model with the one that it was quantized from.' },
    );
  const sources = readSamples(data, request.preparation);
  const samples = await firstSamples(baseline, sources, request.samples, { threads, context });
  if (samples.length === 0)
    throw new TrtforgeError('TF_CALIBRATION_INVALID', `${data.join(', ')} has no sample.`);
  return { qt, layers, shared, samples };
}

async function compare(request: CompareQuantizedRequest, context: OpenContext): Promise<QuantizedComparison> {
  const { baseline, quantized, data, threads, output } = request;
  const { qt, layers, shared, samples } = await decideQuantized(request, context);
  const compared = [
    ...shared.map((name) => ({ key: `output ${name}`, fp: name, qt: name })),
    ...layers.map(({ tensors }) => ({ key: `node ${tensors.qt}`, ...tensors })),
  ];
  const found = new Map<string, readonly SampleError[]>();
  const folder = makeScratch('quantized');
  try {
    const marked = { fp: join(folder, 'fp.onnx'), qt: join(folder, 'qt.onnx') };
    let last: readonly NamedTensors[] = [];
    for (const { group, done } of inGroups(compared, () => last)) {
      throwIfCancelled(context.signal, 'comparing');
      const { length: total } = compared;
      context.emit?.({ type: 'progress', phase: 'compare', done, total, detail: 'tensors' });
      const names = (side: 'fp' | 'qt') => group.map((each) => each[side]);
      await writeMarked(baseline, marked.fp, names('fp'), 'dropped', context.signal);
      await writeMarked(quantized, marked.qt, names('qt'), 'dropped', context.signal);
      const sums = new AccuracySums(group.map(({ key }) => key));
      await runSamples([marked.fp, marked.qt], samples, { threads, context }, (outputs) => {
        const [a, b] = [outputs[0]!, outputs[1]!];
        assertSameShapes(request, shared, a, b);
        last = outputs;
        const keyed = (tensors: NamedTensors, side: 'fp' | 'qt') =>
          new Map(group.map((each) => [each.key, tensors.get(each[side])!]));
        sums.add(keyed(a, 'fp'), keyed(b, 'qt'));
      });
      for (const { name, samples: errors } of sums.result().tensors) found.set(name, errors);
    }
  } finally {
    removeIfAllowed(folder);
  }
  const [worst] = shared
    .map((name) => ({ name, errors: errorsOf(found.get(`output ${name}`)!) }))
    .sort((a, b) => byDecibels(a.errors, b.errors));
  const { name: output_name, errors } = worst!;
  const result: QuantizedComparison = {
    schema: 'trtforge.compare-quantized/1',
    version: packageVersion(),
    baseline_model: baseline,
    quantized_model: quantized,
    calibration_path: data.join(','),
    num_samples: samples.length,
    providers: ['CPUExecutionProvider'],
    gpu_compare: false,
    input_chw: imageOf(samples[0]!),
    metric_definitions: metricDefinitions(Object.keys(errors)),
    output_name,
    errors,
    per_sample: found.get(`output ${output_name}`)!.map((error, index) => ({ index, ...fieldsOf(error) })),
    per_layer: layers
      .map(({ name, op, precision, tensors }) => ({
        name,
        op_type: op,
        precision,
        fp_tensor: tensors.fp,
        qt_tensor: tensors.qt,
        metrics: errorsOf(found.get(`node ${tensors.qt}`)!),
      }))
      .sort((a, b) => byDecibels(a.metrics, b.metrics)),
  };
  const json = (name: string, value: unknown) =>
    publishFile(join(output, name), `${JSON.stringify(value, null, 2)}\n`);
  json('metrics.json', result);
  json('precision-scheme.json', qt.scheme);
  json('io.json', qt.io);
  writeStacked(join(output, 'calibration.npy'), samples);
  return result;
}

interface Layer {
  readonly name: string;
  readonly op: string;
  readonly precision: string;
  readonly tensors: { readonly fp: string; readonly qt: string };
}

/** Nodes of one operator that have one name in both models, or make a value of one name, with the first value that each makes, where that is a floating-point one. */
function matchedLayers(fp: QuantizedModel, qt: QuantizedModel): readonly Layer[] {
  const byName = new Map(fp.scheme.nodes.map((node) => [node.name, node]));
  const byValue = new Map(fp.scheme.nodes.map((node) => [node.outputs[0], node]));
  return qt.scheme.nodes.flatMap(({ name, op_type, precision, outputs: [made = ''] }): Layer[] => {
    const original = (name === '' ? undefined : byName.get(name)) ?? byValue.get(made);
    const [from = ''] = original?.outputs ?? [];
    const isSame = original?.op_type === op_type && op_type !== 'Constant';
    if (!isSame || !fp.floats.has(from) || !qt.floats.has(made)) return [];
    return [{ name: name === '' ? made : name, op: op_type, precision, tensors: { fp: from, qt: made } }];
  });
}

function assertSameShapes(
  { baseline, quantized }: CompareQuantizedRequest,
  names: readonly string[],
  a: NamedTensors,
  b: NamedTensors,
): void {
  for (const name of names) {
    const [theirs, ours] = [a.get(name), b.get(name)];
    if (theirs === undefined || ours === undefined || isSameShape(theirs, ours)) continue;
    throw new TrtforgeError(
      'TF_VERIFY_MISMATCH',
      `The output ${name} is [${ours.shape.join(', ')}] in ${quantized} and [${theirs.shape.join(', ')}] in ${baseline}.`,
      { remedy: 'Compare a model with the one that it was quantized from.' },
    );
  }
}

/** Numbers as JSON can represent them. */
const figures = <K extends string>(values: Record<K, number>): Record<K, Measure> =>
  Object.fromEntries(Object.entries<number>(values).map(([key, value]) => [key, measure(value)])) as Record<
    K,
    Measure
  >;

const fieldsOf = ({ mse, meanAbs, maxAbs, sqnrDb, cosine }: SampleError) =>
  figures({
    mse,
    rmse: Math.sqrt(mse),
    mean_abs: meanAbs,
    max_abs: maxAbs,
    sqnr_db: sqnrDb,
    cosine_sim: cosine,
  });

function errorsOf(samples: readonly SampleError[]): Errors {
  const all = (figure: (sample: SampleError) => number) => samples.map(figure);
  const mse = all((sample) => sample.mse);
  const [meanAbs, maxAbs] = [all((sample) => sample.meanAbs), all((sample) => sample.maxAbs)];
  const [decibels, cosine] = [all(({ sqnrDb }) => sqnrDb), all((sample) => sample.cosine)];
  return figures({
    mean_mse: meanOf(mse),
    max_mse: Math.max(...mse),
    mean_rmse: meanOf(mse.map(Math.sqrt)),
    max_rmse: Math.sqrt(Math.max(...mse)),
    mean_mean_abs: meanOf(meanAbs),
    max_mean_abs: Math.max(...meanAbs),
    mean_max_abs: meanOf(maxAbs),
    max_max_abs: Math.max(...maxAbs),
    mean_sqnr_db: meanDecibels(decibels),
    min_sqnr_db: Math.min(...decibels),
    mean_cosine_sim: meanOf(cosine),
    min_cosine_sim: Math.min(...cosine),
  });
}

/** Over the finite ones, so that a sample that is exact, or 0 throughout, does not decide; the least where none is finite. NaN where one is. */
function meanDecibels(samples: readonly number[]): number {
  const isInfinite = (db: number) => Math.abs(db) === Number.POSITIVE_INFINITY;
  return samples.every(isInfinite) ? Math.min(...samples) : meanOf(samples.filter((db) => !isInfinite(db)));
}

/** The largest error first: NaN, then the fewest decibels. */
function byDecibels(a: Errors, b: Errors): number {
  const [x, y] = [rankOf(a), rankOf(b)];
  return x < y ? -1 : Number(x > y);
}

const rankOf = ({ mean_sqnr_db }: Errors): number =>
  mean_sqnr_db === 'NaN' ? Number.NEGATIVE_INFINITY : Number(mean_sqnr_db);

function imageOf(sample: NamedTensors): QuantizedComparison['input_chw'] {
  const [first] = sample.values();
  return first?.shape.length === 4 ? first.shape.slice(1) : null;
}

/** The samples as one array; of several inputs, or sizes that differ, there is none, and none of an earlier comparison stays. */
function writeStacked(path: string, samples: readonly NamedTensors[]): void {
  const tensors = samples.flatMap((sample) => [...sample.values()]);
  const [first] = tensors;
  const [batch, ...rest] = first?.shape ?? [];
  const isEven = tensors.every((tensor) => isSameShape(tensor, first!));
  if (first === undefined || batch === undefined || tensors.length !== samples.length || !isEven) {
    assertNotInput(path);
    rmSync(path, { force: true });
    return;
  }
  writeNpy(path, {
    dtype: first.dtype,
    shape: [batch * tensors.length, ...rest],
    bytes: Buffer.concat(tensors.map(({ bytes }) => bytes)),
  });
}

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
function metricDefinitions(keys: readonly string[]): QuantizedComparison['metric_definitions'] {
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
