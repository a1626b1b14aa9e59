import { dirname, join } from 'node:path';
import { z } from 'zod';
import { canonicalJson, sha256 } from '../../base/files/digest.js';
import { readJson } from '../../base/files/files.js';
import { cacheFolder, isPrivate, makePrivate } from '../../base/files/folders.js';
import { publishFile } from '../../base/files/publish.js';
import type { EngineSessionOptions } from '../../engines/runtime/tensorrt/options.js';
import { TrtforgeError } from '../../errors.js';
import { observeEngine, proofOf, resultOf } from './proof.js';
import { type EngineCheck, engineCheckSchema } from './result.js';

/** By which a check is found again: another answer, GPU, driver or library may give another verdict. */
export interface CheckedPlace extends Pick<EngineCheck, 'planSha256' | 'answerSha256' | 'driver'> {
  readonly gpu: { readonly uuid: string };
  readonly library: string;
}

const checkedSchema = z.object({ result: engineCheckSchema });

const pathOf = (
  { planSha256, answerSha256, gpu, driver, library }: CheckedPlace,
  environment: NodeJS.ProcessEnv,
): string => {
  const key = sha256(canonicalJson({ planSha256, answerSha256, gpu: gpu.uuid, driver, library }));
  return join(cacheFolder(environment), 'checks', `${key.slice(0, 32)}.json`);
};

/** The result of an earlier check of the plan in this place; undefined where there was none, or none that decided. */
export function recallCheck(place: CheckedPlace, environment: NodeJS.ProcessEnv): EngineCheck | undefined {
  const path = pathOf(place, environment);
  // The file that stands there is trusted.
  const parsed = checkedSchema.safeParse(isPrivate(path, dirname(path)) ? readJson(path) : undefined);
  return parsed.success ? parsed.data.result : undefined;
}

/** Keeps what a check decided. A cache folder that cannot be written costs the next load the same check, nothing else. */
export function rememberCheck(result: EngineCheck, environment: NodeJS.ProcessEnv): void {
  const { gpu, library } = result;
  if (result.outcome === 'inconclusive' || gpu === null || library === null) return;
  const path = pathOf({ ...result, gpu, library }, environment);
  try {
    makePrivate(dirname(path));
    publishFile(path, `${JSON.stringify({ result })}\n`);
  } catch (error) {
    if (!(error instanceof TrtforgeError) && !(error instanceof Error && 'code' in error)) throw error;
  }
}

/** The result of `observeEngine`, remembered for this GPU, driver and library. Throws what that throws, TF_PASSPORT_INVALID. */
export async function checkAndRemember(
  planPath: string,
  options: EngineSessionOptions = {},
): Promise<EngineCheck> {
  const { environment = process.env } = options;
  const proof = proofOf(planPath, environment);
  const result = resultOf(proof, await observeEngine(proof, options));
  rememberCheck(result, environment);
  return result;
}
