import { existsSync } from 'node:fs';
import { passportPath } from '../../engines/identity/identity.js';
import { type Passport, readPassport } from '../../engines/identity/passport.js';
import { isEngineFile } from '../../engines/plan/header.js';
import { TrtforgeError } from '../../errors.js';
import {
  type FormatId,
  floatFormats,
  formatNamed,
  quantizedFormatNamed,
} from '../../formats/precision/formats/index.js';
import { precisionsOfModelFile } from '../../formats/precision/precisions-of-model.js';
import type { VerifyRequest } from './request.js';
import type { VerifyPrecision } from './result.js';
import type { SideRun } from './sample-runs.js';

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
