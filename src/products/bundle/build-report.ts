import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readJson } from '../../base/files/files.js';
import { identityDigest } from '../../engines/identity/identity.js';
import { visibleEntry } from '../../engines/identity/machine.js';
import type { ProfileRequest } from '../../engines/identity/profile.js';
import { targetText } from '../../engines/identity/target.js';
import { ExitCode, type TrtforgeError } from '../../errors.js';
import { fp16 } from '../../formats/precision/formats/fp16.js';
import { packageVersion } from '../../version.js';
import type { BundleRequest } from './bundle-request.js';
import type { BundleRun } from './bundle-run.js';
import type { ComponentState } from './component-state.js';
import { environmentOf } from './machine.js';
import {
  type BundleFailure,
  type BundleReport,
  type ComponentReport,
  componentReportSchema,
} from './report-schema.js';

/** The report's name in the folder of a bundle. */
export const REPORT_FILE = 'build_report.json';

export interface RunTimes {
  readonly started: Date;
  readonly finished: Date;
  readonly stagingKept: boolean;
}

/** What the report says of a run, however far it came. */
export function reportOf(run: BundleRun, thrown: TrtforgeError | undefined, times: RunTimes): BundleReport {
  const { request, toolchain, gpus } = run;
  const [first] = run.components.flatMap(({ target }) => (target === undefined ? [] : [target.prepared]));
  const recipe = first?.identity.recipe;
  const settings = request.settings ?? {};
  const failed = run.components.find(({ failure }) => failure === thrown)?.name ?? null;
  const workspace = recipe?.memoryPools.workspace ?? settings.memoryPools?.workspace ?? null;
  const isWrong = run.checks.some(({ outcome }) => outcome === 'fail');
  const precision = request.precision ?? 'as-is';
  return {
    schema: 'trtforge.bundle/1',
    version: packageVersion(),
    exitCode: thrown?.exitCode ?? (isWrong ? ExitCode.failed : ExitCode.pass),
    meta: request.meta,
    model_name: run.meta?.modelName ?? null,
    onnx_dir: run.folder,
    outdir: request.outdir,
    report: describesTheFolder(run, thrown) ? reportPath(request) : null,
    timing_cache: first === undefined ? null : run.timingCacheFor(first),
    device: run.device,
    fp16: precision === fp16.id,
    precision,
    builder: request.builder ?? 'native',
    target: first === undefined ? null : targetText(first.identity.target),
    builder_optimization_level: recipe?.optimizationLevel ?? settings.optimizationLevel ?? null,
    workspace_mb: workspace === null ? null : workspace / 2 ** 20,
    trtexec: { path: request.builder === 'trtexec' ? (toolchain?.trtexec ?? null) : null },
    staging_dir: times.stagingKept ? run.temporary : null,
    started_utc: stamp(times.started),
    finished_utc: stamp(times.finished),
    total_sec: seconds(times.finished.getTime() - times.started.getTime()),
    steps: [...run.clock.steps],
    repeat: run.commandLine,
    env: environmentOf(gpus, toolchain),
    components: inOrder(run.roster, [
      ...run.components.map((state) => componentPart(run, state)),
      ...earlierComponents(run),
    ]),
    checks: [...run.checks],
    not_checked: [...run.notChecked],
    mismatches: [...(run.findings?.mismatches ?? [])],
    warnings: [...(run.findings?.warnings ?? [])],
    outcome: thrown !== undefined ? 'error' : isWrong ? 'fail' : 'pass',
    ...(thrown === undefined ? {} : { error: `${thrown.code}: ${thrown.message}` }),
    failure: thrown === undefined ? null : failureOf(run, thrown, failed),
  };
}

const reportPath = ({ outdir }: BundleRequest): string => join(outdir, REPORT_FILE);

/** A run that failed and changed no engine takes no report of a finished run away, and none is worth writing of a request that could not begin. */
function describesTheFolder(
  { request, components, clock }: BundleRun,
  thrown: TrtforgeError | undefined,
): boolean {
  const isNew = components.some(({ engine }) => engine !== undefined && engine.status !== 'kept');
  if (thrown === undefined || isNew) return true;
  const hasBegun = thrown.exitCode !== ExitCode.badInput || clock.steps.some(({ step }) => step === 'build');
  return hasBegun && !readReport(reportPath(request)).isFinished;
}

const inOrder = (roster: readonly string[], components: readonly ComponentReport[]): ComponentReport[] =>
  [...components].sort((a, b) => roster.indexOf(a.component) - roster.indexOf(b.component));

