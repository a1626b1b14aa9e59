import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { removeIfAllowed } from '../../../base/files/files.js';
import { cacheFolder, makeScratch } from '../../../base/files/folders.js';
import { valuesOf } from '../../../base/options/option.js';
import { holds } from '../../../behaviour/facts.js';
import { machineFacts } from '../../../engines/identity/target.js';
import { readLayers } from '../../../engines/layers/read-layers.js';
import { gatherInputs } from '../../../engines/run/gather-inputs.js';
import { inDtype } from '../../../engines/run/input-dtype.js';
import type { EngineBinding } from '../../../engines/runtime/tensorrt/engine-interface.js';
import {
  type PlanOnDisk,
  readPlanOnDisk,
  toolchainForPlan,
} from '../../../engines/runtime/tensorrt/load-engine.js';
import { assertStreamed } from '../../../engines/runtime/tensorrt/options.js';
import { openTrust } from '../../../engines/store/trust.js';
import { TrtforgeError } from '../../../errors.js';
import { withLibraries } from '../../../tensorrt/toolchain/environment.js';
import type { Toolchain } from '../../../tensorrt/toolchain/toolchain.js';
import { type TrtexecProgram, trtexecToMeasure } from '../../../tensorrt/toolchain/trtexec.js';
import { readExportedProfile, readExportedTimes } from '../../../tensorrt/trtexec/exports.js';
import { requireSuccess } from '../../../tensorrt/trtexec/failure.js';
import { benchArguments } from '../../../tensorrt/trtexec/flags.js';
import { benchMisreadings, requireUnderstood } from '../../../tensorrt/trtexec/misreadings.js';
import { onlyLoadOptions, type TrtexecBenchRequest } from '../../../tensorrt/trtexec/options.js';
import { runTrtexec, type TrtexecRun } from '../../../tensorrt/trtexec/run.js';
import { figuresOf } from '../bench-run.js';
import { checkRequest } from '../check-request.js';
import { judgeTrust } from '../doubts.js';
import { GpuWatch, gpuAt, rejectAbsentIfSeen } from '../gpu.js';
import { leaseGpu } from '../gpu-lease.js';
import { type BenchContext, type BenchRequest, sourcesOf } from '../options.js';
import type { BenchResult, BenchRun, GpuState, LayerTimes } from '../result.js';
import { withFileShapes } from '../shape-cases.js';
import { joinLayers, spreadOf } from '../times.js';
import {
  assertStreamedByLog,
  callsOf,
  passportBindings,
  type TrtexecCall,
  weightFacts,
} from './trtexec-calls.js';
import { disagreements, exportedAsTimes, measuredMode } from './trtexec-result.js';

/** The setting that every run of one bench shares. */
interface Setting {
  readonly request: BenchRequest;
  readonly context: BenchContext;
  readonly plan: PlanOnDisk;
  readonly toolchain: Toolchain;
  readonly program: TrtexecProgram;
  readonly inputs: readonly EngineBinding[] | null;
  readonly scratch: string;
}

interface Measured {
  readonly run: BenchRun;
  readonly trtexec: TrtexecRun;
  readonly layers: LayerTimes | null;
  readonly warnings: readonly string[];
}

/**
 * Measures an engine with trtexec: the same request, the same result. Every default is said in the words of its version, its echo of them is checked,
 * and the figures come from the samples it exports; what it printed is compared with them.
 * Errors: those of loading a plan, TF_TRTEXEC_NOT_FOUND, TF_TRTEXEC_VERSION, TF_TRTEXEC_MISREAD, TF_TRTEXEC_FAILED, TF_TRTEXEC_EXPORT_INVALID,
 * TF_OPTION_UNSUPPORTED, TF_PASSPORT_MISSING, TF_PROFILE_MISFIT, TF_GPU_UNAVAILABLE, TF_CHILD_DIED, TF_CANCELLED.
 */
