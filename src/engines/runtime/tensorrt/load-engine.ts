import { closeSync, constants, openSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { type Addon, type Gpu, loadAddon } from '../../../addon/addon.js';
import { chosenGpu } from '../../../addon/gpus.js';
import type { NativeEngine, NativeRuntime } from '../../../addon/native-engine.js';
import { finished, type NativeEvent } from '../../../addon/native-job.js';
import { openFile } from '../../../base/files/byte-source.js';
import { removeIfAllowed } from '../../../base/files/files.js';
import { makeScratch } from '../../../base/files/folders.js';
import { writeFailed } from '../../../base/files/publish.js';
import type { OptionsOf } from '../../../base/options/option.js';
import { throwIfCancelled } from '../../../base/process/cancel.js';
import { describeComputeCapability } from '../../../behaviour/facts.js';
import { TrtforgeError } from '../../../errors.js';
import { type EventListener, ignoreEvents, logSeverities, type WorkContext } from '../../../events.js';
import {
  chooseToolchain,
  surveyToolchains,
  thisMachine,
  toolchainNamed,
  unknownVersion,
} from '../../../tensorrt/toolchain/find.js';
import type { Toolchain } from '../../../tensorrt/toolchain/toolchain.js';
import { identitiesOf } from '../../identity/identity.js';
import type { Passport } from '../../identity/passport.js';
import { runsOn, thisPlatform } from '../../identity/target.js';
import { foreignName, type PlanHeader, readPlanHeader } from '../../plan/header.js';
import { loadsIn, platformOfEngine } from '../../plan/loads.js';
import { markWhileOpen } from '../../store/claims/in-use.js';
import { openTrust, type Trust, type trustOptions, verifyTrusted } from '../../store/trust.js';
import { type EngineBindings, engineBindings } from './engine-bindings.js';
import { checkWeightBudget, type loadOptions, nativeLoad } from './options.js';

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

interface ToolchainChoice extends OptionsOf<typeof loadOptions> {
  readonly environment: NodeJS.ProcessEnv;
}

/** The remedy for a plan that runs only with permission. */
const HOST_CODE_REMEDY =
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

/** The same where nothing is loaded, which needs no permission. */
export const libraryOfPlan = (
  plan: PlanFacts,
  choice: Pick<ToolchainChoice, 'toolchain' | 'environment'>,
): Promise<Toolchain> => toolchainForPlan(plan, { ...choice, allowHostCode: true });

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

/** The parts of the addon that loading needs. */
export type EngineAddon = Pick<Addon, 'gpus'> & NativeRuntime;

interface LoadOptions extends OptionsOf<typeof loadOptions>, OptionsOf<typeof trustOptions>, WorkContext {
  readonly device?: number;
  /** Default true. */
  readonly requirePassport?: boolean;
  /** A second implementation, for tests. */
  readonly addon?: EngineAddon;
}

/**
 * An engine on a GPU with what was learned on the way there. `bindings` are its inputs and outputs in our words. While it is open no store gives up
 * its plan.
 */
export interface LoadedEngine {
  readonly plan: PlanFacts;
  readonly toolchain: Toolchain;
  readonly gpu: Gpu;
  readonly addon: EngineAddon;
  readonly native: NativeEngine;
  readonly bindings: EngineBindings;
  close(): Promise<void>;
}

/**
 * Checks a plan (size, header, SHA-256 against its passport, the signature where signatures are required), finds the TensorRT and the GPU for it, and loads it. The caller closes it.
 * Throws TF_SIZE_INVALID, TF_FILE_…, TF_KEY_INVALID, TF_PASSPORT_…, TF_SIGNATURE_INVALID, TF_ENGINE_…, TF_PLAN_INVALID, TF_PLAN_FOREIGN_HEADER, TF_NATIVE_…, TF_USAGE (device), TF_GPU_UNAVAILABLE, TF_TOOLCHAIN_NOT_FOUND,
 * TF_LIBRARY_…, TF_PLAN_LOAD_FAILED, TF_GPU_MEMORY, TF_SESSION_BINDING, TF_CANCELLED.
 */
export async function loadEngine(planPath: string, options: LoadOptions = {}): Promise<LoadedEngine> {
  const release = markWhileOpen(planPath);
  try {
    const engine = await load(planPath, options);
    const close = () => engine.native.close().done.finally(release);
    return { ...engine, close };
  } catch (error) {
    release();
    throw error;
  }
}

async function load(planPath: string, options: LoadOptions): Promise<Omit<LoadedEngine, 'close'>> {
  const { emit = ignoreEvents, signal, plugins = [] } = options;
  const doing = `loading ${planPath}`;
  throwIfCancelled(signal, doing);
  checkWeightBudget(options);
  const environment = options.environment ?? process.env;
  using plan = await readPlanOnDisk(planPath, {
    requirePassport: options.requirePassport ?? true,
    identity: options.identity,
    trust: openTrust(options, environment),
  });
  if (plan.passport === null) {
    const message = `${planPath} has no passport: nothing states what it was built from, nor that it is whole.`;
    emit({ type: 'log', source: 'trtforge', severity: 'warning', message });
  }
  const addon = options.addon ?? loadAddon();
  const gpu = chosenGpu(addon.gpus(), options.device ?? 0, 'Running an engine needs an NVIDIA GPU');
  checkComputeCapability(plan, gpu);
  checkPlugins(plan, plugins);
  const toolchain = await toolchainForPlan(plan, { ...options, environment });
  throwIfCancelled(signal, doing);
  const job = addon.openEngine(
    {
      inferenceLibrary: toolchain.libraries.inference,
      pluginLibrary: toolchain.libraries.plugins,
      pluginPaths: plugins.map((plugin) => resolve(plugin)),
      planPath: plan.loadPath,
      label: labelOf(plan),
      device: gpu.index,
      ...nativeLoad(options),
      verbose: false,
    },
    logTeller(toolchain.product, emit),
  );
  const native = await finished(job, signal, doing, (engine) => void engine.close()).catch((error) => {
    throw withRemedy(error);
  });
  try {
    const bindings = engineBindings(planPath, native.facts.tensors, native.facts.profiles);
    return { plan, toolchain, gpu, addon, native, bindings };
  } catch (error) {
    await native.close().done;
    throw error;
  }
}

/** The part of `askEngine` in the child: loads an engine, which needs no passport, and closes it after it has answered. */
export async function answerOf<Asked, Answer>(
  request: unknown,
  work: WorkContext,
  answer: (engine: LoadedEngine, asked: Asked & LoadOptions) => Promise<Answer>,
): Promise<Answer> {
  const { planPath, ...asked } = request as Asked & LoadOptions & { readonly planPath: string };
  const engine = await loadEngine(planPath, { ...asked, requirePassport: false, ...work });
  try {
    return await answer(engine, request as Asked & LoadOptions);
  } finally {
    await engine.close();
  }
}

/** What profilers call the engine's ranges: its name and the start of its identity, or the file's name where no passport states them. */
const labelOf = ({ path, passport }: PlanFacts): string =>
  passport === null ? basename(path) : `${passport.name} ${passport.identity.digest.slice(0, 12)}`;

/** Checks a GPU against those that the passport states for a plan; without one the library itself decides. Throws TF_ENGINE_GPU_MISMATCH. */
export function checkComputeCapability(
  { path, passport }: Pick<PlanFacts, 'path' | 'passport'>,
  gpu: Gpu,
): void {
  if (passport === null) return;
  const { document } = passport.identity;
  const { target } = document;
  const here = gpu.computeCapability;
  if (runsOn(here, document)) return;
  const built = target.computeCapabilities.map(describeComputeCapability).join(', ');
  throw new TrtforgeError(
    'TF_ENGINE_GPU_MISMATCH',
    `${path} was built for ${built}; ${gpu.name} is ${describeComputeCapability(here)}.`,
    { details: { built: target.computeCapabilities, here } },
  );
}

function checkPlugins({ path, passport }: PlanFacts, plugins: readonly string[]): void {
  for (const plugin of plugins) openFile(plugin).close();
  const needed = passport?.identity.document.recipe.pluginDigests.length ?? 0;
  if (needed === 0 || plugins.length > 0) return;
  throw new TrtforgeError(
    'TF_PLAN_LOAD_FAILED',
    `${path} was built with ${needed} plug-in ${needed === 1 ? 'library' : 'libraries'}, and none is passed.`,
    { remedy: 'Pass the same plug-in libraries: --plugin FILE.' },
  );
}

/** Remedies for errors whose text is always the same. */
const remedies = [
  {
    code: 'TF_LIBRARY_LOAD_FAILED',
    words: /as a plug-in library/,
    remedy:
      "Pass a plug-in library made for this TensorRT, and what it needs itself on the loader's path: ldd FILE shows what is missing.",
  },
  {
    code: 'TF_PLAN_LOAD_FAILED',
    words: /plug-?in/i,
    remedy: 'Pass the plug-in libraries that the engine was built with: --plugin FILE.',
  },
  { code: 'TF_PLAN_LOAD_FAILED', words: /engine with lean runtime/i, remedy: HOST_CODE_REMEDY },
] as const;

/** The same error of loading, with the remedy of its text. */
export function withRemedy(error: unknown): unknown {
  if (!(error instanceof TrtforgeError)) return error;
  const known = remedies.find(({ code, words }) => code === error.code && words.test(error.message));
  if (known === undefined) return error;
  return new TrtforgeError(error.code, error.message, {
    cause: error,
    remedy: known.remedy,
    details: error.details,
  });
}

/** Passes the library's lines on. */
export const logTeller =
  (source: string, emit: EventListener) =>
  (event: NativeEvent): void => {
    if (event.type !== 'log') return;
    emit({ type: 'log', source, severity: logSeverities[event.severity] ?? 'info', message: event.message });
  };