function componentPart(run: BundleRun, state: ComponentState): ComponentReport {
  const { target, engine, files, smoke, failure } = state;
  const prepared = target?.prepared;
  const passport = engine?.passport;
  const profile = target?.profile ?? new Map();
  return {
    component: state.name,
    status:
      engine !== undefined && failure === undefined
        ? engine.status
        : failure === undefined
          ? 'not-reached'
          : 'failed',
    onnx: state.onnx,
    onnx_bytes: files?.onnxBytes ?? null,
    engine: state.enginePath,
    commands: {
      build: state.trtexecCommand === undefined ? [] : onlyOn(run, state.trtexecCommand),
    },
    engine_bytes: passport?.plan.bytes ?? null,
    engine_human: passport === undefined ? null : iec(passport.plan.bytes),
    profile: { min: shapesAt(profile, 'min'), opt: shapesAt(profile, 'opt'), max: shapesAt(profile, 'max') },
    profile_index: 0,
    timings_sec: {
      build: engine === undefined ? null : seconds(engine.buildMs),
      smoke: smoke === undefined ? null : seconds(smoke.ms),
      convert:
        state.typed === undefined
          ? secondsOrNull(engine?.status === 'built' ? passport?.built.conversionMs : null)
          : seconds(state.typed.ms),
    },
    logs: { build: state.buildLog.there, smoke: state.smokeLog.there },
    env: environmentOf(run.gpus, prepared?.toolchain),
    target: prepared === undefined ? null : targetText(prepared.identity.target),
    identity: prepared === undefined ? null : identityDigest(prepared.identity),
    passport: engine?.passportPath ?? null,
    engine_sha256: passport?.plan.sha256 ?? null,
    onnx_sha256: files?.onnxSha256 ?? null,
    model_digest: prepared?.identity.model ?? null,
    external_data: files?.external ?? null,
    precision: prepared?.identity.recipe.precision ?? run.request.precision ?? 'as-is',
    layers: passport?.plan.layers ?? null,
    workspace_bytes: prepared?.identity.recipe.memoryPools.workspace ?? null,
    timing_cache_state: passport?.built.timingCache ?? null,
    peak_memory_bytes: passport?.built.peakMemoryBytes ?? null,
    staging: state.staged === undefined ? null : { method: state.staged.method, files: state.staged.files },
    smoke: smoke ?? null,
    warnings: [...(engine?.warnings ?? []), ...state.told, ...notFinite(state)],
    failure: failure === undefined ? null : failureOf(run, failure, state.name),
  };
}

const notFinite = ({ smoke }: ComponentState): readonly string[] =>
  (smoke?.outputs ?? [])
    .filter(({ finite }) => !finite)
    .map(({ name }) => `The output ${name} of the smoke run is not finite everywhere.`);

/** trtexec, as it was called here, takes the first GPU it sees. */
const onlyOn = ({ request, environment }: BundleRun, words: readonly string[]): string[] =>
  request.device === undefined
    ? [...words]
    : ['env', `CUDA_VISIBLE_DEVICES=${visibleEntry(environment, request.device)}`, ...words];

const shapesAt = (profile: ProfileRequest, end: 'min' | 'opt' | 'max'): Record<string, number[]> =>
  Object.fromEntries([...profile].map(([name, range]) => [name, [...range[end]]]));

/** With some components asked for, the others are in the report as an earlier one has them, as long as their engines lie there unchanged in size. */
function earlierComponents({ request, components }: BundleRun): readonly ComponentReport[] {
  if (request.only === undefined || request.only.length === 0) return [];
  return readReport(reportPath(request))
    .components.filter(({ component }) => !components.some(({ name }) => name === component))
    .filter(({ engine, engine_bytes }) => engine_bytes !== null && existsSync(engine))
    .map((component) => ({ ...component, status: 'earlier' }));
}

interface EarlierReport {
  readonly components: readonly ComponentReport[];
  readonly isFinished: boolean;
}

/** An earlier report is only an aid: one that cannot be read, or of another tool, has nothing to say. */
function readReport(path: string): EarlierReport {
  const content = readJson(path);
  const { components, outcome }: { components?: unknown; outcome?: unknown } =
    typeof content === 'object' && content !== null ? content : {};
  const parts = (Array.isArray(components) ? components : []).flatMap((entry: unknown) => {
    const parsed = componentReportSchema.safeParse(entry);
    return parsed.success ? [parsed.data] : [];
  });
  return { components: parts, isFinished: outcome === 'pass' || outcome === 'fail' };
}

function failureOf(
  { clock }: BundleRun,
  { code, message, remedy, details }: TrtforgeError,
  component: string | null,
): BundleFailure {
  const issues = details?.issues;
  const failed = clock.steps.filter((one) => one.failed && one.step !== 'convert');
  const step = (failed.findLast((one) => one.component === component) ?? failed.at(-1))?.step ?? null;
  return {
    component,
    step,
    code,
    message,
    // The models were inspected before the first build: that they were not run here has another cause.
    remedy: code === 'TF_ONNXRUNTIME_FAILED' && hasEngines(step) ? WITHOUT_RUNNING : remedy,
    ...(Array.isArray(issues) ? { issues } : {}),
  };
}

const hasEngines = (step: BundleFailure['step']): boolean => step === 'smoke run' || step === 'chained check';

const WITHOUT_RUNNING =
  'Use the engines as they are, unchecked: trtforge build with the same options keeps them and runs no model. The message says what ONNX Runtime could not do.';

/** `20260101_120000`, UTC. */
const stamp = (at: Date): string =>
  at
    .toISOString()
    .replace(/[-:]|\..*$/g, '')
    .replace('T', '_');

const seconds = (ms: number): number => Math.round(ms) / 1000;
const secondsOrNull = (ms: number | null | undefined): number | null =>
  ms === null || ms === undefined ? null : seconds(ms);

/** `12.80 MiB`. */
function iec(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;
  let unit = 0;
  let amount = bytes;
  for (; amount >= 1024 && unit < units.length - 1; unit++) amount /= 1024;
  return `${unit === 0 ? amount : amount.toFixed(2)} ${units[unit]}`;
}
