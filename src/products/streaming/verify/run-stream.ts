import { join } from 'node:path';
import { throwIfCancelled } from '../../../base/process/cancel.js';
import { inDtype } from '../../../engines/run/input-dtype.js';
import type { Binding } from '../../../engines/runtime/session.js';
import { TrtforgeError } from '../../../errors.js';
import type { WorkContext } from '../../../events.js';
import type { StatePair, Violation } from '../../../formats/contract/contract.js';
import { fitToCapacity, nextState } from '../../../formats/contract/state.js';
import type { ReferenceChunk } from '../../../formats/reference/reference.js';
import { writeNpz } from '../../../formats/tensor/npz.js';
import {
  copiedTensor,
  floatTensor,
  type NamedTensors,
  numbersOf,
  type Tensor,
} from '../../../formats/tensor/tensor.js';
import type { Sample, Task } from '../../../quality/tasks/task.js';
import { LengthsReader } from '../check/recorded-lengths.js';
import {
  inspectFailure,
  inspectNonFinite,
  type NonFiniteChunk,
  type TensorDiagnosis,
} from '../compare/diagnosis.js';
import { positionAxis, validRegion } from '../compare/region.js';
import { compareTensor, type TensorParity } from '../compare/tensor-parity.js';
import { checkAssertions, type Step } from '../contract/assertions.js';
import { dumpedAs } from '../fastconformer.js';
import type { ChunkRunner } from './candidate.js';
import type { ChunkOutcome, StreamOutcome } from './outcome.js';
import { fedBackPairs, type StreamPlan } from './plan.js';

interface StreamOptions extends WorkContext {
  /** Scores the outputs, outside the times. */
  readonly task?: Task | null;
}

/** Outputs up to this size are kept for assertions about growth: lengths, not states. */
const KEPT_BYTES = 64 << 10;

/** Errors that are findings about the candidate; every other one ends the run. */
const FINDINGS: ReadonlySet<string> = new Set(['TF_PROFILE_MISFIT', 'TF_SESSION_INPUT']);

/**
 * Runs the reference's chunks through the candidate, one by one, and compares every output with what was recorded. In closed loop the state of the
 * first chunk comes from the reference and every later one from the candidate itself, also after a violation: that is what production would do.
 */
export async function runStream(
  plan: StreamPlan,
  runner: ChunkRunner,
  chunks: AsyncIterable<ReferenceChunk>,
  options: StreamOptions = {},
): Promise<StreamOutcome> {
  const stream = new Stream(plan, runner, options);
  for await (const chunk of chunks) if (!(await stream.take(chunk))) break;
  return stream.outcome();
}

class Stream {
  readonly #plan: StreamPlan;
  readonly #runner: ChunkRunner;
  readonly #options: StreamOptions;
  readonly #pairs: readonly StatePair[];
  readonly #chunks: ChunkOutcome[] = [];
  readonly #violations: Violation[] = [];
  readonly #dumps: string[] = [];
  readonly #diagnoses = new Map<string, TensorDiagnosis>();
  readonly #warnings = new Set<string>();
  readonly #sizes = new Set<string>();
  readonly #recordedLengths: LengthsReader;
  #state: NamedTensors | undefined;
  #before: Step | undefined;
  #nonFinite: NonFiniteChunk | null = null;
  #stopped: string | null = null;

  constructor(plan: StreamPlan, runner: ChunkRunner, options: StreamOptions) {
    this.#plan = plan;
    this.#runner = runner;
    this.#options = options;
    this.#pairs = fedBackPairs(plan);
    this.#recordedLengths = new LengthsReader(plan.contract);
  }

