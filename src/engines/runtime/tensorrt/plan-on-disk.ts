import { closeSync, constants, openSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { removeIfAllowed } from '../../../base/files/files.js';
import { writeFailed } from '../../../base/files/publish.js';
import { makeScratch } from '../../../base/files/scratch.js';
import type { OptionsOf } from '../../../base/options/option.js';
import { TrtforgeError } from '../../../errors.js';
import {
  chooseToolchain,
  surveyToolchains,
  thisMachine,
  toolchainNamed,
  unknownVersion,
} from '../../../tensorrt/toolchain/find.js';
import type { Toolchain } from '../../../tensorrt/toolchain/toolchain.js';
import { identitiesOf } from '../../identity/engine-name.js';
import type { Passport } from '../../identity/passport.js';
import { thisPlatform } from '../../identity/target.js';
import { foreignName, type PlanHeader, readPlanHeader } from '../../plan/header.js';
import { loadsIn, platformOfEngine } from '../../plan/loads.js';
import { type Trust, verifyTrusted } from '../../store/trust.js';
import type { loadOptions } from './engine-options.js';

/** A plan that may be passed to TensorRT: with a complete header of its own, and a passport that agrees, or none where none is required. */
export interface PlanFacts {
  readonly path: string;
  readonly header: PlanHeader;
  readonly passport: Passport | null;
}

export interface PlanOnDisk extends PlanFacts, Disposable {
  /** The path for a library: the very bytes that were checked. Until the plan is disposed of. */
  readonly loadPath: string;
}

interface PlanCheck {
  readonly requirePassport: boolean;
  readonly identity?: string | undefined;
  readonly trust: Trust;
}

/**
 * Checks a plan before any library sees it. TensorRT ends the process on a file with a foreign header, so that is always rejected.
 * Where signatures are required a private copy is checked and loaded, since others may change the file in between.
 * Throws what `verifyTrusted` throws (TF_PASSPORT_MISSING only where a passport is required, or an identity), TF_PLAN_INVALID, TF_PLAN_FOREIGN_HEADER, TF_WRITE_FAILED.
 */
export async function readPlanOnDisk(path: string, check: PlanCheck): Promise<PlanOnDisk> {
  const header = readPlanHeader(path);
  if (header.foreignHeader !== null) {
    const { bytes } = header.foreignHeader;
    throw new TrtforgeError(
      'TF_PLAN_FOREIGN_HEADER',
      `${path} begins with ${bytes} bytes of ${foreignName(header.foreignHeader)} in front of the plan; TensorRT would end the process on it.`,
      { remedy: `Write the plan alone: trtforge engine strip-header ${path} -o model.plan` },
    );
  }
  const copy = check.trust.required
    ? await privateCopy(path)
    : { loadPath: path, [Symbol.dispose]: () => {} };
  try {
    return { path, header, passport: await passportOf(path, copy.loadPath, check), ...copy };
  } catch (error) {
    copy[Symbol.dispose]();
    throw error;
  }
}

async function passportOf(
  path: string,
  loadPath: string,
  { requirePassport, identity, trust }: PlanCheck,
): Promise<Passport | null> {
  try {
    return (await verifyTrusted(trust, path, loadPath, identity)).passport;
  } catch (error) {
    if (!(error instanceof TrtforgeError) || error.code !== 'TF_PASSPORT_MISSING') throw error;
    if (trust.required) {
      const message = `${path} is rejected: it has no passport, and a signature covers the passport.`;
      throw new TrtforgeError('TF_SIGNATURE_INVALID', message, { cause: error });
    }
    if (!requirePassport && identitiesOf(path, identity).length === 0) return null;
    throw error;
  }
}

/** A copy without a name, so that nobody else can open it and a killed process leaves nothing. */
async function privateCopy(path: string): Promise<Pick<PlanOnDisk, 'loadPath' | typeof Symbol.dispose>> {
  const folder = makeScratch('plan');
  const copy = join(folder, 'plan');
  try {
    await copyFile(path, copy, constants.COPYFILE_FICLONE);
    const descriptor = openSync(copy, 'r');
    // Not /proc/self: trtexec opens it from a process of its own.
    return {
      loadPath: `/proc/${process.pid}/fd/${descriptor}`,
      [Symbol.dispose]: () => closeSync(descriptor),
    };
  } catch (cause) {
    throw writeFailed(copy, cause);
  } finally {
    removeIfAllowed(folder);
  }
}

export interface ToolchainChoice extends OptionsOf<typeof loadOptions> {
  readonly environment: NodeJS.ProcessEnv;
}

/** The remedy for a plan that runs only with permission. */
export const HOST_CODE_REMEDY =
  'A version-compatible plan carries its own runtime, which is code: allow it with --allow-host-code if you trust the file.';

/** The TensorRT that a plan is to be loaded with. Throws TF_TOOLCHAIN_NOT_FOUND, TF_ENGINE_VERSION_MISMATCH. */
export async function toolchainForPlan(plan: PlanFacts, choice: ToolchainChoice): Promise<Toolchain> {
  const { toolchain, environment } = choice;
  if (typeof toolchain === 'object') return fitting(plan, [toolchain], choice);
  const machine = thisMachine(environment);
  const { toolchains: found, damaged } = await surveyToolchains(machine);
  if (toolchain !== undefined) return fitting(plan, [toolchainNamed(found, toolchain, machine)], choice);
  const { product, version } = plan.header;
  const candidates = found.filter((each) => each.product === product && unknownVersion(each) === null);
  if (candidates.length === 0) {
    chooseToolchain(found, { product, purpose: 'run', version: version ?? undefined }, damaged);
  }
  return fitting(plan, candidates, choice);
}

function fitting(
  plan: PlanFacts,
  candidates: readonly Toolchain[],
  { allowHostCode }: ToolchainChoice,
): Toolchain {
  const document = plan.passport?.identity.document;
  const engine = { ...plan.header, ...(document && platformOfEngine(document)) };
  const judged = candidates.map((toolchain) => ({
    toolchain,
    ...loadsIn(engine, { ...thisPlatform, ...toolchain }, document?.recipe.flags),
  }));
  // An engine of another platform is tried; its known answer judges it.
  const exact = judged.find(({ loads }) => loads === 'yes' || loads === 'unproven');
  if (exact !== undefined) return exact.toolchain;
  const compatible = judged.find(({ loads }) => loads !== 'no');
  if (compatible !== undefined && allowHostCode) return compatible.toolchain;
  const nearest = compatible ?? judged[0];
  throw new TrtforgeError('TF_ENGINE_VERSION_MISMATCH', `${plan.path} cannot be loaded: ${nearest?.why}`, {
    remedy:
      compatible === undefined
        ? undefined
        : compatible.loads === 'if-allowed'
          ? HOST_CODE_REMEDY
          : `Build it again with ${compatible.toolchain.product} ${compatible.toolchain.version}. If it was built version-compatible with its runtime inside, --allow-host-code loads it.`,
    details: {
      built: { product: plan.header.product, version: plan.header.version },
      found: candidates.map(({ product, version }) => ({ product, version })),
    },
  });
}
