import type { Contract, StatePair, Violation } from '../../../formats/contract/contract.js';
import { fitToCapacity, lastInUse } from '../../../formats/contract/state.js';
import type { Reference, ReferenceChunk } from '../../../formats/reference/reference.js';
import {
  float32Values,
  floatTensor,
  isIntegerDtype,
  type NamedTensors,
  numbersOf,
  type Tensor,
} from '../../../formats/tensor/tensor.js';
import { validRegion } from '../compare/region.js';
import { compareTensor } from '../compare/tensor-parity.js';
import { checkAssertions, type Step } from '../contract/assertions.js';

/** The lengths of one recorded chunk; null where they are not recorded. */
export interface RecordedLengths {
  readonly chunk: number;
  /** Along the signal's time axis. */
  readonly frames: number | null;
  readonly stateIn: number | null;
  readonly stateOut: number | null;
  /** Before the recorder repaired it. */
  readonly stateOutRaw: number | null;
  readonly result: number | null;
  /** Assertions of the contract about lengths that this chunk violates. */
  readonly violations: readonly Violation[];
  /** States that are padded on the other side than in the contract. */
  readonly wrongSides: readonly WrongSide[];
  /** States that begin as something else than the chunk before left. */
  readonly otherStates: readonly OtherState[];
}

export interface OtherState {
  readonly input: string;
  readonly output: string;
  /** Largest difference; NaN where numbers are not finite. */
  readonly maxAbs: number;
}

export interface WrongSide {
  readonly tensor: string;
  readonly axis: number;
  /** Positions that count, of how many. */
  readonly valid: number;
  readonly size: number;
  /** Where the recorded state is filled up. */
  readonly padded: StatePair['padSide'];
}

/** Reads lengths and states of every chunk; results are passed over. Throws what reading a reference throws. */
export async function recordedLengths(
  contract: Contract,
  reference: Reference,
  signal?: AbortSignal,
): Promise<readonly RecordedLengths[]> {
  const reader = new LengthsReader(contract);
  const states = contract.state.flatMap(({ input, output, validLength }) => [input, output, validLength]);
  const chunks = reference.chunks({
    select: (_, name) => reader.names.includes(name) || states.includes(name),
    signal,
  });
  for await (const chunk of chunks) reader.take(chunk);
  return reader.read;
}

/**
 * Takes the lengths out of recorded chunks, one after the other, and compares the states that one leaves with those that the next begins with. The tensors
 * of a chunk must stay what they are while the next is taken.
 */
export class LengthsReader {
  readonly read: RecordedLengths[] = [];
  /** Of the tensors that are looked at. */
  readonly names: readonly string[];
  readonly #contract: Contract;
  readonly #assertions: Contract['assertions'];
  /** States whose side is known, right or wrong. */
  readonly #seen = new Set<string>();
  readonly #states: Contract['state'];
  #before: Step | undefined;
  #outputsBefore: NamedTensors | undefined;

  /** `states`: those that were recorded and can differ; none where the state of a step is fed to the next in this process. */
  constructor(contract: Contract, states: Contract['state'] = contract.state) {
    const { lengths, schedule } = contract;
    const names = [lengths.signal, lengths.result, lengths.stateIn, lengths.stateOut, schedule?.tensor];
    this.names = names.filter((name) => typeof name === 'string');
    this.#contract = contract;
    this.#states = states.filter(({ input }) => input !== lengths.stateIn);
    this.#assertions = contract.assertions.filter(({ tensor }) => this.names.includes(tensor));
  }

