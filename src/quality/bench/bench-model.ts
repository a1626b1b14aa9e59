import { statSync } from 'node:fs';
import { assertWithin } from '../../base/options/library-arguments.js';
import { type OptionsOf, valuesOf } from '../../base/options/option.js';
import { isEngineFile } from '../../engines/plan/header.js';
import { resolveShapes } from '../../engines/run/drawn-inputs.js';
import {
  checkSources,
  type GatheredInput,
  gatherForModel,
  shapesOf,
  tensorsOf,
} from '../../engines/run/gather-inputs.js';
import { guessLine, runGuessed } from '../../engines/run/guessed-run.js';
import {
  type OpenedFacts,
  type OpenedModel,
  type OpenOptions,
  type PacedRuns,
  type PlaceOptions,
  placeOptions,
} from '../../engines/runtime/back-end.js';
import { providerInBackend } from '../../engines/runtime/onnxruntime/provider-options.js';
import { chooseBackEnd, openSession } from '../../engines/runtime/open-session.js';
import type { Binding } from '../../engines/runtime/session.js';
import { TrtforgeError } from '../../errors.js';
import { inPhase, type Work } from '../../events.js';
import { viewModel } from '../../formats/onnx/model.js';
import { type AxisPlace, openDimensions } from '../../formats/onnx/open-dimensions.js';
import type { ValueUses } from '../../formats/onnx/value-uses.js';
import { usesOf } from '../../formats/precision/normalise.js';
import { type Pace, paceOptions } from '../../tensorrt/trtexec/options.js';
import { figuresOf } from './bench-run.js';
import { checkPercentiles } from './check-request.js';
import { distrust, judgeTrust } from './doubts.js';
import { type measuredOptions, type ShapeRequest, sourcesOf } from './options.js';
import type { BenchResult, BenchRun } from './result.js';
import { samplesPath, spreadOf, type Times, writeSamples } from './times.js';

/**
 * Measures an ONNX model on ONNX Runtime: whole calls on the host's clock, timed in the process they run in, one after another; on CUDA with the inputs'
 * way to the GPU and the outputs' way back. Throws TF_USAGE for an engine and for a device that the provider does not use, TF_SHAPE_INVALID and TF_SESSION_INPUT
 * for inputs that do not fit, and what `openSession` throws.
 */
export async function benchModel(request: ModelBenchRequest, work: Work): Promise<BenchResult> {
  const { model: path, transfers = true } = request;
  const openOptions: OpenOptions = valuesOf(placeOptions, request);
  if (isEngineFile(path))
    throw new TrtforgeError('TF_USAGE', `${path} is a TensorRT plan, not an ONNX model.`, {
      remedy: `Run: trtforge bench ${path}`,
    });
  const { honours } = chooseBackEnd(path, openOptions);
  if (!transfers && !honours.has('device'))
    throw new TrtforgeError('TF_USAGE', '--no-data-transfers has no effect on the CPU: nothing is copied.', {
      remedy: 'Remove it, or pass --provider cuda or tensorrt.',
      details: { option: '--no-data-transfers' },
    });
  assertWithin(paceOptions, request.pace);
  checkPercentiles(request.percentiles);
  checkSources({ sources: sourcesOf(request.inputs) }, null);
  const started = performance.now();
  const session = await inPhase('load', work.emit, () => openSession(path, openOptions, work));
  if (session.kind !== 'model') throw new TrtforgeError('TF_INTERNAL', `${path} was opened as an engine.`);
  try {
    const loadMs = performance.now() - started;
    const runs: BenchRun[] = [];
    const guesses = new Set<string>();
    await viewModel(path, async (model) => {
      const uses = usesOf(model);
      const casesAt = (attempt: number) => modelCases(session.inputs, request.shapes, { uses, attempt });
      for (const [index, { batch }] of casesAt(0).entries()) {
        const caseAt = (attempt: number) => casesAt(attempt)[index]!;
        const { run, guess } = await inPhase(
          'measure',
          work.emit,
          () => measureCase(session, request, caseAt, work.signal),
          `batch ${batch}`,
        );
        runs.push(run);
        if (guess !== null) guesses.add(guess);
      }
    });
    return resultOf(path, session, {
      loadMs,
      runs,
      facts: await session.facts(),
      transfers,
      guesses: [...guesses],
    });
  } finally {
    await session.close();
  }
}

