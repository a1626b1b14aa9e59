import { throwIfCancelled } from '../../../base/process/cancel.js';
import type { Session } from '../../../engines/runtime/session.js';
import { TrtforgeError } from '../../../errors.js';
import type { WorkContext } from '../../../events.js';
import type { Contract, Violation } from '../../../formats/contract/contract.js';
import { openAxis, signalAmong } from '../../../formats/contract/resolve.js';
import { nextState } from '../../../formats/contract/state.js';
import {
  beginReference,
  type Provenance,
  recordedAs,
  type WritableChunk,
  type WrittenReference,
} from '../../../formats/reference/reference.js';
import { dtypes } from '../../../formats/tensor/dtype.js';
import { float32Values, type NamedTensors, numbersOf } from '../../../formats/tensor/tensor.js';
import { compareBindings, remedies } from '../check/compare-bindings.js';
import { checkData } from '../check/recorded-data.js';
import { LengthsReader } from '../check/recorded-lengths.js';
import { checkAssertions, type Step } from '../contract/assertions.js';
import { type PlannedChunk, planChunks, StreamInputs } from './inputs.js';

interface RecordStreamRequest {
  readonly contract: Contract;
  /** Frames of the first chunk and of the later ones; the last stands for all that follow. */
  readonly sizes: readonly number[];
  readonly chunks: number;
  readonly seed: number;
  readonly batch: number;
  readonly output: string;
  readonly provenance: Provenance;
}

export interface Recorded extends WrittenReference {
  readonly violations: readonly Violation[];
  readonly warnings: readonly string[];
  /** Of every step of the session, in milliseconds. */
  readonly stepMs: readonly number[];
}

/**
 * Records a stream from any session: seeded signal, state fed back by the contract, every output as it came, nothing repaired. Contract violations and
 * numbers that are not finite are reported. Throws TF_CONTRACT_INVALID when contract and session contradict each other, what the session throws,
 * TF_WRITE_FAILED, TF_CANCELLED; nothing half-written stays.
 */
export async function recordStream(
  session: Session,
  request: RecordStreamRequest,
  { emit, signal }: WorkContext = {},
): Promise<Recorded> {
  const contract = withSchedule(request.contract, session, request.sizes);
  rejectContradictions(contract, session);
  const planned = planChunks(contract, request.sizes, request.chunks);
  const inputs = new StreamInputs(contract, session.inputs, request);
  const log = new StepLog(contract);
  const lengths = new LengthsReader(contract, []);
  const writer = beginReference(request.output, request.provenance);
  try {
    let state: NamedTensors = inputs.initialState(request.sizes[0] ?? 1);
    for (const chunk of planned) {
      throwIfCancelled(signal, `recording ${request.output}`);
      const fed = inputs.forChunk(chunk, state);
      const started = performance.now();
      const outputs = await session.run(fed, { signal }).catch((error: unknown) => rejectChunk(error, chunk));
      const stepMs = performance.now() - started;
      log.add({ chunk: chunk.chunk, inputs: fed, outputs }, stepMs);
      const meta = { chunkLength: chunk.frames, stateLengthRaw: null };
      lengths.take({ index: chunk.chunk, inputs: fed, outputs, meta });
      writer.write(recordedChunk(contract, chunk, { fed, outputs, stepMs }));
      state = nextState({ state: contract.state, inputs: session.inputs }, outputs);
      emit?.({ type: 'progress', phase: 'record', done: chunk.chunk + 1, total: planned.length });
    }
    const noticed = log.noticed();
    const warnings = [...noticed.warnings, ...againstRule(contract, lengths, session)];
    return { ...writer.finish(), ...noticed, warnings };
  } catch (error) {
    writer.discard();
    throw error;
  }
}

/** The model itself decides: where its lengths do not follow the cache-length rule, the contract has other numbers than the model. */
const againstRule = (contract: Contract, { read }: LengthsReader, session: Session): readonly string[] =>
  checkData(contract, read, session)
    .filter(({ id }) => id === 'lengths-against-rule')
    .map(({ message, why }) => `${message} ${why}`);

/** A library's error about some node does not name the chunk that it could not take. */
function rejectChunk(error: unknown, { chunk, frames }: PlannedChunk): never {
  if (!(error instanceof TrtforgeError) || error.code !== 'TF_ONNXRUNTIME_FAILED') throw error;
  throw new TrtforgeError(
    error.code,
    `Chunk ${chunk}, of ${frames} frames, cannot be run. ${error.message}`,
    {
      remedy:
        'Choose sizes that the model takes: --schedule 41,57 are the frames of the first chunk and of the later ones.',
      cause: error,
    },
  );
}

