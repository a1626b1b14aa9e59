import { relative } from 'node:path';
import { onDevice } from '../addon/gpus.js';
import { keepingFiles, openFile } from '../base/files/byte-source.js';
import { protectingInputs } from '../base/files/user-files.js';
import { type DecidedBuild, decideBuild } from '../engines/builder/decide-build.js';
import type { ResolvedBuild } from '../engines/builder/options.js';
import { targetText } from '../engines/identity/target.js';
import { openTrust } from '../engines/store/trust.js';
import { TrtforgeError } from '../errors.js';
import { ignoreEvents, inPhase, workOf } from '../events.js';
import type { ForgeResult } from '../report/forge-result.js';
import { packageVersion } from '../version.js';
import { benchPhase, buildPhase, keptEngine, verifyEnginePhase, whyEngineIdle } from './engine-phases.js';
import { environmentPart, lookAtMachine } from './environment.js';
import { healRun } from './heal.js';
import { convertPhase, inspectPhase, resolvePhase, verifyPhase, whyNotVerified } from './model-phases.js';
import type { ForgeOptions, ForgeSeams } from './options.js';
import { type Forged, PhaseRun, type Run } from './phase-run.js';
import { openRunLog, stampedLine } from './run-log.js';
import {
  defaultRunRoot,
  describesTheRoot,
  type RunRoot,
  runRootAt,
  writeJson,
  writeReport,
} from './run-root.js';
import { judge } from './verdict.js';

/** The phases from a model to its engine: what decides everything, what makes the engine, and what checks it. */
export const forgePhases = (run: Run) => ({
  decide: [inspectPhase(run), resolvePhase(run)],
  make: [convertPhase(run), buildPhase(run)],
  check: [verifyPhase(run), verifyEnginePhase(run), benchPhase(run)],
});

/**
 * From an ONNX file to a named, checked engine and its report, in a run root.
 *
 * ```ts
 * const { verdict, engine, report } = await forge({ model: 'resnet50.onnx', precision: 'fp16', target: 'tensorrt-rtx:sm_89' });
 * ```
 * Throws only when it cannot begin: TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_WRITE_FAILED, TF_USAGE (device). What stops a phase later is in `error`. The report is then
 * written all the same (`report` is its path), unless the request was wrong and nothing began, or made no engine where the report of a finished run is.
 */
export async function forge(options: ForgeOptions, context: ForgeSeams = {}): Promise<ForgeResult> {
  const { model } = options;
  return protectingInputs([model], () => keepingFiles([model], () => forgeModel(options, context)));
}

/**
 * The result of a run, for a program. Throws TF_CANCELLED for one that was aborted, as every function of the library does, with the signal's reason as its cause;
 * `details.report` is the page of what was done by then.
 */
export function unlessCancelled<R extends { readonly report: string | null }>(
  result: R,
  error: Pick<NonNullable<ForgeResult['error']>, 'code' | 'message' | 'remedy'> | null,
  signal: AbortSignal | undefined,
): R {
  if (error?.code !== 'TF_CANCELLED') return result;
  const { message, remedy } = error;
  const details = { report: result.report };
  throw new TrtforgeError('TF_CANCELLED', message, { remedy, details, cause: signal?.reason });
}

/** A run as it begins. Throws what opening the model throws, and TF_USAGE for a device that is not there. */
function runOf(options: ForgeOptions, context: ForgeSeams): Run {
  openFile(options.model).close();
  const machine = context.machine ?? lookAtMachine();
  return {
    options,
    root: runRootAt(options.runRoot ?? defaultRunRoot(options.model, options.precision ?? 'as-is')),
    machine: { ...machine, gpus: onDevice(machine.gpus, options.device ?? 0) },
    visible: machine.gpus,
    environment: context.environment ?? process.env,
    commandLine: context.commandLine ?? null,
    profileFrom: context.profileFrom,
    build: context.build,
    // Where it heals, the search is the longer one.
    afterFailure: options.heal === undefined ? context.afterFailure : undefined,
    healer: context.healer,
  };
}

async function forgeModel(options: ForgeOptions, context: ForgeSeams): Promise<ForgeResult> {
  const run = runOf(options, context);
  const { emit = ignoreEvents } = context;
  const startedAt = new Date().toISOString();
  const started = performance.now();
  const clock = () => performance.now() - started;
  const log = openRunLog(run.root, stampedLine(clock), emit);
  const phases = new PhaseRun<Forged>(
    { ...workOf(context), model: options.model, backEnds: context.backEnds },
    log.write,
    clock,
    log.begin,
  );
  try {
    const { decide, make, check } = forgePhases(run);
    await phases.advance([...decide, ...make, ...check]);
    const heal = await healRun(run, phases, forgePhases);
    const isReported = describesTheRoot(run.root, phases);
    const result = resultOf(run, phases, { startedAt, totalMs: clock(), isReported, heal });
    if (!isReported) return result;
    log.begin();
    for (const [step, content] of stepResults(phases.found)) writeJson(run.root.stepResult(step), content);
    await inPhase('report', emit, async () =>
      writeReport(run.root, result, context.sections?.([{ root: run.root.path, result }])),
    );
    return result;
  } finally {
    log.close();
  }
}

