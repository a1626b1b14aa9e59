import { statSync } from 'node:fs';
import { checkSources } from '../../engines/run/check-sources.js';
import { guessLine, runGuessed } from '../../engines/run/guessed-run.js';
import { gatherForModel, shapesOf, tensorsOf } from '../../engines/run/run-inputs.js';
import type { OpenedFacts, OpenedModel, OpenOptions, PacedRuns } from '../../engines/runtime/back-end.js';
import { providerInBackend } from '../../engines/runtime/onnxruntime/ort-provider.js';
import { chooseBackEnd, openSession } from '../../engines/runtime/open-session.js';
import { engineLoadOptionsOf } from '../../engines/runtime/tensorrt/engine-options.js';
import { TrtforgeError } from '../../errors.js';
import { inPhase } from '../../events.js';
import { openModel } from '../../formats/onnx/model.js';
import { ValueUses } from '../../formats/onnx/value-uses.js';
import { inlineFunctions } from '../../formats/precision/inline-functions.js';
import type { ModeRequest } from '../../tensorrt/trtexec/request.js';
import { checkMode } from './check-request.js';
import { type ModelCase, modelCases } from './model-shapes.js';
import { type BenchContext, type BenchRequest, defaultMode, sourcesOf } from './request.js';
import type { BenchResult, BenchRun } from './result.js';
import { spreadOf } from './statistics.js';
import { samplesPath, type Times, writeSamples } from './times.js';
import { distrust, judgeTrust } from './trust.js';

/**
 * Measures an ONNX model on ONNX Runtime: whole calls on the host's clock, timed in the process they run in, one after another; on CUDA with the inputs'
 * way to the GPU and the outputs' way back. `request.engine` is the model. Throws TF_USAGE for options that only a GPU can honour, TF_SHAPE_INVALID and TF_SESSION_INPUT for inputs that do not
 * fit, and what `openSession` throws.
 */
export async function benchModel(
  request: BenchRequest,
  { emit, signal }: BenchContext,
): Promise<BenchResult> {
  rejectGpuOptions(request);
  chooseBackEnd(request.engine, openOptionsOf(request));
  checkMode(request.mode);
  checkSources({ sources: sourcesOf(request.inputs) }, null);
  const started = performance.now();
  const session = await inPhase('load', emit, () =>
    openSession(request.engine, openOptionsOf(request), { emit, signal }),
  );
  if (session.kind !== 'model')
    throw new TrtforgeError(
      'TF_INTERNAL',
      `${request.engine} is an engine, and was to be measured as a model.`,
    );
  try {
    const loadMs = performance.now() - started;
    const model = openModel(request.engine);
    const runs: BenchRun[] = [];
    const guesses = new Set<string>();
    try {
      inlineFunctions(model.proto);
      const uses = new ValueUses(model);
      const casesAt = (attempt: number) => modelCases(session.inputs, request.shapes, { uses, attempt });
      for (const [index, { batch }] of casesAt(0).entries()) {
        const caseAt = (attempt: number) => casesAt(attempt)[index]!;
        const { run, guess } = await inPhase(
          'measure',
          emit,
          () => measureCase(session, request, caseAt, signal),
          `batch ${batch}`,
        );
        runs.push(run);
        if (guess !== null) guesses.add(guess);
      }
    } finally {
      model.close();
    }
    return resultOf(request, session, {
      loadMs,
      runs,
      facts: await session.facts(),
      guesses: [...guesses],
    });
  } finally {
    await session.close();
  }
}

async function measureCase(
  session: OpenedModel,
  request: BenchRequest,
  caseAt: (attempt: number) => ModelCase,
  signal: AbortSignal,
): Promise<{ readonly run: BenchRun; readonly guess: string | null }> {
  const { seed, ranges, files } = request.inputs;
  const named = new Set(files.map(({ name }) => name));
  const plan = (attempt: number) => {
    const { shapes, guessedAxes } = caseAt(attempt);
    const planned = gatherForModel(session.inputs, {
      file: request.engine,
      sources: sourcesOf(request.inputs),
      seed,
      ranges,
      // The shape of a file is its own.
      shapes: new Map([...shapes].filter(([name]) => !named.has(name))),
    });
    const guessed = planned.map((input) => ({
      ...input,
      guessedAxes: named.has(input.name) ? undefined : guessedAxes.get(input.name),
    }));
    return { planned: guessed, inputs: shapesOf(guessed) };
  };
  const { planned: inputs, result: measured } = await runGuessed(request.engine, plan, (planned) =>
    session.measure(tensorsOf(planned), request.mode, { signal }),
  );
  const batch = inputs.find(({ tensor }) => tensor.shape.length > 0)?.tensor.shape[0] ?? 1;
  const isOneOfSeveral = request.shapes.kind === 'batches' && request.shapes.batches.length > 1;
  const times = timesOf(measured);
  const endToEndMs = spreadOf(times.latencyMs);
  if (endToEndMs === undefined || !(times.wallMs > 0))
    throw new TrtforgeError('TF_RUN_FAILED', `Measuring ${request.engine} gave no sample.`);
  const qps = (endToEndMs.count / times.wallMs) * 1000;
  const samples = request.samples === undefined ? null : samplesPath(request.samples, batch, isOneOfSeveral);
  if (samples !== null) writeSamples(samples, times);
  const nobodyAsked = { before: null, during: [], after: null };
  const run: BenchRun = {
    batch,
    shapes: inputs.map(({ name, tensor }) => ({ name, shape: [...tensor.shape] })),
    profile: null,
    gpuMs: null,
    endToEndMs,
    qps,
    itemsPerSecond: qps * batch,
    mode: modeTold(request.mode),
    inputMs: null,
    outputMs: null,
    enqueueMs: null,
    wallMs: times.wallMs,
    warmUpInferences: measured.warmUpRuns,
    peakGpuBytes: null,
    doubts: judgeTrust({
      of: 'host',
      times,
      ...nobodyAsked,
      transfers: false,
      graph: false,
      spinWait: false,
      streams: 1,
      ownPids: [],
    }),
    gpuStates: nobodyAsked,
    samples,
  };
  return { run, guess: guessLine(shapesOf(inputs)) };
}

