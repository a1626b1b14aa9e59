import type { Passport } from '../engine/passport-file.js';
import { type PlanHeader, readPlanHeader } from '../engine/plan-header.js';
import { TrtforgeError } from '../errors.js';

/** A plan that may be given to TensorRT: a whole header of its own, and a passport that agrees, or none where none is required. */
export interface PlanOnDisk {
  readonly path: string;
  readonly header: PlanHeader;
  readonly passport: Passport | null;
}

/**
 * Checks a plan before any library sees it. TensorRT ends the process on a file with a foreign header, so that is refused whatever is asked for.
 * Throws what `verifyEngine` throws (TF_PASSPORT_MISSING only where a passport is required), TF_PLAN_INVALID, TF_PLAN_FOREIGN_HEADER.
 */
export async function readPlanOnDisk(path: string, requirePassport: boolean): Promise<PlanOnDisk> {
  const header = readPlanHeader(path);
  if (header.foreignHeader !== null) {
    const { kind, bytes } = header.foreignHeader;
    const whose = kind === 'ultralytics' ? 'Ultralytics metadata' : 'JSON';
    throw new TrtforgeError(
      'TF_PLAN_FOREIGN_HEADER',
      `${path} begins with ${bytes} bytes of ${whose} in front of the plan; TensorRT would end the process on it.`,
      { remedy: `Write the plan alone: trtforge inspect ${path} --strip-header OUT.` },
    );
  }
  return { path, header, passport: await passportOf(path, requirePassport) };
}

async function passportOf(path: string, required: boolean): Promise<Passport | null> {
  const { verifyEngineInPieces } = await import('../engine/verify-engine.js');
  try {
    return await verifyEngineInPieces(path);
  } catch (error) {
    const isMissing = error instanceof TrtforgeError && error.code === 'TF_PASSPORT_MISSING';
    if (isMissing && !required) return null;
    throw error;
  }
}