  outcome(): StreamOutcome {
    return {
      chunks: this.#chunks,
      violations: this.#violations,
      recorded: this.#recordedLengths.read,
      dumps: this.#dumps,
      diagnoses: [...this.#diagnoses.values()],
      nonFinite: this.#nonFinite,
      warnings: [...this.#warnings],
      stopped: this.#stopped,
    };
  }

  /** Runs and judges one chunk; false when the stream cannot go on. */
  async take(chunk: ReferenceChunk): Promise<boolean> {
    const { signal, emit } = this.#options;
    throwIfCancelled(signal, 'running a stream');
    const done = this.#chunks.length;
    emit?.({ type: 'progress', phase: 'stream', done });
    this.#recordedLengths.take(chunk);
    const isOwnState = this.#plan.mode === 'closed-loop' && this.#state !== undefined;
    const inputs = this.#inputsOf(chunk, isOwnState);
    const state = isOwnState ? this.#state! : this.#recordedState(chunk);
    try {
      await this.#step(chunk, inputs, state, isOwnState);
      return true;
    } catch (error) {
      if (!(error instanceof TrtforgeError) || !FINDINGS.has(error.code)) throw error;
      this.#fail(chunk, error);
      await this.#options.task?.take(this.#sample(chunk), null);
      return this.#plan.mode === 'functional';
    }
  }

  async #step(
    chunk: ReferenceChunk,
    inputs: NamedTensors,
    state: NamedTensors,
    isOwnState: boolean,
  ): Promise<void> {
    const { signal } = this.#options;
    const keep = isOwnState && this.#runner.keepsState;
    const stepped = await this.#runner.step(inputs, keep ? 'kept' : state, { signal });
    const { times } = stepped;
    const { contract, inputs: bindings } = this.#plan;
    const handling = performance.now();
    const isLooped = this.#plan.mode === 'closed-loop';
    // On the device nothing is left to do; what is read back here is for the comparison and takes none of the stream's time.
    const next =
      isLooped && this.#pairs.length > 0
        ? nextState({ state: contract.state, inputs: bindings }, stepped.outputs)
        : undefined;
    const stateMs = this.#runner.keepsState || next === undefined ? 0 : performance.now() - handling;
    const outputs = this.#fitted(stepped.outputs);
    const step: Step = {
      chunk: chunk.index,
      inputs: new Map([...inputs, ...state]),
      outputs: stepped.outputs,
    };
    const violations = checkAssertions(contract, step, this.#before);
    const tensors = this.#compare(chunk, outputs);
    if (tensors.some(({ failure }) => failure === 'non-finite'))
      this.#nonFinite ??= inspectNonFinite(chunk.index, step.inputs, outputs, chunk.outputs);
    await this.#options.task?.take(this.#sample(chunk), stepped.outputs);
    const pass = tensors.every((tensor) => tensor.pass) && violations.length === 0;
    const size = sizeOf(inputs);
    this.#violations.push(...violations);
    this.#chunks.push({
      chunk: chunk.index,
      pass,
      ...times,
      stateMs,
      totalMs: times.copyMs + times.runMs + stateMs,
      recordedMs: chunk.meta.stepMs,
      isFirstOfSize: !this.#sizes.has(size),
      tensors,
      error: null,
      lengths: this.#lengths(chunk, outputs),
    });
    this.#sizes.add(size);
    if (!pass) this.#dump(chunk, step, tensors);
    this.#before = lightStep(step);
    if (next !== undefined) this.#state = this.#runner.reusesBuffers ? owned(next) : next;
  }

  /** The sample that the task is judged by; the recorded state is the model's own doing, not data. */
  #sample({ index, inputs, outputs }: ReferenceChunk): Sample {
    const states = new Set(this.#pairs.map(({ input }) => input));
    const data = new Map([...inputs].filter(([name]) => !states.has(name)));
    return { index, inputs: data, reference: outputs };
  }

  #compare(chunk: ReferenceChunk, outputs: NamedTensors): readonly TensorParity[] {
    const recorded = this.#fitted(chunk.outputs);
    return [...recorded].map(([tensor, reference]) => {
      const pair = this.#plan.contract.state.find(({ output }) => output === tensor);
      const region = pair === undefined ? null : validRegion(pair, reference, recorded);
      const candidate = outputs.get(tensor);
      const parity = compareTensor({
        tensor,
        candidate,
        reference,
        region,
        limits: this.#plan.limitsOf(tensor),
        rule: this.#plan.rule,
      });
      // The first failure of each tensor is looked at more closely; later ones mostly repeat it.
      if (parity.failure?.startsWith('outside') && candidate !== undefined && !this.#diagnoses.has(tensor)) {
        const axis = positionAxis(this.#plan.contract, tensor, reference, recorded);
        this.#diagnoses.set(
          tensor,
          inspectFailure({ tensor, chunk: chunk.index, candidate, reference, axis, region }),
        );
      }
      return parity;
    });
  }

  #fitted(outputs: NamedTensors): NamedTensors {
    const { state } = this.#plan.contract;
    return new Map(
      [...outputs].map(([name, tensor]): [string, Tensor] => {
        const pair = state.find(({ output }) => output === name);
        return [name, pair === undefined ? tensor : fitToCapacity(pair, tensor)];
      }),
    );
  }

  /** Everything the candidate takes, except what is fed back. */
  #inputsOf(chunk: ReferenceChunk, isOwnState: boolean): NamedTensors {
    const fedBack = new Set(this.#pairs.map(({ input }) => input));
    const inputs = new Map<string, Tensor>();
    for (const binding of this.#plan.inputs) {
      if (fedBack.has(binding.name)) continue;
      inputs.set(binding.name, this.#recorded(chunk, binding));
    }
    if (!isOwnState) {
      const known = new Set(this.#plan.inputs.map(({ name }) => name));
      for (const name of chunk.inputs.keys())
        if (!known.has(name))
          this.#warnings.add(`The candidate has no input "${name}", which the reference records.`);
    }
    return inputs;
  }

  #recordedState(chunk: ReferenceChunk): NamedTensors {
    const fedBack = this.#pairs.flatMap(({ input }) =>
      this.#plan.inputs.filter(({ name }) => name === input),
    );
    return new Map(fedBack.map((binding) => [binding.name, this.#recorded(chunk, binding)]));
  }

  #recorded(chunk: ReferenceChunk, binding: Binding): Tensor {
    const tensor = chunk.inputs.get(binding.name);
    const place = `Chunk ${chunk.index} of ${this.#plan.reference}`;
    if (tensor !== undefined) return inDtype(binding, asListed(binding, tensor), place);
    throw new TrtforgeError('TF_PARITY_MISFIT', `${place} records no input "${binding.name}".`, {
      remedy: `The candidate takes ${this.#plan.inputs.map(({ name }) => name).join(', ')}; record a reference of the same model with \`trtforge stream record\`.`,
    });
  }

  #fail(chunk: ReferenceChunk, error: TrtforgeError): void {
    this.#chunks.push({
      chunk: chunk.index,
      pass: false,
      copyMs: 0,
      runMs: 0,
      stateMs: 0,
      totalMs: 0,
      recordedMs: null,
      isFirstOfSize: true,
      tensors: [],
      error: error.message,
      lengths: { recorded: chunk.meta.stateLength, got: null },
    });
    if (this.#plan.mode === 'closed-loop')
      this.#stopped = `Chunk ${chunk.index} could not be run, so there is no state for those after it.`;
  }

  #dump(chunk: ReferenceChunk, step: Step, tensors: readonly TensorParity[]): void {
    const { dump } = this.#plan;
    if (dump === null || this.#dumps.length >= dump.limit) return;
    const isShapeMismatch = tensors.some(({ failure }) => failure === 'shape');
    const { inputs, outputs } = step;
    this.#dumps.push(
      dumpChunk(dump.folder, {
        chunk: chunk.index,
        inputs,
        outputs,
        reference: chunk.outputs,
        isShapeMismatch,
      }),
    );
  }

  #lengths({ meta, outputs: recorded }: ReferenceChunk, outputs: NamedTensors): ChunkOutcome['lengths'] {
    const name = this.#plan.contract.lengths.stateOut;
    return {
      recorded: meta.stateLength ?? firstNumber(name, recorded),
      got: firstNumber(name, outputs),
    };
  }
}