  take({
    index,
    inputs,
    outputs,
    meta,
  }: Pick<ReferenceChunk, 'index' | 'inputs' | 'outputs'> & {
    readonly meta: Pick<ReferenceChunk['meta'], 'chunkLength' | 'stateLengthRaw'>;
  }): void {
    const { lengths, schedule } = this.#contract;
    // Kept until the next chunk: lengths only, not the state beside them.
    const step: Step = { chunk: index, inputs: this.#named(inputs), outputs: this.#named(outputs) };
    const first = (name: string | null, side: 'inputs' | 'outputs'): number | null => {
      const tensor = name === null ? undefined : step[side].get(name);
      return tensor === undefined ? null : (numbersOf(tensor)[0] ?? null);
    };
    const cut = schedule === null ? undefined : inputs.get(schedule.tensor);
    this.read.push({
      chunk: index,
      frames: cut?.shape[schedule?.axis ?? 0] ?? meta.chunkLength,
      stateIn: first(lengths.stateIn, 'inputs'),
      stateOut: first(lengths.stateOut, 'outputs'),
      stateOutRaw: meta.stateLengthRaw,
      result: first(lengths.result, 'outputs'),
      violations: checkAssertions({ assertions: presentOnly(this.#assertions, step) }, step, this.#before),
      wrongSides: this.#contract.state.flatMap((pair) => this.#wrongSide(pair, outputs)),
      otherStates: this.#states.flatMap((pair) => this.#otherState(pair, inputs)),
    });
    this.#before = step;
    this.#outputsBefore = outputs;
  }

  #named(tensors: NamedTensors): NamedTensors {
    return new Map([...tensors].filter(([name]) => this.names.includes(name)));
  }

  /** The same bits, or within what the contract allows of the state; where its types differ, within the rounding of the coarsest. */
  #otherState(pair: StatePair, inputs: NamedTensors): readonly OtherState[] {
    const { input, output } = pair;
    const left = this.#outputsBefore?.get(output);
    const begun = inputs.get(input);
    if (this.#outputsBefore === undefined || left === undefined || begun === undefined) return [];
    const reference = fitToCapacity(pair, left);
    const isSameType = reference.dtype === begun.dtype;
    if (isSameType && (reference.bytes === begun.bytes || Buffer.compare(reference.bytes, begun.bytes) === 0))
      return [];
    const stated = this.#contract.tolerances.find(({ tensor }) => tensor === output || tensor === input);
    const { failure, maxAbs } = compareTensor({
      tensor: input,
      candidate: isIntegerDtype(reference.dtype) ? begun : asFloats(begun),
      reference,
      // Positions that do not count may be cleared on the way.
      region: pair.validLength === null ? null : validRegion(pair, reference, this.#outputsBefore),
      limits: {
        absolute: stated?.absolute ?? 0,
        relative: Math.max(stated?.relative ?? 0, isSameType ? 0 : 2 ** -8),
        why: 'from the contract',
      },
      rule: 'allclose',
    });
    return failure === null || failure === 'shape' ? [] : [{ input, output, maxAbs }];
  }

  /** A state that is neither empty nor full has its positions at one end; reported once. */
  #wrongSide({ output, axis, padSide, validLength }: StatePair, outputs: NamedTensors): readonly WrongSide[] {
    const tensor = outputs.get(output);
    const lengths = validLength === null ? undefined : outputs.get(validLength);
    if (axis === null || tensor === undefined || lengths === undefined || this.#seen.has(output)) return [];
    const size = tensor.shape[axis] ?? 0;
    const valid = Math.max(...Array.from(numbersOf(lengths)));
    if (!(valid > 0 && valid < size)) return [];
    this.#seen.add(output);
    const padded = padSide === 'right' ? 'left' : 'right';
    const isOther = lastInUse(tensor, axis, padSide) > valid && lastInUse(tensor, axis, padded) <= valid;
    return isOther ? [{ tensor: output, axis, valid, size, padded }] : [];
  }
}

/** A list of whole numbers may be floats. */
const asFloats = (tensor: Tensor): Tensor =>
  isIntegerDtype(tensor.dtype) ? floatTensor('float32', tensor.shape, float32Values(tensor)) : tensor;

const presentOnly = (assertions: Contract['assertions'], { inputs, outputs }: Step): Contract['assertions'] =>
  assertions.filter(({ tensor }) => inputs.has(tensor) || outputs.has(tensor));
