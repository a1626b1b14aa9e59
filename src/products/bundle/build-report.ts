import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { GpuList } from '../../addon/addon.js';
import { readJson } from '../../base/files/files.js';
import { unusedTimingCache, unusedTimingCacheText } from '../../engines/builder/shared-timing-caches.js';
import { targetText, visibleEntry } from '../../engines/identity/target.js';
import type { ProfileRequest } from '../../engines/profiles/profile.js';
import { ExitCode, outcomeExitCodes } from '../../errors.js';
import { environmentPart } from '../../forge/environment.js';
import { fp16 } from '../../formats/precision/formats/fp16.js';
import { worst } from '../../quality/verify/outcome.js';
import { packageVersion } from '../../version.js';
import type { BundleRun, BundleStop } from './bundle-run.js';
import type { ComponentPlace } from './component.js';
import { enginePath, logPaths, timingCacheFor } from './component-run.js';
import type { BundleRequest } from './options.js';
import { modelFolder } from './read-bundle.js';
import {
  type BundleEnvironment,
  type BundleFailure,
  type BundleReport,
  type ComponentReport,
  componentReportSchema,
  type SmokeRun,
} from './result.js';

/** The report's name in the folder of a bundle. */
export const REPORT_FILE = 'build_report.json';

export interface RunTimes {
  readonly started: Date;
  readonly finished: Date;
}

/** The report of a run, however far it came. Its fields are those that exporters' build tools write, filled from the runs of forge. */
export function reportOf(run: BundleRun, times: RunTimes): BundleReport {
  const { setting, stop, whole } = run;
  const { request, machine } = setting;
  const prepared = run.components.flatMap(({ forge }) => forge.found.prepared ?? [])[0];
  const unused =
    prepared === undefined ? null : unusedTimingCache(prepared.identity.target, request.timingCache);
  const { checks = [] } = whole.found;
  const recipe = prepared?.identity.recipe;
  const settings = request.settings ?? {};
  const workspace = recipe?.memoryPools.workspace ?? settings.memoryPools?.workspace ?? null;
  const outcome = checks.length === 0 ? 'built' : worst(checks.map((check) => check.outcome));
  const precision = request.precision ?? 'as-is';
  const version = packageVersion();
  return {
    schema: 'trtforge.bundle/1',
    version,
    exitCode: stop?.error.exitCode ?? outcomeExitCodes[outcome],
    meta: request.meta,
    model_name: run.meta?.modelName ?? null,
    onnx_dir: modelFolder(request),
    outdir: request.outdir,
    report: describesTheFolder(run) ? reportPath(request) : null,
    timing_cache: prepared === undefined ? null : timingCacheFor(prepared, request),
    device: request.device ?? 0,
    fp16: precision === fp16.id,
    precision,
    builder: request.builder ?? 'native',
    target: prepared === undefined ? null : targetText(prepared.identity.target),
    builder_optimization_level: recipe?.optimizationLevel ?? settings.optimizationLevel ?? null,
    workspace_mb: workspace === null ? null : workspace / 2 ** 20,
    trtexec: { path: request.builder === 'trtexec' ? (prepared?.toolchain.trtexec ?? null) : null },
    staging_dir: request.keepTemp === true ? run.temporary : null,
    started_utc: stamp(times.started),
    finished_utc: stamp(times.finished),
    total_sec: seconds(times.finished.getTime() - times.started.getTime()),
    phases: [...whole.phases],
    repeat: setting.commandLine,
    env: environmentOf(machine.gpus, prepared?.toolchain),
    environment: environmentPart(machine, {
      trtforge: version,
      toolchain: prepared?.toolchain ?? null,
      backend: checks[0]?.reference_backend ?? null,
    }),
    components: inOrder(run.roster, [
      ...run.places.map((place) => componentPart(run, place)),
      ...earlierComponents(run),
    ]),
    checks: [...checks],
    not_checked: [...run.notChecked],
    mismatches: [...(run.findings?.mismatches ?? [])],
    warnings: [
      ...(run.findings?.warnings ?? []),
      ...(unused === null ? [] : [unusedTimingCacheText(unused)]),
    ],
    outcome: stop !== undefined ? 'error' : outcome,
    ...(stop === undefined ? {} : { error: `${stop.error.code}: ${stop.error.message}` }),
    failure: stop === undefined ? null : failureOf(stop),
  };
}

const reportPath = ({ outdir }: BundleRequest): string => join(outdir, REPORT_FILE);

/** A run that failed and changed no engine takes no report of a finished run away, and none is worth writing of a request that could not begin. */
function describesTheFolder({ setting: { request }, components, stop }: BundleRun): boolean {
  const isNew = components.some(
    ({ forge: { found } }) => found.obtained !== undefined && found.obtained.source !== 'kept',
  );
  if (stop === undefined || isNew) return true;
  const hasBegun = components.some(({ forge }) => forge.hasBegun);
  return (
    (hasBegun || stop.error.exitCode !== ExitCode.badInput) && !readReport(reportPath(request)).isFinished
  );
}

const inOrder = (roster: readonly string[], components: readonly ComponentReport[]): ComponentReport[] =>
  [...components].sort((a, b) => roster.indexOf(a.component) - roster.indexOf(b.component));

