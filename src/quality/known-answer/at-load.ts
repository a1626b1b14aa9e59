import type { GpuList } from '../../addon/addon.js';
import { visibleGpus } from '../../addon/gpus.js';
import * as is from '../../base/options/kinds.js';
import { contextOptions, type OptionsOf, optional } from '../../base/options/option.js';
import { isEngineFile } from '../../engines/plan/header.js';
import type { EngineSession } from '../../engines/runtime/tensorrt/engine-interface.js';
import { sessionOf } from '../../engines/runtime/tensorrt/engine-session.js';
import {
  checkComputeCapability,
  type EngineAddon,
  type LoadedEngine,
  loadEngine,
  toolchainForPlan,
} from '../../engines/runtime/tensorrt/load-engine.js';
import { type EngineSessionOptions, engineSessionOptions } from '../../engines/runtime/tensorrt/options.js';
import { isSignatureRequired } from '../../engines/store/trust.js';
import { TrtforgeError } from '../../errors.js';
import { type EventListener, ignoreEvents } from '../../events.js';
import type { Toolchain } from '../../tensorrt/toolchain/toolchain.js';
import { observeLoaded } from './observe-loaded.js';
import { type CheckedPlace, checkAndRemember, recallCheck, rememberCheck } from './past-checks.js';
import { type Proof, proofOf, proofOfPlan, resultOf } from './proof.js';
import type { EngineCheck } from './result.js';

/** An engine that does not give its known answer is refused, or used with a warning; with `off` it is not checked. */
const checkModes = ['refuse', 'warn', 'off'] as const;
export type CheckMode = (typeof checkModes)[number];

export const checkedSessionOptions = {
  /** Default `off`. */
  check: optional(is.words(...checkModes), {
    flags: '--check <when>',
    group: 'Engine loading',
    advanced: true,
    describe:
      'engines with a known answer: reject one with another answer, or warn of it; once for each GPU, driver and library',
    default: 'off',
  }),
  ...contextOptions,
  ...engineSessionOptions,
};

/**
 * Loads an engine onto a GPU, in this process, as `openEngineSession` of `engines/runtime` does, and lets it prove itself first where `check` asks for it. What was
 * found is remembered by plan, GPU, driver and library, so that it costs once. Throws TF_ENGINE_WRONG_ANSWER with `refuse`.
 */
export async function openCheckedSession(
  planPath: string,
  options: OptionsOf<typeof checkedSessionOptions> & { readonly addon?: EngineAddon } = {},
): Promise<EngineSession> {
  const { check = 'off', environment = process.env, signal } = options;
  const engine = await loadEngine(planPath, options);
  try {
    if (check !== 'off') {
      const proof = proofOfPlan(engine.plan, isSignatureRequired(options, environment));
      const { gpu, addon, toolchain } = engine;
      const place = placeOf(proof, { gpu, toolchain, driver: addon.gpus().driverVersion });
      let result = recallCheck(place, environment);
      if (result === undefined) {
        result = resultOf(proof, await observeLoaded(engine, { answer: proof.answer, signal }));
        rememberCheck(result, environment);
      }
      report(result, check, options.emit);
    }
    return sessionOf(engine, options);
  } catch (error) {
    await engine.close();
    throw error;
  }
}

/** The same before a file is used in a process of its own; a model has nothing to prove. Throws TF_ENGINE_WRONG_ANSWER, and what checking throws. */
export async function checkBeforeUse(
  file: string,
  check: CheckMode,
  options: EngineSessionOptions,
): Promise<void> {
  if (check === 'off' || !isEngineFile(file)) return;
  const place = await placeFinder(options)(file);
  const known = place && recallCheck(place, options.environment ?? process.env);
  report(known ?? (await checkAndRemember(file, options)), check, options.emit);
}

/** Where engines would run here, by their files; undefined for one that would not: loading it states why. */
export function placeFinder(
  { environment = process.env, device = 0, ...options }: EngineSessionOptions,
  { gpus, driverVersion: driver }: Pick<GpuList, 'gpus' | 'driverVersion'> = visibleGpus(),
): (planPath: string) => Promise<CheckedPlace | undefined> {
  const gpu = gpus.find(({ index }) => index === device);
  /** Looking for TensorRT takes longer than reading a passport. */
  const libraries = new Map<string, Promise<Toolchain>>();
  return async (planPath) => {
    if (gpu === undefined) return undefined;
    try {
      const proof = proofOf(planPath, environment);
      const { plan } = proof;
      checkComputeCapability(plan, gpu);
      const { header, passport } = plan;
      const flags = passport?.identity.document.recipe.flags;
      const key = JSON.stringify([header.product, header.version, flags?.includes('version-compatible')]);
      const found = libraries.get(key) ?? toolchainForPlan(plan, { ...options, environment });
      libraries.set(key, found);
      return placeOf(proof, { gpu, toolchain: await found, driver });
    } catch (error) {
      if (!(error instanceof TrtforgeError)) throw error;
      return undefined;
    }
  };
}

const placeOf = (
  { planSha256, answerSha256 }: Proof,
  {
    gpu,
    toolchain: { product, version },
    driver,
  }: Pick<LoadedEngine, 'gpu' | 'toolchain'> & { driver: string | null },
): CheckedPlace => ({ planSha256, answerSha256, gpu, driver, library: `${product} ${version}` });

function report(result: EngineCheck, mode: CheckMode, emit: EventListener = ignoreEvents): void {
  const { outcome, engine, reasons, next, gpu, library, checks } = result;
  if (outcome === 'pass') return;
  const [reason = ''] = reasons;
  const message = `${engine} does not give its known answer on ${gpu?.name} with ${library}: ${reason}`;
  if (outcome === 'fail' && mode === 'refuse') {
    const wrong = checks.find((check) => check.outcome === 'fail')?.wrong ?? null;
    throw new TrtforgeError('TF_ENGINE_WRONG_ANSWER', message, {
      remedy: `Build it again for this machine, or look for the cause: ${next}`,
      details: { ...wrong, bisect: next, gpu: gpu?.name, library },
    });
  }
  const text =
    outcome === 'fail' ? `${message} To find the cause: ${next}` : `${engine} was not proven: ${reason}`;
  emit({ type: 'log', source: 'trtforge', severity: 'warning', message: text });
}