async function measureCase(
  session: OpenedModel,
  request: ModelBenchRequest,
  caseAt: (attempt: number) => ModelCase,
  signal: AbortSignal,
): Promise<{ readonly run: BenchRun; readonly guess: string | null }> {
  const plan = (attempt: number) => {
    const planned = plannedInputs(session, request, caseAt(attempt));
    return { planned, inputs: shapesOf(planned) };
  };
  const { planned: inputs, result: measured } = await runGuessed(request.model, plan, (planned) =>
    session.measure(tensorsOf(planned), request.pace, { signal, transfers: request.transfers }),
  );
  return { run: runOf(request, inputs, measured), guess: guessLine(shapesOf(inputs)) };
}

/** The inputs of a case, with the axes whose sizes are guessed. */
function plannedInputs(
  session: OpenedModel,
  request: ModelBenchRequest,
  { shapes, guessedAxes }: ModelCase,
): readonly GatheredInput[] {
  const { seed, ranges, files } = request.inputs;
  const named = new Set(files.map(({ name }) => name));
  const planned = gatherForModel(session.inputs, {
    file: request.model,
    sources: sourcesOf(request.inputs),
    seed,
    ranges,
    // The shape of a file is its own.
    shapes: new Map([...shapes].filter(([name]) => !named.has(name))),
  });
  return planned.map((input) => ({
    ...input,
    guessedAxes: named.has(input.name) ? undefined : guessedAxes.get(input.name),
  }));
}

