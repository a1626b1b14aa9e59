import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { removeIfAllowed } from '../../base/files/files.js';
import { makeScratch } from '../../base/files/folders.js';
import { passportPath } from '../../engines/identity/engine-name.js';
import { type Passport, readPassport } from '../../engines/identity/passport.js';
import { isEngineFile } from '../../engines/plan/header.js';
import { TrtforgeError } from '../../errors.js';
import type { WorkContext } from '../../events.js';
import { roundWeights } from '../../formats/precision/convert.js';
import {
  type FormatId,
  floatFormats,
  formatNamed,
  quantizedFormatNamed,
} from '../../formats/precision/formats/index.js';
import { precisionsOfModelFile } from '../../formats/precision/precisions-of-model.js';
import { addSlices, rootsOf, sliceSums } from '../../formats/tensor/compare/slices.js';
import { dtypes } from '../../formats/tensor/dtype.js';
import { isSameShape } from '../../formats/tensor/tensor.js';
import { floatReader, tensorReader } from '../../formats/tensor/tensor-reader.js';
import type { VerifyRequest } from './options.js';
import type { VerifyPrecision } from './result.js';
import type { ReferenceRun, SampleRuns, SideRun } from './sample-runs.js';

/** Of an engine without passport nobody knows what it computes in. */
function passportOf(path: string): Passport {
  try {
    return readPassport(path);
  } catch (error) {
    if (!(error instanceof TrtforgeError) || error.code !== 'TF_PASSPORT_MISSING') throw error;
    throw new TrtforgeError(error.code, error.message, {
      cause: error,
      remedy:
        'Pass whose tolerances to use: --precision fp32, fp16 or bf16; or keep FILE.passport.json beside FILE.',
    });
  }
}

/** The types that compute: of values and codes in the model, or those an engine was converted to or built from; the widest tolerance first. */
function precisionsOfFile(path: string): readonly ('fp32' | FormatId)[] {
  if (isEngineFile(path)) {
    const { identity, model } = passportOf(path);
    const converted = formatNamed(identity.document.recipe.precision);
    return converted === undefined ? (model.precisions ?? []) : [converted.id];
  }
  return precisionsOfModelFile(path);
}

/** The type that computes, by the widest tolerance; FP32 of an engine of which that is not known. */
export const precisionOf = (path: string): 'fp32' | FormatId =>
  isBare(path) ? 'fp32' : (precisionsOfFile(path)[0] ?? 'fp32');

/** The precision of the candidate; codes that a reference model has as well make no difference. */
export function precisionBetween({
  reference,
  candidate,
}: Pick<VerifyRequest, 'reference' | 'candidate'>): 'fp32' | FormatId {
  const codes = codesOfBoth({ reference, candidate });
  return precisionsOfFile(candidate).find((id) => id !== codes) ?? 'fp32';
}

/** Whether the reference computes in FP32, its codes apart. */
export const computesInFp32 = (request: Pick<VerifyRequest, 'reference' | 'candidate'>): boolean =>
  precisionsOfFile(request.reference).every((id) => id === 'fp32' || id === codesOfBoth(request));

/** The format of the codes that both models have. */
export function codesOfBoth({ reference, candidate }: Pick<VerifyRequest, 'reference' | 'candidate'>) {
  if (isEngineFile(reference)) return undefined;
  const codes = precisionsOfFile(reference).flatMap((id) => quantizedFormatNamed(id)?.id ?? []);
  return codes.length === 0 || isBare(candidate)
    ? undefined
    : codes.find((id) => precisionsOfFile(candidate).includes(id));
}

/** An engine without passport: which types it computes in is not known. */
const isBare = (path: string): boolean => isEngineFile(path) && !existsSync(passportPath(path));

/** FP32 as it was computed: TF32 where an engine was built with it, and where ONNX Runtime has it on. */
export function inArithmetic(
  precision: VerifyPrecision,
  path: string,
  { arithmetic }: Pick<SideRun, 'arithmetic'>,
): VerifyPrecision {
  const isEngine = isEngineFile(path);
  const isTf32 = isEngine
    ? !isBare(path) && !passportOf(path).identity.document.recipe.flags.includes('no-tf32')
    : arithmetic === 'tf32';
  return precision === 'fp32' && isTf32 ? 'tf32' : precision;
}

export const hasTypedInput = ({ inputs }: Pick<SideRun, 'inputs'>): boolean =>
  inputs.some((input) => floatFormats.some(({ dtype }) => dtype === input.dtype));

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