/** The results of the steps, by the names of their files. */
const stepResults = (found: Partial<Forged>): readonly (readonly [string, object])[] =>
  Object.entries({
    inspect: found.inspection,
    convert: found.conversion,
    verify: found.verification,
    'verify-engine': found.engineVerification,
    bench: found.bench,
  }).flatMap(([step, result]) => (result === undefined ? [] : [[step, result] as const]));

/** The result of phases over one model, however far they came. */
export function resultOf(
  { options, root, machine, commandLine, profileFrom = [] }: Run,
  { found, phases, error, issues }: Pick<PhaseRun<Forged>, 'found' | 'phases' | 'error' | 'issues'>,
  {
    isReported,
    heal,
    ...times
  }: Pick<ForgeResult, 'startedAt' | 'totalMs' | 'heal'> & {
    readonly isReported: boolean;
  },
): ForgeResult {
  const { inspection, prepared, conversion, obtained } = found;
  const parts = {
    error,
    phases: [...phases],
    model: inspection ?? null,
    conversion: conversion ?? null,
    build: obtained ?? null,
    verification: found.verification ?? null,
    engineVerification: found.engineVerification ?? null,
    bench: found.bench ?? null,
    heal,
  };
  const version = packageVersion();
  return {
    schema: 'trtforge.forge/2',
    version,
    ...times,
    request: {
      model: options.model,
      precision: options.precision ?? 'as-is',
      target: targetOf(options, found),
    },
    profileFrom: [...profileFrom],
    runRoot: root.path,
    engine: obtained?.engine ?? null,
    passport: obtained?.passportPath ?? null,
    report: isReported ? root.report : null,
    ...judge(parts),
    ...parts,
    issues: [...issues],
    environment: environmentPart(machine, {
      trtforge: version,
      toolchain: prepared?.toolchain ?? null,
      backend: found.verification?.candidateBackend ?? null,
    }),
    repeat: commandLine,
    files: isReported ? filesOf(root, found) : [],
  };
}

function targetOf({ target }: ForgeOptions, { prepared }: Partial<Forged>): string | null {
  const request = prepared?.identity.target ?? target;
  return request === undefined || typeof request === 'string' ? (request ?? null) : targetText(request);
}

/** The files of the run root. */
function filesOf(root: RunRoot, found: Partial<Forged>): ForgeResult['files'] {
  const { conversion, obtained } = found;
  const all: readonly (readonly [string | null | undefined, string])[] = [
    [root.report, 'this report as a page'],
    [root.markdown, 'the same as Markdown'],
    [root.result, 'the result it is made of'],
    [root.timings, 'times of every phase and its parts'],
    [conversion?.output, 'the typed model'],
    [conversion?.externalData, 'its weights'],
    [obtained?.engine, 'the engine'],
    [obtained?.passportPath, 'its passport'],
    ...stepResults(found).map(([step]) => [root.stepResult(step), `the result of ${step} in full`] as const),
    [root.logs, 'one log per phase'],
  ];
  return all.flatMap(([path, what]) =>
    typeof path === 'string' ? [{ path: relative(root.path, path), what }] : [],
  );
}

/** The plan by which the phases over one model get its engine. */
export interface EnginePlan {
  readonly decided: DecidedBuild;
  /** The engine that stays in its place; null: it is taken from a store or built. */
  readonly kept: string | null;
  /** Whether a phase before the build writes the typed model. */
  readonly isConverted: boolean;
}

/** The work that a run of forge would do. */
export interface ForgePlan {
  /** The folder it would write. */
  readonly runRoot: string;
  /** null with --skip build. */
  readonly engine: EnginePlan | null;
  /** The phases after the decisions, in order, each with the reason why it would be left out, or null. */
  readonly phases: readonly { readonly name: string; readonly skipped: string | null }[];
}

/** Looks for the engine in its place and in the stores; builds and fetches nothing. Throws what `openStores` throws. */
export async function planEngine(
  run: Run,
  prepared: ResolvedBuild,
  signal: AbortSignal | undefined,
): Promise<EnginePlan> {
  const { options, environment } = run;
  const decided = await decideBuild(prepared, options, { signal, environment });
  const kept = await keptEngine(run, prepared, openTrust(options, environment));
  return { decided, kept: kept?.engine ?? null, isConverted: convertPhase(run).skip({ prepared }) === null };
}

/** Decides everything about a run of forge; writes nothing. Throws what its phase resolve ends with. */
export async function planForge(options: ForgeOptions, context: ForgeSeams): Promise<ForgePlan> {
  const run = runOf(options, context);
  const resolve = resolvePhase(run);
  const isSkipped = resolve.skip({}) !== null;
  const prepared = isSkipped ? undefined : (await resolve.run({}, workOf(context))).found.prepared;
  const convert = convertPhase(run).skip({ prepared });
  return {
    runRoot: run.root.path,
    engine: prepared === undefined ? null : await planEngine(run, prepared, context.signal),
    phases: [
      { name: 'convert', skipped: convert },
      { name: 'build', skipped: buildPhase(run).skip({ prepared }) },
      { name: 'verify', skipped: whyNotVerified(options, convert === null) },
      { name: 'verify engine', skipped: whyEngineIdle(run, prepared, 'verify') },
      { name: 'bench', skipped: whyEngineIdle(run, prepared, 'bench') },
      ...(options.heal === undefined ? [] : [{ name: 'heal', skipped: 'unless a comparison fails' }]),
      { name: 'report', skipped: null },
    ],
  };
}
