import { join } from 'node:path';
import { z } from 'zod';
import { sha256 } from '../../base/files/digest.js';
import { readJson } from '../../base/files/files.js';
import { cacheFolder, makeFolder } from '../../base/files/folders.js';
import { publishFile } from '../../base/files/publish.js';
import { canonicalJson } from '../../engines/identity/canonical-json.js';
import { planDigest } from '../../engines/plan/header.js';
import type { LoadedEngine } from '../../engines/runtime/tensorrt/load-engine.js';
import { TrtforgeError } from '../../errors.js';
import { type EngineCheck, engineCheckSchema } from './result.js';

/** By which a check is found again: another GPU, driver or library may give other numbers. */
export interface CheckedPlace {
  readonly planSha256: string;
  readonly gpu: { readonly name: string; readonly uuid: string };
  readonly driver: string | null;
  readonly library: string;
}

/** Of an engine that is loaded. */
export const loadedPlace = ({ plan, gpu, addon, toolchain }: LoadedEngine): CheckedPlace => ({
  planSha256: plan.passport?.plan.sha256 ?? planDigest(plan.header),
  gpu: { name: gpu.name, uuid: gpu.uuid },
  driver: addon.gpus().driverVersion,
  library: `${toolchain.product} ${toolchain.version}`,
});

const checkedSchema = z.object({ result: engineCheckSchema });

const pathOf = (
  { planSha256, gpu, driver, library }: CheckedPlace,
  environment: NodeJS.ProcessEnv,
): string => {
  const key = sha256(canonicalJson({ planSha256, gpu: gpu.uuid, driver, library }));
  return join(cacheFolder(environment), 'checks', `${key.slice(0, 32)}.json`);
};

/** What an earlier check found of the plan in this place; undefined where there was none, or none that decided. */
export function recallCheck(place: CheckedPlace, environment: NodeJS.ProcessEnv): EngineCheck | undefined {
  const parsed = checkedSchema.safeParse(readJson(pathOf(place, environment)));
  return parsed.success ? parsed.data.result : undefined;
}

/** Keeps what a check decided. A cache folder that cannot be written costs the next load the same check, nothing else. */
export function rememberCheck(result: EngineCheck, environment: NodeJS.ProcessEnv): void {
  const { planSha256, gpu, driver, library } = result;
  if (result.outcome === 'inconclusive' || gpu === null || library === null) return;
  const path = pathOf({ planSha256, gpu, driver, library }, environment);
  try {
    makeFolder(join(cacheFolder(environment), 'checks'));
    publishFile(path, `${JSON.stringify({ result })}\n`);
  } catch (error) {
    if (!(error instanceof TrtforgeError) && !(error instanceof Error && 'code' in error)) throw error;
  }
}