/** A list of whole numbers may be floats: `[0, 0]` is how an empty state is written by programs with one kind of number. */
function asListed({ dtype }: Binding, tensor: Tensor): Tensor {
  const isFloat = dtype === 'float32' || dtype === 'float16' || dtype === 'bfloat16' || dtype === 'float64';
  if (!isFloat || tensor.dtype !== 'int64') return tensor;
  return floatTensor(dtype, tensor.shape, Float32Array.from(numbersOf(tensor)));
}

/** Chunks of one size have the same buffers. */
const sizeOf = (inputs: NamedTensors): string =>
  [...inputs].map(([name, { shape }]) => `${name}:${shape.join('x')}`).join();

function firstNumber(name: string | null, tensors: NamedTensors): number | null {
  const tensor = name === null ? undefined : tensors.get(name);
  return tensor === undefined ? null : (numbersOf(tensor)[0] ?? null);
}

/** A step without its large tensors, whose memory the next step uses again. */
function lightStep({ chunk, inputs, outputs }: Step): Step {
  const light = (tensors: NamedTensors) =>
    owned(new Map([...tensors].filter(([, { bytes }]) => bytes.length <= KEPT_BYTES)));
  return { chunk, inputs: light(inputs), outputs: light(outputs) };
}

/** Copies: outputs may lie in buffers that the next step writes. */
const owned = (tensors: NamedTensors): NamedTensors =>
  new Map([...tensors].map(([name, tensor]) => [name, copiedTensor(tensor)]));

/** One chunk that did not pass: what went in, what came out, what was recorded. */
interface FailingChunk {
  readonly chunk: number;
  readonly inputs: NamedTensors;
  readonly outputs: NamedTensors;
  readonly reference: NamedTensors;
  readonly isShapeMismatch: boolean;
}

/** Writes `chunk_00012_fail.npz` (or `_shape_mismatch.npz`) with the inputs, `got_<output>` and `ref_<output>`; returns its path. Inputs of the streaming encoder have the names that its scripts read, others `in_<name>`. */
export function dumpChunk(folder: string, failing: FailingChunk): string {
  const kind = failing.isShapeMismatch ? 'shape_mismatch' : 'fail';
  const path = join(folder, `chunk_${String(failing.chunk).padStart(5, '0')}_${kind}.npz`);
  const arrays = new Map<string, Tensor>();
  for (const [name, tensor] of failing.inputs) arrays.set(dumpedAs.get(name) ?? `in_${name}`, tensor);
  for (const [name, tensor] of failing.outputs) arrays.set(`got_${name}`, tensor);
  for (const [name, tensor] of failing.reference) arrays.set(`ref_${name}`, tensor);
  writeNpz(path, arrays);
  return path;
}
