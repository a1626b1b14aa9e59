import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readJson } from '../../base/files/files.js';
import { identityDigest } from '../../engines/identity/identity.js';
import { visibleEntry } from '../../engines/identity/machine.js';
import type { ProfileRequest } from '../../engines/identity/profile.js';
import { targetText } from '../../engines/identity/target.js';
import { ExitCode } from '../../errors.js';
import { environmentPart } from '../../forge/environment.js';
import { fp16 } from '../../formats/precision/formats/fp16.js';
import type { GpuList } from '../../tensorrt/addon/addon.js';
import { packageVersion } from '../../version.js';
import type { BundleRequest } from './bundle-request.js';
import type { BundleRun, BundleStop } from './bundle-run.js';
import { type ComponentRun, timingCacheFor } from './component-run.js';
import {
  type BundleEnvironment,
  type BundleFailure,
  type BundleReport,
  type ComponentReport,
  componentReportSchema,
  type SmokeRun,
} from './report-schema.js';

/** The report's name in the folder of a bundle. */
export const REPORT_FILE = 'build_report.json';

export interface RunTimes {
  readonly started: Date;
  readonly finished: Date;
}

/** The report of a run, however far it came. */
export function reportOf(run: BundleRun, times: RunTimes): BundleReport {
  const { request, toolchain, stop, setting } = run;
  const { machine } = setting;
  const [first] = run.components.flatMap(({ target }) => (target === undefined ? [] : [target.prepared]));
  const recipe = first?.identity.recipe;
  const settings = request.settings ?? {};
  const workspace = recipe?.memoryPools.workspace ?? settings.memoryPools?.workspace ?? null;
  const isWrong = run.checks.some(({ outcome }) => outcome === 'fail');
  const precision = request.precision ?? 'as-is';
  const version = packageVersion();
  return {
    schema: 'trtforge.bundle/1',
    version,
    exitCode: stop?.error.exitCode ?? (isWrong ? ExitCode.failed : ExitCode.pass),
    meta: request.meta,
    model_name: run.meta?.modelName ?? null,
    onnx_dir: run.folder,
    outdir: request.outdir,
    report: describesTheFolder(run) ? reportPath(request) : null,
    timing_cache: first === undefined ? null : timingCacheFor(first, request),
    device: request.device ?? 0,
    fp16: precision === fp16.id,
    precision,
    builder: request.builder ?? 'native',
    target: first === undefined ? null : targetText(first.identity.target),
    builder_optimization_level: recipe?.optimizationLevel ?? settings.optimizationLevel ?? null,
    workspace_mb: workspace === null ? null : workspace / 2 ** 20,
    trtexec: { path: request.builder === 'trtexec' ? (toolchain?.trtexec ?? null) : null },
    staging_dir: request.keepTemp === true ? setting.temporary : null,
    started_utc: stamp(times.started),
    finished_utc: stamp(times.finished),
    total_sec: seconds(times.finished.getTime() - times.started.getTime()),
    phases: [...run.phases],
    repeat: setting.commandLine,
    env: environmentOf(machine.gpus, toolchain),
    environment: environmentPart(machine, {
      trtforge: version,
      toolchain: toolchain ?? null,
      backend: run.checks[0]?.reference_backend ?? null,
    }),
    components: inOrder(run.roster, [
      ...run.components.map((component) => componentPart(run, component)),
      ...earlierComponents(run),
    ]),
    checks: [...run.checks],
    not_checked: [...run.notChecked],
    mismatches: [...(run.findings?.mismatches ?? [])],
    warnings: [...(run.findings?.warnings ?? [])],
    outcome: stop !== undefined ? 'error' : isWrong ? 'fail' : 'pass',
    ...(stop === undefined ? {} : { error: `${stop.error.code}: ${stop.error.message}` }),
    failure: stop === undefined ? null : failureOf(stop),
  };
}

const reportPath = ({ outdir }: BundleRequest): string => join(outdir, REPORT_FILE);

/** A run that failed and changed no engine takes no report of a finished run away, and none is worth writing of a request that could not begin. */
function describesTheFolder({ request, components, stop }: BundleRun): boolean {
  const isNew = components.some(
    ({ found }) => found.obtained !== undefined && found.obtained.source !== 'kept',
  );
  if (stop === undefined || isNew) return true;
  const hasBegun =
    stop.error.exitCode !== ExitCode.badInput || components.some((component) => component.hasBegun);
  return hasBegun && !readReport(reportPath(request)).isFinished;
}

const inOrder = (roster: readonly string[], components: readonly ComponentReport[]): ComponentReport[] =>
  [...components].sort((a, b) => roster.indexOf(a.component) - roster.indexOf(b.component));

