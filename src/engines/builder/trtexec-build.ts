import { copyFileSync, existsSync, mkdtempSync, readFileSync, renameSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { gpuBytesFree } from '../../addon/gpus.js';
import { closing, openFile } from '../../base/files/byte-source.js';
import { removeIfAllowed, statIfThere } from '../../base/files/files.js';
import { makeFolder } from '../../base/files/folders.js';
import { publishFile, writeFailed } from '../../base/files/publish.js';
import { behaviour, holds } from '../../behaviour/facts.js';
import { agree, rangeText } from '../../behaviour/versions.js';
import { TrtforgeError } from '../../errors.js';
import { viewModel } from '../../formats/onnx/model.js';
import type { ValueFacts } from '../../formats/onnx/model-facts.js';
import { interfaceOf } from '../../formats/onnx/values.js';
import { builderEnvironment } from '../../tensorrt/toolchain/environment.js';
import { trtexecOf } from '../../tensorrt/toolchain/trtexec.js';
import { requireSuccess } from '../../tensorrt/trtexec/failure.js';
import { buildArguments } from '../../tensorrt/trtexec/flags.js';
import type { TrtexecLog } from '../../tensorrt/trtexec/log/result.js';
import { buildMisreadings, requireUnderstood } from '../../tensorrt/trtexec/misreadings.js';
import { runTrtexec, type TrtexecRun } from '../../tensorrt/trtexec/run.js';
import { planHeaderOf, versionText } from '../plan/header.js';
import type { BuildContext, BuildFiles, BuildOutcome, ResolvedBuild } from './options.js';
import { cachesRead } from './shared-timing-caches.js';
import { type TrtexecFiles, trtexecBuildRequest } from './trtexec-request.js';

/** trtexec prints the size of an engine with six significant digits. */
const PRINTED_PRECISION = 1e-5;

/**
 * Builds a plan with trtexec, in the version's own flags, into a folder of its own beside `planPath`; the plan moves to `planPath` only after trtexec's
 * exit code, its last line, its echo of its arguments, and the plan's header and size all agree. An older file at `planPath` proves nothing.
 * Errors: TF_TRTEXEC_NOT_FOUND, TF_TRTEXEC_VERSION, TF_TRTEXEC_MISREAD, TF_OPTION_UNSUPPORTED, TF_MODEL_REJECTED, TF_BUILDER_UNAVAILABLE,
 * TF_BUILD_FAILED, TF_GPU_MEMORY, TF_LIBRARY_LOAD_FAILED, TF_PLAN_INVALID, TF_FILE_NOT_FOUND, TF_WRITE_FAILED, TF_CANCELLED, TF_CHILD_DIED.
 */
export async function buildWithTrtexec(
  build: ResolvedBuild,
  { modelPath, planPath }: BuildFiles,
  context: BuildContext,
): Promise<BuildOutcome> {
  const { toolchain, timingCache } = build;
  const { environment = process.env } = context;
  const trtexec = trtexecOf(toolchain, environment);
  openFile(modelPath).close();
  rejectRetyped(modelPath, toolchain.version);
  const scratch = makeScratch(dirname(planPath));
  try {
    const given = largest(cachesRead(build));
    const files = placeFiles(scratch, timingCache !== null, given);
    const request = trtexecBuildRequest(build, modelPath, files);
    const doing = `building ${build.modelPath}`;
    const run = await runTrtexec(
      {
        trtexec,
        arguments: buildArguments(request, toolchain.version),
        expectedVersion: toolchain.version,
        environment: builderEnvironment(toolchain, environment),
        logPath: join(build.logFolder, `${logName(modelPath)}.log`),
        doing,
      },
      context,
    );
    requireSuccess(run, doing, 'TF_BUILD_FAILED', () => gpuBytesFree(build.device));
    requireUnderstood(buildMisreadings(request, run.log), run);
    const { bytes, version } = checkPlan(files.plan, run);
    const state = timingCache === null ? 'none' : timingCacheState(run.log);
    // In one that was rejected nothing is stored.
    keep(files, planPath, state === 'rejected' ? null : timingCache);
    const used = given === undefined ? [] : [given];
    return {
      builder: 'trtexec',
      buildMs: run.wallMs,
      bytes,
      libraryVersion: version,
      layers: null,
      timingCache: state,
      timingCachesMerged: state === 'hit' ? used : [],
      timingCachesRejected: state === 'rejected' ? used : [],
      peakMemoryBytes: run.peakMemoryBytes,
      warnings: [...new Set(run.log.warnings.map(({ message }) => message.trim()))],
      ...networkValues(modelPath),
    };
  } finally {
    removeIfAllowed(scratch);
  }
}

/** The engine would not take what the model does. */
function rejectRetyped(modelPath: string, version: string): void {
  if (holds('int8-inputs', { product: 'trtexec', version })) return;
  const retyped = networkValues(modelPath).inputs.find(({ dtype }) => dtype === 'int8');
  if (retyped === undefined) return;
  throw new TrtforgeError(
    'TF_OPTION_UNSUPPORTED',
    `trtexec ${version} would make the int8 input "${retyped.name}" of ${modelPath} float; trtexec ${rangeText(behaviour['int8-inputs'].trtexec)} leave it.`,
    { remedy: 'Build with --builder native, which leaves the types of inputs alone.' },
  );
}

function makeScratch(folder: string): string {
  try {
    makeFolder(folder);
    return mkdtempSync(join(folder, '.trtexec-'));
  } catch (cause) {
    throw writeFailed(folder, cause);
  }
}

/** trtexec reads one timing cache; undefined where none of these exists. */
function largest(paths: readonly string[]): string | undefined {
  const bytes = (path: string) => statIfThere(path)?.size ?? 0;
  return paths.filter((path) => bytes(path) > 0).sort((a, b) => bytes(b) - bytes(a))[0];
}

/** trtexec writes a timing cache over the old one where it stands, so it gets a copy. */
function placeFiles(scratch: string, isCached: boolean, given: string | undefined): TrtexecFiles {
  const timingCache = isCached ? join(scratch, 'timing.cache') : null;
  if (timingCache !== null && given !== undefined) copyFileSync(given, timingCache);
  return { plan: join(scratch, 'engine.plan'), timingCache };
}

/** `resnet50_20261121_051200_4711`: a later build keeps an earlier one's log. */
function logName(modelPath: string): string {
  const stamp = new Date()
    .toISOString()
    .replace(/[-:]|\..*$/g, '')
    .replace('T', '_');
  return `${basename(modelPath).replace(/\.onnx$/i, '')}_${stamp}_${process.pid}`;
}

/** Size and header of what trtexec wrote: an empty or partial file is what a failed build leaves from 10.13 on. */
function checkPlan(
  path: string,
  { log, logPath }: TrtexecRun,
): { readonly bytes: number; readonly version: string } {
  const failed = (what: string) =>
    new TrtforgeError(
      'TF_BUILD_FAILED',
      `trtexec reported success, but ${what}${logPath === null ? '' : ` (log: ${logPath})`}.`,
      { details: { log: logPath } },
    );
  if (!existsSync(path)) throw failed('wrote no plan');
  return closing(openFile(path), (source) => {
    const printed = log.engine.bytes;
    if (printed !== null && Math.abs(printed - source.size) > Math.max(source.size * PRINTED_PRECISION, 64))
      throw failed(`it printed a plan of ${printed} bytes and wrote ${source.size}`);
    const { version, product } = planHeaderOf(source);
    if (product !== 'tensorrt' || version === null || (log.version !== null && !agree(version, log.version)))
      throw failed(`the plan's header states ${product} ${versionText(version)}, its banner ${log.version}`);
    return { bytes: source.size, version };
  });
}

function keep({ plan, timingCache }: TrtexecFiles, planPath: string, kept: string | null): void {
  if (timingCache !== null && kept !== null && existsSync(timingCache))
    publishFile(kept, readFileSync(timingCache));
  try {
    renameSync(plan, planPath);
  } catch (cause) {
    throw writeFailed(planPath, cause);
  }
}

/** Inputs and outputs as a model declares them: what a network's are, where trtexec does not print them. Errors: as `openModel`. */
function networkValues(modelPath: string): Pick<BuildOutcome, 'inputs' | 'outputs'> {
  return viewModel(modelPath, (model) => {
    const { inputs, outputs } = interfaceOf(model.proto);
    const declared = ({ name, dtype, shape }: ValueFacts) => ({
      name,
      dtype: dtype ?? 'unknown',
      shape: shape?.map((size) => (typeof size === 'number' ? size : null)) ?? null,
    });
    return { inputs: inputs.map(declared), outputs: outputs.map(declared) };
  });
}

/** 8.6 prints of a valid cache that it "will not be used" where it means its compiler's part, and then that the global cache is in use: that decides. */
export function timingCacheState({ engine, warnings, errors }: TrtexecLog): BuildOutcome['timingCache'] {
  const prints = (pattern: RegExp) => [...warnings, ...errors].some(({ message }) => pattern.test(message));
  const isRejected = prints(/timing cache will not be used|Detected invalid timing cache/i);
  if (isRejected && engine.timingCacheInUse !== 'global') return 'rejected';
  return engine.timingCacheLoadedBytes !== null && !prints(/Could not read (?:timing )?cache/)
    ? 'hit'
    : 'new';
}