export async function benchTrtexec(request: BenchRequest, context: BenchContext): Promise<BenchResult> {
  const { environment } = context;
  if (request.samples !== undefined) {
    throw new TrtforgeError(
      'TF_OPTION_UNSUPPORTED',
      'Samples of trtexec are not written to a file of their own.',
      {
        remedy: 'Leave the samples out, or measure with --with trtforge.',
      },
    );
  }
  if (request.cold === true) {
    throw new TrtforgeError('TF_USAGE', 'trtexec does not measure cold starts.', {
      remedy: 'Remove --cold, or measure with --with trtforge.',
    });
  }
  checkRequest(request);
  rejectAbsentIfSeen(request.device);
  using plan = await readPlanOnDisk(request.engine, {
    requirePassport: false,
    identity: request.identity,
    trust: openTrust({}, environment),
  });
  if (plan.passport !== null) {
    const { flags } = plan.passport.identity.document.recipe;
    assertStreamed(`${request.engine} was`, flags.includes('weight-streaming'), request);
  }
  const toolchain = await toolchainForPlan(plan, { ...request, environment });
  // Rejected before anything is written.
  const program = await trtexecToMeasure(toolchain, environment);
  const inputs = plan.passport === null ? null : passportBindings(plan.passport);
  const calls = callsOf(
    inputs,
    inputs === null ? request.shapes : withFileShapes(inputs, request),
    request.engine,
  );
  // Without driver or addon nobody knows the GPU's own name, and its ordinal has to do.
  const name = gpuAt(request.device)?.uuid ?? `device-${request.device}`;
  const lease = await leaseGpu(name, request.wait, context);
  const scratch = makeScratch('trtexec');
  try {
    const setting: Setting = { request, context, plan, toolchain, program, inputs, scratch };
    const measured: Measured[] = [];
    for (const [index, call] of calls.entries()) measured.push(await measure(setting, call, index === 0));
    const result = resultOf(setting, measured);
    return lease.warning === null ? result : { ...result, warnings: [lease.warning, ...result.warnings] };
  } finally {
    lease.release();
    removeIfAllowed(scratch);
  }
}

async function measure(setting: Setting, call: TrtexecCall, isFirst: boolean): Promise<Measured> {
  const { request, context, plan, toolchain, program, scratch } = setting;
  const withLayers = request.layers && isFirst;
  const asked: TrtexecBenchRequest = {
    loadEngine: plan.loadPath,
    shapes: call.open,
    profile: call.profile,
    ...request.mode,
    inputFiles: inputFiles(setting, call),
    exports: {
      times: join(scratch, 'times.json'),
      ...(withLayers ? { profile: join(scratch, 'profile.json'), layers: join(scratch, 'layers.json') } : {}),
    },
    runtime: toolchain.flavour ?? 'full',
    ...valuesOf(onlyLoadOptions, request),
    plugins: { static: request.plugins ?? [], dynamic: [], serialize: [] },
    device: request.device,
    verbose: false,
  };
  const doing = `measuring ${request.engine} at batch ${call.batch}`;
  const watch = new GpuWatch(request.device, context.emit);
  const trtexec = await runTrtexec(
    {
      trtexec: program.path,
      arguments: benchArguments(asked, program.version),
      expectedVersion: program.version,
      environment: withLibraries(toolchain, context.environment),
      logPath:
        context.trtexecLog ??
        join(cacheFolder(context.environment), 'bench_logs', logName(request.engine, call)),
      doing,
    },
    { ...context, emit: watch.emit },
  ).finally(() => watch.end());
  requireSuccess(trtexec, doing, 'TF_TRTEXEC_FAILED');
  requireUnderstood(benchMisreadings(asked, trtexec.log), trtexec);
  assertStreamedByLog(request, trtexec.log);
  return {
    ...runOf(request, call, trtexec, watch, join(scratch, 'times.json')),
    trtexec,
    layers: withLayers ? exportedLayerTimes(scratch, call.profile) : null,
  };
}

/** The layer times that trtexec exported, beside what the inspector reports of each layer. */
function exportedLayerTimes(scratch: string, profile: number): LayerTimes | null {
  const { count, layers } = readExportedProfile(join(scratch, 'profile.json'));
  const engine = readLayers(
    readFileSync(join(scratch, 'layers.json'), 'utf8'),
    'The exported layer information',
  );
  const times = layers.map(({ name, timeMs }) => ({ name, ms: timeMs, runs: count }));
  return joinLayers(times, engine.layers, profile);
}

const logName = (engine: string, { batch }: TrtexecCall): string =>
  `${basename(engine)}_b${batch}_${process.pid}_${Date.now()}.log`;

/** The inputs as files of raw bytes, the same numbers that any other way of measuring feeds; none where nobody states what the inputs are. */
function inputFiles(
  { request, inputs, toolchain, scratch }: Setting,
  call: TrtexecCall,
): Record<string, string> {
  const { seed, ranges, files } = request.inputs;
  if (inputs === null) {
    if (ranges.length + files.length === 0) return {};
    throw new TrtforgeError(
      'TF_PASSPORT_MISSING',
      `${request.engine} has no passport, so the types of its inputs are unknown: trtexec does not report them.`,
      { remedy: 'Leave the inputs to trtexec, or measure with --with trtforge, which asks the engine.' },
    );
  }
  const gathered = gatherInputs(inputs, {
    file: request.engine,
    sources: sourcesOf(request.inputs),
    seed,
    ranges,
    shapes: new Map(call.shapes.map(({ name, shape }) => [name, shape])),
    profile: call.profile,
  });
  const written = gathered.flatMap(({ name, tensor, from }, index) => {
    const input = inputs.find((each) => each.name === name);
    // Values of shape tensors travel with --shapes.
    if (input === undefined || input.hostValues) return [];
    const path = join(scratch, `input-${index}.bin`);
    // Where the parser makes such inputs 32-bit, trtexec would take every second half of the file.
    const is32bit = tensor.dtype === 'int64' && !holds('int64', toolchain);
    writeFileSync(path, (is32bit ? inDtype({ ...input, dtype: 'int32' }, tensor, from) : tensor).bytes);
    return [[name, path] as const];
  });
  return Object.fromEntries(written);
}