/** The figures of a case; its samples are written where requested. Throws TF_RUN_FAILED without a sample. */
function runOf(request: ModelBenchRequest, inputs: readonly GatheredInput[], measured: PacedRuns): BenchRun {
  const batch = inputs.find(({ tensor }) => tensor.shape.length > 0)?.tensor.shape[0] ?? 1;
  const isOneOfSeveral = request.shapes.kind === 'batches' && request.shapes.batches.length > 1;
  const times = timesOf(measured);
  const endToEndMs = spreadOf(times.latencyMs, request.percentiles);
  if (endToEndMs === undefined || !(times.wallMs > 0))
    throw new TrtforgeError('TF_RUN_FAILED', `Measuring ${request.model} gave no sample.`);
  const qps = (endToEndMs.count / times.wallMs) * 1000;
  const samples = request.samples === undefined ? null : samplesPath(request.samples, batch, isOneOfSeveral);
  if (samples !== null) writeSamples(samples, times);
  const nobodyAsked = { before: null, during: [], after: null };
  return {
    batch,
    shapes: inputs.map(({ name, tensor }) => ({ name, shape: [...tensor.shape] })),
    profile: null,
    gpuMs: null,
    endToEndMs,
    qps,
    itemsPerSecond: qps * batch,
    mode: modeOf(request.pace),
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

const modeOf = ({ warmUpMs, durationMs, iterations, idleMs }: Pace): BenchRun['mode'] => ({
  kind: 'end-to-end',
  graph: null,
  graphFallback: null,
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
  readonly transfers: boolean;
  /** Notes on sizes that were not passed. */
  readonly guesses: readonly string[];
}

/** The meaning of a provider's times, and its limits. */
function meaningOf(backend: string, transfers: boolean): string {
  const copies = transfers
    ? "with every input's way to the GPU and every output's way back"
    : 'with inputs and outputs that stay on the GPU';
  return providerInBackend(backend) === 'CPU'
    ? `These are host times of ${backend}, whole calls on the host's clock: no GPU computed, so they do not compare with those of an engine.`
    : `These are host times of ${backend}, whole calls on the host's clock ${copies}: they do not compare with those of an engine.`;
}

function resultOf(
  path: string,
  { backend }: OpenedModel,
  { loadMs, runs, facts, guesses, transfers }: Measured,
): BenchResult {
  const doubts = runs.flatMap(({ batch, doubts: list }) => distrust(`batch ${batch}`, list));
  return {
    schema: 'trtforge.bench/1',
    subject: {
      path,
      bytes: statSync(path).size,
      name: null,
      identity: null,
      contextBytes: null,
      loadedBytes: null,
      loadMs,
      layers: null,
    },
    backend,
    ...(facts.onnxRuntime === null ? {} : { onnxRuntime: facts.onnxRuntime }),
    gpu: null,
    ...figuresOf(runs),
    layers: null,
    warnings: [
      meaningOf(backend, transfers),
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

/** One thing to measure of a model: every input's shape. */
export interface ModelCase {
  readonly batch: number;
  readonly shapes: ReadonlyMap<string, readonly number[]>;
  /** Input name to the axes whose size was guessed. */
  readonly guessedAxes: ReadonlyMap<string, readonly number[]>;
}

/** The basis of guesses: the graph's use of the inputs, and the number of guesses before. */
export interface Guess {
  readonly uses?: ValueUses;
  readonly attempt?: number;
}

/**
 * The cases to measure of a model, which has no profiles: the requested shapes, the rest by the names of its symbols. A batch goes into the first
 * axis of every input that leaves it open, and wherever the symbol of the first of them stands. Throws TF_SHAPE_INVALID for shapes that do not fit.
 */
export function modelCases(
  inputs: readonly Binding[],
  request: ShapeRequest,
  guess: Guess = {},
): readonly ModelCase[] {
  if (request.kind === 'batches') return request.batches.map((batch) => batchCase(inputs, batch, guess));
  return [caseOf(inputs, request.kind === 'shapes' ? request.shapes : new Map(), guess)];
}

function caseOf(
  inputs: readonly Binding[],
  asked: ReadonlyMap<string, readonly number[]>,
  { uses, attempt }: Guess,
): ModelCase {
  const { shapes, guessedAxes } = resolveShapes(inputs, asked, uses, attempt);
  const first = inputs.find(({ name }) => (shapes.get(name)?.length ?? 0) > 0);
  return { batch: shapes.get(first?.name ?? '')?.[0] ?? 1, shapes, guessedAxes };
}

function batchCase(inputs: readonly Binding[], batch: number, guess: Guess): ModelCase {
  const usual = caseOf(inputs, new Map(), guess);
  if (!inputs.some(({ shape }) => shape?.[0] !== undefined && typeof shape[0] !== 'number')) {
    if (usual.batch === batch) return usual;
    throw new TrtforgeError(
      'TF_SHAPE_INVALID',
      `The model leaves no first axis open, so batch ${batch} cannot be measured.`,
      { remedy: `Leave the batch out: it is fixed at ${usual.batch}.` },
    );
  }
  const batchAxes = new Set(
    openDimensions(inputs, guess.uses)
      .filter(({ places }) => places.some(({ axis }) => axis === 0))
      .flatMap(({ places }) => places.map(placeKey)),
  );
  const isBatch = (input: string, axis: number) => batchAxes.has(placeKey({ input, axis }));
  const asked = [...usual.shapes].map(
    ([name, shape]) => [name, shape.map((size, axis) => (isBatch(name, axis) ? batch : size))] as const,
  );
  const guessedAxes = [...usual.guessedAxes].flatMap(([name, axes]) => {
    const left = axes.filter((axis) => !isBatch(name, axis));
    return left.length === 0 ? [] : [[name, left] as const];
  });
  return { ...caseOf(inputs, new Map(asked), guess), guessedAxes: new Map(guessedAxes) };
}

const placeKey = ({ input, axis }: AxisPlace): string => `${axis} ${input}`;

/** An ONNX model on ONNX Runtime. */
interface ModelBenchRequest extends OptionsOf<typeof measuredOptions>, PlaceOptions {
  /** Path of an ONNX file. */
  readonly model: string;
  readonly pace: Pace;
  /** Default true; false, on a GPU only: inputs are there before the first run, and outputs stay there. */
  readonly transfers?: boolean;
}
