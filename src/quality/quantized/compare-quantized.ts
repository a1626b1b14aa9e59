import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { publishFile } from '../../base/files/publish.js';
import { assertNotInput, protectingInputs } from '../../base/files/user-files.js';
import { throwIfCancelled } from '../../base/process/cancel.js';
import { meanOf } from '../../base/statistics.js';
import { preparedSamples } from '../../engines/calibration/prepared-samples.js';
import { type Preparation, readSamples } from '../../engines/calibration/read-samples.js';
import type { OpenContext } from '../../engines/runtime/back-end.js';
import { openSession } from '../../engines/runtime/open-session.js';
import { TrtforgeError } from '../../errors.js';
import { writeNpy } from '../../formats/tensor/npy.js';
import type { NamedTensors } from '../../formats/tensor/tensor.js';
import { packageVersion } from '../../version.js';
import { AccuracySums, type SampleError } from '../advise/accuracy.js';
import { writeMarked } from '../layers/common-tensors.js';
import { inTypesOf } from '../verify/sample-runs.js';
import { metricDefinitions } from './definitions.js';
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

/** Nothing is known of sizes before the first group has run. */
const FIRST_GROUP = 8;
/** Bytes of the tensors of a group, of one sample and both models. */
const GROUP_BYTES = 512 * 2 ** 20;

/**
 * Compares a quantized model with its original on real samples, output and node by node, and writes what auto-quantize-model's scripts write: `metrics.json`,
 * `precision-scheme.json`, `io.json`, and the samples as `calibration.npy` where the model has one input. Throws TF_CALIBRATION_INVALID without a sample,
 * TF_VERIFY_MISMATCH where the models share no floating-point output, and what reading and running throw.
 */
export const compareQuantized = (
  request: CompareQuantizedRequest,
  context: OpenContext = {},
): Promise<QuantizedComparison> =>
  protectingInputs([request.baseline, request.quantized], () => compare(request, context));

/** A comparison with models and samples read, before anything is run. */
export interface DecidedQuantized {
  readonly fp: QuantizedModel;
  readonly qt: QuantizedModel;
  readonly layers: readonly Layer[];
  /** The output of both that is compared. */
  readonly shared: string;
  readonly samples: readonly NamedTensors[];
}

/** Throws what `compareQuantized` throws before the first run. */
export async function decideQuantized(
  request: CompareQuantizedRequest,
  context: OpenContext,
): Promise<DecidedQuantized> {
  const { baseline, quantized } = request;
  const [fp, qt] = [readQuantized(baseline), readQuantized(quantized)];
  const layers = matchedLayers(fp, qt);
  const shared = fp.io.outputs.find(({ name }) => fp.floats.has(name) && qt.floats.has(name))?.name;
  if (shared === undefined)
    throw new TrtforgeError(
      'TF_VERIFY_MISMATCH',
      `${quantized} and ${baseline} have no floating-point output of one name.`,
      { remedy: 'Compare a model with the one that it was quantized from.' },
    );
  return { fp, qt, layers, shared, samples: await firstSamples(request, context) };
}

