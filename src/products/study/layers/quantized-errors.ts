import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { publishFile } from '../../../base/files/publish.js';
import { assertNotInput } from '../../../base/files/user-files.js';
import { meanOf } from '../../../base/statistics.js';
import { executionProvider, isOrtProvider } from '../../../engines/runtime/onnxruntime/ort-provider.js';
import { TrtforgeError } from '../../../errors.js';
import { writeNpy } from '../../../formats/tensor/npy.js';
import { isSameShape, type NamedTensors } from '../../../formats/tensor/tensor.js';
import type { VerifyRequest } from '../../../quality/verify/request.js';
import { type Measure, measure } from '../../../quality/verify/result.js';
import type { SideRun } from '../../../quality/verify/sample-runs.js';
import { packageVersion } from '../../../version.js';
import { AccuracySums, type SampleError } from '../accuracy.js';
import type { MadeTensor } from '../made-tensors.js';
import type { Errors, QuantizedComparison } from './quantized-result.js';
import { FLOATING, readQuantized } from './scheme.js';

/** Errors of outputs and nodes, sample by sample, as auto-quantize-model's scripts measure them. */
export class QuantizedErrors {
  readonly #request: VerifyRequest;
  readonly #candidate;
  readonly #outputs: readonly string[];
  readonly #found = new Map<string, readonly SampleError[]>();

  private constructor(request: VerifyRequest, outputs: readonly string[]) {
    this.#request = request;
    this.#candidate = readQuantized(request.candidate);
    this.#outputs = outputs;
  }

  /** Null for a candidate that is not quantized, unless it is `asked` for. Throws TF_VERIFY_MISMATCH where it is and no output is among the tensors. */
  static of(request: VerifyRequest, tensors: readonly MadeTensor[], asked: boolean): QuantizedErrors | null {
    const outputs = tensors.filter(({ isOutput }) => isOutput).map(({ name }) => name);
    const errors = new QuantizedErrors(request, outputs);
    const isQuantized = Object.keys(errors.#candidate.scheme.counts).some((codes) => codes !== FLOATING);
    if (outputs.length > 0) return isQuantized || asked ? errors : null;
    if (!asked) return null;
    throw new TrtforgeError(
      'TF_VERIFY_MISMATCH',
      `${request.candidate} and ${request.reference} have no floating-point output of one name.`,
      { remedy: 'Compare a model with the one that it was quantized from.' },
    );
  }

  add(tensors: readonly MadeTensor[], reference: SideRun, candidate: SideRun): void {
    const hasBoth = ({ name }: MadeTensor) =>
      [reference, candidate].every(({ outputs }) => outputs.every((sample) => sample.has(name)));
    const sums = new AccuracySums(tensors.filter(hasBoth).map(({ name }) => name));
    for (const [at, sample] of reference.outputs.entries()) sums.add(sample, candidate.outputs[at]!);
    for (const { name, samples } of sums.result().tensors) this.#found.set(name, samples);
  }

  result(samples: readonly NamedTensors[]): QuantizedComparison {
    const { reference, candidate, data, provider = 'cpu' } = this.#request;
    const [worst] = this.#outputs
      .map((name) => ({ name, samples: this.#found.get(name) ?? [] }))
      .map((output) => ({ ...output, errors: errorsOf(output.samples) }))
      .sort((a, b) => byDecibels(a.errors, b.errors));
    const { name: output_name, errors, samples: ofOutput } = worst!;
    return {
      schema: 'trtforge.compare-quantized/1',
      version: packageVersion(),
      baseline_model: reference,
      quantized_model: candidate,
      calibration_path: data?.files?.join(',') ?? '',
      num_samples: samples.length,
      providers: isOrtProvider(provider) ? [executionProvider[provider]] : [],
      gpu_compare: false,
      input_chw: imageOf(samples[0]!),
      metric_definitions: metricDefinitions(Object.keys(errors)),
      output_name,
      errors,
      per_sample: ofOutput.map((error, index) => ({ index, ...fieldsOf(error) })),
      per_layer: this.#layers().sort((a, b) => byDecibels(a.metrics, b.metrics)),
    };
  }

  /** Nodes of one operator that make a value of one name, or have one name themselves. */
  #layers(): QuantizedComparison['per_layer'] {
    const { nodes } = this.#candidate.scheme;
    const byName = new Map(nodes.map((node) => [node.name, node]));
    const byValue = new Map(nodes.map((node) => [node.outputs[0], node]));
    return readQuantized(this.#request.reference).scheme.nodes.flatMap(
      ({ name, op_type, outputs: [made = ''] }) => {
        const own = (name === '' ? undefined : byName.get(name)) ?? byValue.get(made);
        const samples = this.#found.get(made);
        if (samples === undefined || own?.op_type !== op_type) return [];
        return [
          {
            name: own.name === '' ? made : own.name,
            op_type,
            precision: own.precision,
            fp_tensor: made,
            qt_tensor: made,
            metrics: errorsOf(samples),
          },
        ];
      },
    );
  }

  /** Writes what auto-quantize-model's scripts write. `calibration.npy` is that of models with one input. */
  write(folder: string, result: QuantizedComparison, samples: readonly NamedTensors[]): void {
    const json = (name: string, value: unknown) =>
      publishFile(join(folder, name), `${JSON.stringify(value, null, 2)}\n`);
    json('metrics.json', result);
    json('precision-scheme.json', this.#candidate.scheme);
    json('io.json', this.#candidate.io);
    writeStacked(join(folder, 'calibration.npy'), samples);
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

/** The definitions of the keys of `errors` and `per_sample`. */
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