function componentPart(run: BundleRun, component: ComponentRun): ComponentReport {
  const { target, files, error, issues, found } = component;
  const { obtained, smoke, conversion } = found;
  const prepared = target?.prepared;
  const passport = obtained?.passport;
  const profile = component.part?.profile ?? new Map();
  const isBuilt = obtained?.source === 'built';
  return {
    component: component.name,
    status: error !== null ? 'failed' : (obtained?.source ?? 'not-reached'),
    onnx: component.onnx,
    onnx_bytes: files?.onnxBytes ?? null,
    engine: component.enginePath,
    commands: {
      build: component.trtexecCommand === undefined ? [] : onlyOn(run, component.trtexecCommand),
    },
    engine_bytes: passport?.plan.bytes ?? null,
    engine_human: passport === undefined ? null : iec(passport.plan.bytes),
    profile: { min: shapesAt(profile, 'min'), opt: shapesAt(profile, 'opt'), max: shapesAt(profile, 'max') },
    profile_index: 0,
    timings_sec: {
      build: obtained === undefined ? null : seconds(isBuilt ? obtained.passport.built.ms : 0),
      smoke: smoke === undefined ? null : seconds(smoke.ms),
      convert: secondsOrNull(conversion?.ms ?? (isBuilt ? passport?.built.conversionMs : null)),
    },
    logs: { build: component.buildLog.there, smoke: component.smokeLog.there },
    env: environmentOf(run.setting.machine.gpus, prepared?.toolchain),
    target: prepared === undefined ? null : targetText(prepared.identity.target),
    identity: prepared === undefined ? null : identityDigest(prepared.identity),
    passport: obtained?.passportPath ?? null,
    engine_sha256: passport?.plan.sha256 ?? null,
    onnx_sha256: files?.onnxSha256 ?? null,
    model_digest: prepared?.identity.model ?? null,
    external_data: files?.external ?? null,
    precision: prepared?.identity.recipe.precision ?? run.request.precision ?? 'as-is',
    layers: passport?.plan.layers ?? null,
    workspace_bytes: prepared?.identity.recipe.memoryPools.workspace ?? null,
    timing_cache_state: passport?.built.timingCache ?? null,
    peak_memory_bytes: passport?.built.peakMemoryBytes ?? null,
    staging:
      component.staged === undefined
        ? null
        : { method: component.staged.method, files: component.staged.files },
    smoke: smoke ?? null,
    warnings: [
      ...(obtained?.warnings ?? []),
      ...(isBuilt ? obtained.passport.warnings : []),
      ...issues.map(({ id, cause, remedy }) => `${cause} ${remedy} (${id})`),
      ...notFinite(smoke),
    ],
    failure: error === null ? null : failureOf({ component: component.name, error }),
    forge: component.result(),
  };
}

const notFinite = (smoke: SmokeRun | undefined): readonly string[] =>
  (smoke?.outputs ?? [])
    .filter(({ finite }) => !finite)
    .map(({ name }) => `The output ${name} of the smoke run is not finite everywhere.`);

/** trtexec, as it was called here, takes the first GPU it sees. */
const onlyOn = ({ request, setting }: BundleRun, words: readonly string[]): string[] =>
  request.device === undefined
    ? [...words]
    : ['env', `CUDA_VISIBLE_DEVICES=${visibleEntry(setting.environment, request.device)}`, ...words];

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

/** What scripts read as the step that failed, by the phase of forge. */
const stepOf: Readonly<Record<string, BundleFailure['step']>> = {
  read: 'read',
  inspect: 'prepare',
  resolve: 'prepare',
  convert: 'build',
  build: 'build',
  'smoke run': 'smoke run',
  'chained check': 'chained check',
};

function failureOf({ component, error }: BundleStop): BundleFailure {
  const { phase, code, message, remedy, issues } = error;
  const step = stepOf[phase] ?? null;
  const hasEngines = step === 'smoke run' || step === 'chained check';
  return {
    component,
    step,
    code,
    message,
    // The models were inspected before the first build: that they were not run here has another cause.
    remedy: code === 'TF_ONNXRUNTIME_FAILED' && hasEngines ? WITHOUT_RUNNING : remedy,
    ...(issues === undefined ? {} : { issues }),
  };
}

const WITHOUT_RUNNING =
  'Use the engines as they are, unchecked: `trtforge bundle build` with the same options keeps them and runs no model. The message states what ONNX Runtime could not do.';

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

/** The machine and the library, by the names that exporters' build tools write. */
export function environmentOf(
  { gpus, cudaVersion, driverVersion }: GpuList,
  toolchain: { readonly product: string; readonly version: string; readonly foundBy: string } | undefined,
): BundleEnvironment {
  const [gpu] = gpus;
  return {
    tensorrt_version: toolchain?.version ?? null,
    cuda_version: cudaVersion,
    gpu: gpu?.name ?? null,
    driver: driverVersion,
    compute_capability: gpu === undefined ? null : (gpu.computeCapability / 10).toFixed(1),
    product: toolchain?.product ?? null,
    toolchain: toolchain?.foundBy ?? null,
    platform: `${process.platform} ${process.arch}`,
  };
}