/** A contract without chunk sizes gets the axis that is open in the session. */
function withSchedule(contract: Contract, session: Session, sizes: readonly number[]): Contract {
  if (contract.schedule !== null) return contract;
  const signal = signalAmong(session.inputs, contract.state);
  const axis = signal === null ? null : openAxis(signal);
  if (signal === null || axis === null) return contract;
  const [first = 1, rest = first] = sizes;
  const preEncode = { first: 0, rest: 0 };
  return {
    ...contract,
    schedule: { tensor: signal.name, axis, first, rest, shift: null, preEncode, stated: [] },
  };
}

function rejectContradictions(contract: Contract, session: Session): void {
  const first = compareBindings(contract, session, null).find(({ severity }) => severity === 'error');
  if (first === undefined) return;
  throw new TrtforgeError(
    'TF_CONTRACT_INVALID',
    `${contract.origin.path ?? 'The contract'} and the model contradict each other. ${first.message}`,
    {
      remedy: `Pass the contract of this model. ${remedies.contract}`,
      details: { finding: first },
    },
  );
}

interface Stepped {
  readonly fed: NamedTensors;
  readonly outputs: NamedTensors;
  readonly stepMs: number;
}

/** The facts under the names of the encoder's own recorder, so that its readers take our references. */
function recordedChunk(
  { lengths, outputs: promised, schedule }: Contract,
  chunk: PlannedChunk,
  { fed, outputs, stepMs }: Stepped,
): WritableChunk {
  const result = promised.find(({ role }) => role === 'result')?.name;
  // Undefined values are left out of the line.
  const first = (name: string | null): number | undefined => {
    const tensor = name === null ? undefined : outputs.get(name);
    return tensor === undefined ? undefined : numbersOf(tensor)[0];
  };
  const shape = result === undefined ? undefined : outputs.get(result)?.shape;
  const stateLength = first(lengths.stateOut);
  const { start, frames } = chunk;
  const overlap =
    schedule === null ? 0 : chunk.chunk === 0 ? schedule.preEncode.first : schedule.preEncode.rest;
  const shift = schedule?.shift ?? null;
  return {
    index: chunk.chunk,
    inputs: fed,
    outputs,
    metadata: {
      [recordedAs.chunkLength]: frames,
      [recordedAs.outputShape]: shape,
      [recordedAs.resultLength]: first(lengths.result),
      [recordedAs.stateLength]: stateLength,
      [recordedAs.stateLengthRaw]: stateLength,
      timing_ms: { step: stepMs, postprocess: 0, total: stepMs },
      schedule:
        start === null || shift === null
          ? undefined
          : {
              start: start + overlap,
              chunk_size: frames - overlap,
              shift_size: chunk.chunk === 0 ? shift.first : shift.rest,
              pre_encode: overlap,
              slice_start: start,
              slice_end: start + frames,
            },
    },
  };
}

/** The observations of the steps; each contract violation is kept once. */
class StepLog {
  readonly #contract: Contract;
  readonly #violations = new Map<string, Violation>();
  readonly #notFinite = new Map<string, number>();
  readonly #stepMs: number[] = [];
  #before: Step | undefined;

  constructor(contract: Contract) {
    this.#contract = contract;
  }

  add(step: Step, ms: number): void {
    this.#stepMs.push(ms);
    for (const violation of checkAssertions(this.#contract, step, this.#before))
      if (!this.#violations.has(violation.assertion)) this.#violations.set(violation.assertion, violation);
    for (const [name, tensor] of step.outputs) {
      if (this.#notFinite.has(name) || dtypes[tensor.dtype].kind !== 'float') continue;
      if (!float32Values(tensor).every(Number.isFinite)) this.#notFinite.set(name, step.chunk);
    }
    this.#before = step;
  }

  noticed(): Pick<Recorded, 'violations' | 'warnings' | 'stepMs'> {
    return {
      violations: [...this.#violations.values()],
      stepMs: this.#stepMs,
      warnings: [...this.#notFinite].map(
        ([name, chunk]) =>
          `${name} has NaN or infinite values from chunk ${chunk} on: nothing can be compared with them.`,
      ),
    };
  }
}
