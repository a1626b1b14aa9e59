import { statSync } from 'node:fs';
import { join } from 'node:path';
import { removeIfAllowed } from '../../base/files/files.js';
import { makeScratch } from '../../base/files/folders.js';
import { TrtforgeError } from '../../errors.js';
import type { WorkContext } from '../../events.js';
import { roundWeights } from '../../formats/precision/convert.js';
import { quantizedFormatNamed } from '../../formats/precision/formats/index.js';
import { addSlices, rootsOf, sliceSums } from '../../formats/tensor/compare/slices.js';
import { dtypes } from '../../formats/tensor/dtype.js';
import { isSameShape } from '../../formats/tensor/tensor.js';
import { floatReader, tensorReader } from '../../formats/tensor/tensor-reader.js';
import type { VerifyRequest } from './request.js';
import type { VerifyPrecision } from './result.js';
import type { ReferenceRun, SampleRuns } from './sample-runs.js';

/** Of a larger file the conversion would take longer than the verdict. */
const LARGEST_FILE = 256 * 2 ** 20;

/** No more samples are run for it. */
const MOST_SAMPLES = 8;

/**
 * The cost of rounding the weights of the reference to the codes of a quantized precision, alone and by output: the RMS of the errors over that of
 * the output, on the first typical samples. Undefined for other precisions, and where the reference cannot be quantized or is larger than 256 MiB.
 * Throws TF_CANCELLED.
 */
export async function weightsCost(
  { reference }: VerifyRequest,
  precision: VerifyPrecision,
  runs: SampleRuns,
  run: ReferenceRun,
  { signal }: WorkContext,
): Promise<ReadonlyMap<string, number> | undefined> {
  const format = quantizedFormatNamed(precision);
  if (format === undefined || statSync(reference).size > LARGEST_FILE) return undefined;
  const samples = run.samples.flatMap(({ kind }, at) => (kind === 'edge' ? [] : [at])).slice(0, MOST_SAMPLES);
  const work = makeScratch('weights');
  try {
    const path = join(work, 'weights.onnx');
    await roundWeights(reference, path, format.id, { signal });
    const [rounded = []] = await runs.changed(run, samples, [(inputs) => inputs], path);
    return new Map(
      run.bindings.flatMap(({ name }): [string, number][] => {
        const sums = samples.flatMap((sample, at) => {
          const [theirs, ours] = [run.outputs[sample]?.get(name), rounded[at]?.get(name)];
          if (theirs === undefined || ours === undefined || !isSameShape(theirs, ours)) return [];
          if (dtypes[theirs.dtype].kind !== 'float') return [];
          const pairs = {
            candidate: floatReader(tensorReader(ours), name),
            reference: floatReader(tensorReader(theirs), name),
          };
          return [sliceSums(pairs, theirs.shape, null)];
        });
        if (sums.length === 0) return [];
        const all = addSlices(sums);
        const cost = rootsOf(all.errorSquares, all)[0]! / rootsOf(all.referenceSquares, all)[0]!;
        return Number.isFinite(cost) ? [[name, cost]] : [];
      }),
    );
  } catch (error) {
    if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED') throw error;
    return undefined;
  } finally {
    removeIfAllowed(work);
  }
}