function componentPart(run: BundleRun, { name, onnx }: ComponentPlace): ComponentReport {
  const { request, machine } = run.setting;
  const component = run.components.find((each) => each.name === name);
  const { profile = new Map(), files, staged = null } = component?.part ?? {};
  const { smoke, prepared } = component?.forge.found ?? {};
  const forge = component?.result() ?? null;
  const { build: engine = null, conversion = null, error = null, issues = [] } = forge ?? {};
  const { plan, built, warnings = [] } = engine?.passport ?? {};
  const isBuilt = engine?.source === 'built';
  const convertMs = conversion?.ms ?? (isBuilt ? built?.conversionMs : null) ?? null;
  const log = logPaths(request, name);
  return {
    component: name,
    status: error !== null ? 'failed' : (engine?.source ?? 'not-reached'),
    onnx,
    engine: enginePath(request, name),
    commands: { build: onlyOn(run, component?.trtexecCommand ?? []) },
    engine_bytes: plan?.bytes ?? null,
    engine_human: plan === undefined ? null : iec(plan.bytes),
    profile: { min: shapesAt(profile, 'min'), opt: shapesAt(profile, 'opt'), max: shapesAt(profile, 'max') },
    profile_index: 0,
    timings_sec: {
      build: built === undefined ? null : seconds(isBuilt ? built.ms : 0),
      smoke: smoke === undefined ? null : seconds(smoke.ms),
      convert: convertMs === null ? null : seconds(convertMs),
    },
    logs: {
      build: existsSync(log.build) ? log.build : null,
      smoke: existsSync(log['smoke run']) ? log['smoke run'] : null,
    },
    env: environmentOf(machine.gpus, prepared?.toolchain),
    engine_sha256: plan?.sha256 ?? null,
    onnx_sha256: files?.onnxSha256 ?? null,
    external_data: files?.external ?? null,
    layers: plan?.layers ?? null,
    workspace_bytes: prepared?.identity.recipe.memoryPools.workspace ?? null,
    timing_cache_state: built?.timingCache ?? null,
    staging: staged && { method: staged.method, files: staged.files },
    smoke: smoke ?? null,
    warnings: [
      ...(component?.part.conversion.warnings ?? []),
      ...(engine?.warnings ?? []),
      ...(isBuilt ? warnings : (conversion?.warnings ?? [])),
      ...issues
        .filter(({ severity }) => severity !== 'note')
        .map(({ id, cause, remedy }) => `${cause} ${remedy} (${id})`),
      ...notFinite(smoke),
    ],
    forge,
  };
}

const notFinite = (smoke: SmokeRun | undefined): readonly string[] =>
  (smoke?.outputs ?? [])
    .filter(({ finite }) => !finite)
    .map(({ name }) => `The output ${name} of the smoke run is not finite everywhere.`);

/** The command in the environment in which trtexec, which takes the first GPU it sees, was called. */
const onlyOn = ({ setting: { request, work } }: BundleRun, command: readonly string[]): string[] =>
  request.device === undefined || command.length === 0
    ? [...command]
    : ['env', `CUDA_VISIBLE_DEVICES=${visibleEntry(work.environment, request.device)}`, ...command];

const shapesAt = (profile: ProfileRequest, end: 'min' | 'opt' | 'max'): Record<string, number[]> =>
  Object.fromEntries([...profile].map(([name, range]) => [name, [...range[end]]]));

/** With some components requested, the others are in the report as an earlier one has them, as long as their engines lie there unchanged in size. */
function earlierComponents({ setting: { request }, places }: BundleRun): readonly ComponentReport[] {
  if (request.only === undefined || request.only.length === 0) return [];
  return readReport(reportPath(request))
    .components.filter(({ component }) => !places.some(({ name }) => name === component))
    .filter(({ engine, engine_bytes }) => engine_bytes !== null && existsSync(engine))
    .map((component) => ({ ...component, status: 'earlier' }));
}

interface EarlierReport {
  readonly components: readonly ComponentReport[];
  readonly isFinished: boolean;
}

/** An earlier report is only an aid: one that cannot be read, or of another tool, counts as none. */
function readReport(path: string): EarlierReport {
  const content = readJson(path);
  const { components, outcome }: { components?: unknown; outcome?: unknown } =
    typeof content === 'object' && content !== null ? content : {};
  const parts = (Array.isArray(components) ? components : []).flatMap((entry: unknown) => {
    const parsed = componentReportSchema.safeParse(entry);
    return parsed.success ? [parsed.data] : [];
  });
  return {
    components: parts,
    isFinished: typeof outcome === 'string' && Object.hasOwn(outcomeExitCodes, outcome),
  };
}

/** The step that scripts read as the failed one, by the phase of forge. */
const stepOf: Readonly<Record<string, BundleFailure['step']>> = {
  read: 'read',
  inspect: 'prepare',
  resolve: 'prepare',
  stage: 'prepare',
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
    // The models were inspected before the first build: that they did not run has another cause.
    remedy: code === 'TF_ONNXRUNTIME_FAILED' && hasEngines ? WITHOUT_RUNNING : remedy,
    issues,
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