function runOf(
  request: BenchRequest,
  call: TrtexecCall,
  { log }: TrtexecRun,
  watch: GpuWatch,
  timesPath: string,
): Pick<Measured, 'run' | 'warnings'> {
  const times = exportedAsTimes(readExportedTimes(timesPath), log);
  const { percentiles } = request;
  const gpuMs = spreadOf(times.computeMs, percentiles);
  if (gpuMs === undefined)
    throw new TrtforgeError(
      'TF_TRTEXEC_FAILED',
      `trtexec measured ${request.engine} and exported not one inference.`,
    );
  const mode = measuredMode(request.mode, log);
  const transfers = mode.kind === 'with-transfers';
  const { before, during, after } = watch;
  const doubts = judgeTrust({
    of: 'gpu',
    times,
    transfers,
    graph: mode.graph ?? false,
    spinWait: mode.spinWait ?? false,
    streams: mode.streams,
    before,
    during,
    after,
    // trtexec itself is the one newcomer that is expected, whatever number NVML knows it by.
    ownPids: [-1],
  });
  const qps = (times.computeMs.length / times.wallMs) * 1000;
  const columnOf = (column: Float64Array) => (transfers ? (spreadOf(column, percentiles) ?? null) : null);
  return {
    run: {
      batch: call.batch,
      shapes: call.shapes.map(({ name, shape }) => ({ name, shape: [...shape] })),
      profile: call.profile,
      gpuMs,
      endToEndMs: columnOf(times.latencyMs),
      qps,
      itemsPerSecond: qps * call.batch,
      mode,
      inputMs: columnOf(times.inputMs),
      outputMs: columnOf(times.outputMs),
      enqueueMs: spreadOf(times.enqueueMs, percentiles) ?? null,
      wallMs: times.wallMs,
      warmUpInferences: log.run.warmUpQueries,
      peakGpuBytes: peakOf([before, ...during, after]),
      doubts,
      gpuStates: { before, during, after },
      samples: null,
    },
    warnings: [...doubts.map(({ why }) => why), ...disagreements(times, log)],
  };
}

function peakOf(states: readonly (GpuState | null)[]): number | null {
  const used = states.flatMap((state) => state?.memoryUsedBytes ?? []);
  return used.length === 0 ? null : Math.max(...used);
}

function resultOf(
  { request, plan, toolchain, program }: Setting,
  measured: readonly Measured[],
): BenchResult {
  const figures = figuresOf(measured.map(({ run }) => run));
  const first = measured[0]!;
  const { log } = first.trtexec;
  const { passport, header } = plan;
  const seconds = log.engine.deserializedSeconds;
  const gpu = gpuAt(request.device) ?? named(log.device);
  return {
    schema: 'trtforge.bench/1',
    subject: {
      path: request.engine,
      bytes: header.fileBytes,
      name: passport?.name ?? null,
      identity: passport?.identity.digest ?? null,
      contextBytes: log.engine.contextBytes,
      ...(request.plugins?.length ? { plugins: [...request.plugins] } : {}),
      ...weightFacts(request, log),
      loadedBytes: null,
      loadMs: seconds === null ? null : seconds * 1000,
      layers: first.layers?.layers.length ?? null,
    },
    backend: `trtexec ${log.version ?? program.version}${runtimeText(toolchain)}`,
    gpu: gpu === null ? null : { ...gpu, driver: machineFacts().driver },
    ...figures,
    layers: first.layers,
    warnings: [...new Set(measured.flatMap(({ warnings }) => warnings))],
  };
}

/** trtexec names the version it was compiled for; of a runtime-only library it reports nothing. */
const runtimeText = ({ flavour = 'full', version }: Toolchain): string =>
  flavour === 'full' ? '' : ` with the ${flavour} runtime ${version}`;

/** 8.6 logs no UUID. */
const named = ({ name, uuid }: TrtexecRun['log']['device']) =>
  name === null || uuid === null ? null : { name, uuid };
