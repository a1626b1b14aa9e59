import { publishFile } from '../../base/files/publish.js';
import { TrtforgeError } from '../../errors.js';
import type { Work } from '../../events.js';
import type { Bencher, BenchTool } from '../../quality/bench/bench-engine.js';
import { gpuAt } from '../../quality/bench/gpu.js';
import { type BenchRequest, defaultRequest } from '../../quality/bench/options.js';
import type { BenchResult, BenchRun } from '../../quality/bench/result.js';
import type { MeasuredFacts, StreamsEngine, StreamsMeter } from './effects.js';
import { type StreamsInputs, shapesAt } from './input.js';
import type { StreamsMode } from './options.js';
import { streamsLogText } from './trtexec-form-log.js';

interface MeterOptions {
  readonly mode: StreamsMode;
  readonly inputs: StreamsInputs;
  readonly loading: Pick<BenchRequest, 'toolchain' | 'device' | 'plugins'>;
  readonly bench: Bencher;
  readonly work: Work;
}

/** Inputs do not matter for time, but they should be the same each time. */
const SEED = 1;

/** trtexec's own least number of inferences, however long each takes. */
const ITERATIONS = 10;

/** Measures with trtforge's own bench, which writes the figures in trtexec's words, or with the trtexec of the toolchain, whose own log stays. */
export const streamsMeter = (tool: BenchTool, options: MeterOptions): StreamsMeter => ({
  tool,
  mode: options.mode,
  gpu: gpuAt(options.loading.device)?.name ?? null,
  async measure(engine, batch, logPath) {
    const trtexecLog = tool === 'trtexec' ? logPath : undefined;
    const { result, run } = await benchOnce(options, engine, batch, trtexecLog);
    const facts = measuredFacts(result, run);
    const { gpuBytes } = facts;
    if (trtexecLog === undefined)
      publishFile(
        logPath,
        streamsLogText({ result, run, enginePath: engine.path, gpuBytes, at: new Date() }),
      );
    return facts;
  },
});

/** One batch of an engine in the mode asked for. Throws TF_INTERNAL when the figures are not of that mode: a gate must not rest on them. */
async function benchOnce(
  options: MeterOptions,
  engine: StreamsEngine,
  batch: number,
  trtexecLog?: string,
): Promise<{ readonly result: BenchResult; readonly run: BenchRun }> {
  const { mode, inputs, loading, bench, work } = options;
  const result = await bench(
    {
      ...defaultRequest(engine.path),
      ...loading,
      shapes: {
        kind: 'shapes',
        shapes: new Map(shapesAt(inputs, batch).map(({ name, dims }) => [name, dims])),
      },
      inputs: { seed: SEED, ranges: [], files: [] },
      mode: { ...mode, transfers: false, streams: 1, iterations: ITERATIONS, idleMs: 0 },
    },
    { ...work, trtexecLog },
  );
  const [run] = result.runs;
  // The engine's first input need not be the one with the images.
  const measured = run?.shapes.find(({ name }) => name === inputs.image)?.shape[0];
  if (run === undefined || measured !== batch || run.mode.kind !== 'gpu-only') {
    throw new TrtforgeError(
      'TF_INTERNAL',
      `${engine.path} was measured at batch ${measured} ${run?.mode.kind}, not at batch ${batch} gpu-only.`,
    );
  }
  return { result, run: { ...run, batch } };
}

const measuredFacts = (result: BenchResult, run: BenchRun): MeasuredFacts => ({
  backend: result.backend,
  gpu: result.gpu?.name ?? null,
  graph: run.mode.graph,
  contextBytes: result.subject.contextBytes,
  gpuBytes: run.gpuStates.before?.memoryTotalBytes ?? run.gpuStates.after?.memoryTotalBytes ?? null,
  warnings: result.warnings,
});