/** All of a call is computing; copies and enqueues that one could tell from it there are none. */
function timesOf({ startMs, ms, wallMs }: PacedRuns): Times {
  const none = new Float64Array(ms.length);
  return {
    streams: new Int32Array(ms.length),
    startMs,
    inputMs: none,
    computeMs: ms,
    outputMs: none,
    latencyMs: ms,
    enqueueMs: new Float64Array(0),
    wallMs,
  };
}

const modeTold = ({ warmUpMs, durationMs, iterations, idleMs }: ModeRequest): BenchRun['mode'] => ({
  kind: 'end-to-end',
  graph: null,
  graphRefusal: null,
  spinWait: null,
  streams: 1,
  warmUpMs,
  durationMs,
  iterations,
  idleMs,
});

interface Measured {
  readonly loadMs: number;
  readonly runs: BenchRun[];
  readonly facts: OpenedFacts;
  /** What is to say of sizes that nobody gave. */
  readonly guesses: readonly string[];
}

/** Device 0 is the default of a request, also where none is used. */
const openOptionsOf = (request: BenchRequest): OpenOptions => ({
  ...engineLoadOptionsOf(request),
  provider: request.provider,
  device: request.device || undefined,
});

/** What the times of a provider are, and are not. */
const said = (backend: string): string =>
  providerInBackend(backend) === 'CUDA'
    ? `These are host times of ${backend}, whole calls on the host's clock with every input's way to the GPU and every output's way back: they say nothing of an engine.`
    : `These are host times of ${backend}, whole calls on the host's clock: no GPU computed, so they say nothing of an engine.`;

function resultOf(
  { engine }: BenchRequest,
  { backend }: OpenedModel,
  { loadMs, runs, facts, guesses }: Measured,
): BenchResult {
  const [first] = runs;
  if (first === undefined) throw new TrtforgeError('TF_USAGE', 'There is no batch to measure.');
  const { gpuMs, endToEndMs, qps, itemsPerSecond, mode } = first;
  const doubts = runs.flatMap(({ batch, doubts: list }) => distrust(`batch ${batch}`, list));
  return {
    schema: 'trtforge.bench/1',
    subject: {
      path: engine,
      bytes: statSync(engine).size,
      name: null,
      identity: null,
      contextBytes: null,
      loadedBytes: null,
      loadMs,
      layers: null,
    },
    backend,
    gpu: null,
    gpuMs,
    endToEndMs,
    qps,
    itemsPerSecond,
    mode,
    runs,
    layers: null,
    warnings: [
      said(backend),
      ...facts.warnings,
      ...(facts.roundedValues === 0
        ? []
        : [
            'The model has 16-bit values; they are computed in float32 and rounded, and that is what was timed.',
          ]),
      ...guesses,
      ...doubts,
    ],
  };
}

/** Ways of measuring that only an engine on a GPU has. */
function rejectGpuOptions({ engine, mode, layers, wait }: BenchRequest): void {
  const requested: Readonly<Record<string, boolean>> = {
    '--no-data-transfers': mode.transfers !== defaultMode.transfers,
    '--graph': mode.graph,
    '--spin-wait': mode.spinWait,
    '--streams': mode.streams !== defaultMode.streams,
    '--layers': layers,
    '--wait': wait,
  };
  const wrong = Object.keys(requested).find((name) => requested[name]);
  if (wrong === undefined) return;
  throw new TrtforgeError(
    'TF_USAGE',
    `${wrong} has no effect on ${engine}, a model that is measured by the host's clock.`,
    {
      remedy: `Remove ${wrong}, or build an engine first: trtforge build ${engine} -o model.engine.`,
      details: { option: wrong },
    },
  );
}