async function compare(request: CompareQuantizedRequest, context: OpenContext): Promise<QuantizedComparison> {
  const { baseline, quantized, data, threads, output } = request;
  const { fp, qt, layers, shared, samples } = await decideQuantized(request, context);
  const compared = [{ key: shared, fp: shared, qt: shared }].concat(
    layers.map(({ name, tensors }) => ({ key: `node ${name}`, ...tensors })),
  );
  const found = new Map<string, readonly SampleError[]>();
  const folder = mkdtempSync(join(tmpdir(), 'trtforge-quantized-'));
  try {
    const marked = { fp: join(folder, 'fp.onnx'), qt: join(folder, 'qt.onnx') };
    for (let [start, size] = [0, FIRST_GROUP]; start < compared.length; ) {
      throwIfCancelled(context.signal, 'comparing');
      context.emit?.({
        type: 'progress',
        phase: 'compare',
        done: start,
        total: compared.length,
        detail: 'tensors',
      });
      const group = compared.slice(start, start + size);
      const typed = (side: 'fp' | 'qt', { floats }: QuantizedModel) =>
        [...new Set(group.map((each) => each[side]))].map((name) => ({ name, dtype: floats.get(name)! }));
      await writeMarked(baseline, marked.fp, typed('fp', fp), context.signal);
      await writeMarked(quantized, marked.qt, typed('qt', qt), context.signal);
      const sums = new AccuracySums(group.map(({ key }) => key));
      await using left = await openSession(marked.fp, { threads }, context);
      await using right = await openSession(marked.qt, { threads }, context);
      let bytes = 0;
      for (const sample of samples) {
        const [a, b] = [
          await left.run(inTypesOf(left.inputs, sample), { signal: context.signal }),
          await right.run(inTypesOf(right.inputs, sample), { signal: context.signal }),
        ];
        bytes = [...a.values(), ...b.values()].reduce((sum, tensor) => sum + tensor.bytes.length, 0);
        const keyed = (outputs: NamedTensors, side: 'fp' | 'qt') =>
          new Map(group.map((each) => [each.key, outputs.get(each[side])!]));
        sums.add(keyed(a, 'fp'), keyed(b, 'qt'));
      }
      for (const { name, samples: errors } of sums.result().tensors) found.set(name, errors);
      start += group.length;
      size = Math.max(1, Math.floor((GROUP_BYTES * group.length) / Math.max(1, bytes)));
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const ofOutput = found.get(shared)!;
  const errors = errorsOf(ofOutput);
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
    errors,
    per_sample: ofOutput.map((error, index) => ({ index, ...fieldsOf(error) })),
    per_layer: layers
      .map(({ name, op, precision, tensors }) => ({
        name,
        op_type: op,
        precision,
        fp_tensor: tensors.fp,
        qt_tensor: tensors.qt,
        metrics: errorsOf(found.get(`node ${name}`)!),
      }))
      .sort((a, b) => decibelsOf(a.metrics) - decibelsOf(b.metrics)),
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

/** Nodes of one name and operator in both models, with the first value that each makes, where that is a floating-point one. */
function matchedLayers(fp: QuantizedModel, qt: QuantizedModel): readonly Layer[] {
  const theirs = new Map(fp.scheme.nodes.map((node) => [node.name, node]));
  return qt.scheme.nodes.flatMap(({ name, op_type, precision, outputs: [made = ''] }): Layer[] => {
    const original = theirs.get(name);
    const [from = ''] = original?.outputs ?? [];
    const isSame = name !== '' && original?.op_type === op_type && op_type !== 'Constant';
    if (!isSame || !fp.floats.has(from) || !qt.floats.has(made)) return [];
    return [{ name, op: op_type, precision, tensors: { fp: from, qt: made } }];
  });
}

async function firstSamples(
  { baseline, data, preparation, samples: most, threads }: CompareQuantizedRequest,
  context: OpenContext,
): Promise<readonly NamedTensors[]> {
  const samples: NamedTensors[] = [];
  await using session = await openSession(baseline, { threads }, context);
  for await (const sample of preparedSamples(
    readSamples(data, preparation),
    session.inputs,
    context.signal,
  )) {
    if (samples.length === most) break;
    samples.push(sample);
  }
  if (samples.length > 0) return samples;
  throw new TrtforgeError('TF_CALIBRATION_INVALID', `${data.join(', ')} has no sample.`);
}

/** Numbers as JSON can hold them. */
const figures = <K extends string>(values: Record<K, number>): Record<K, number | null> =>
  Object.fromEntries(
    Object.entries<number>(values).map(([key, value]) => [key, Number.isFinite(value) ? value : null]),
  ) as Record<K, number | null>;

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
    mean_sqnr_db: meanOf(decibels),
    min_sqnr_db: Math.min(...decibels),
    mean_cosine_sim: meanOf(cosine),
    min_cosine_sim: Math.min(...cosine),
  });
}

const decibelsOf = ({ mean_sqnr_db }: Errors): number => mean_sqnr_db ?? Number.MAX_VALUE;

function imageOf(sample: NamedTensors): QuantizedComparison['input_chw'] {
  const [first] = sample.values();
  return first?.shape.length === 4 ? first.shape.slice(1) : null;
}

/** The samples as one array; of several inputs, or sizes that differ, there is none, and none of an earlier comparison stays. */
function writeStacked(path: string, samples: readonly NamedTensors[]): void {
  const tensors = samples.flatMap((sample) => [...sample.values()]);
  const [first] = tensors;
  const [batch, ...rest] = first?.shape ?? [];
  const isEven = tensors.every(({ shape }) => shape.join() === first?.shape.join());
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
