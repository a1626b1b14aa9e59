import type { NamedTensors } from '../../tensor/tensor.js';
import { numbersOf } from '../../tensor/values.js';
import type { Reference, ReferenceChunk } from '../reference/recorded-stream.js';
import { checkAssertions, type Step } from './assertions.js';
import type { Contract, StatePair, Violation } from './contract.js';
import { lastInUse } from './state.js';

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
  /** Promises of the contract about lengths that this chunk breaks. */
  readonly violations: readonly Violation[];
  /** States that are filled up on the other side than the contract says. */
  readonly wrongSides: readonly WrongSide[];
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

/** Reads the lengths of every chunk; states and results are passed over. Throws what reading a reference throws. */
export async function recordedLengths(
  contract: Contract,
  reference: Reference,
  signal?: AbortSignal,
): Promise<readonly RecordedLengths[]> {
  const reader = new LengthsReader(contract);
  // Of state only the first chunk is read: it shows which side is filled up.
  const states = contract.state.filter(({ validLength }) => validLength !== null).map(({ output }) => output);
  const options = {
    select: (_: string, name: string, position: number) =>
      reader.names.includes(name) || (position === 0 && states.includes(name)),
  };
  for await (const chunk of reference.chunks({ ...options, ...(signal === undefined ? {} : { signal }) }))
    reader.take(chunk);
  return reader.read;
}

/** Takes the lengths out of recorded chunks, one after the other. */
export class LengthsReader {
  readonly read: RecordedLengths[] = [];
  /** Of the tensors that are looked at. */
  readonly names: readonly string[];
  readonly #contract: Contract;
  readonly #assertions: Contract['assertions'];
  /** States whose side is known, right or wrong. */
  readonly #seen = new Set<string>();
  #before: Step | undefined;

  constructor(contract: Contract) {
    const { lengths, schedule } = contract;
    const names = [lengths.signal, lengths.result, lengths.stateIn, lengths.stateOut, schedule?.tensor];
    this.names = names.filter((name) => typeof name === 'string');
    this.#contract = contract;
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
    });
    this.#before = step;
  }

  #named(tensors: NamedTensors): NamedTensors {
    return new Map([...tensors].filter(([name]) => this.names.includes(name)));
  }

  /** A state that is neither empty nor full has its positions at one end; told once. */
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

const presentOnly = (assertions: Contract['assertions'], { inputs, outputs }: Step): Contract['assertions'] =>
  assertions.filter(({ tensor }) => inputs.has(tensor) || outputs.has(tensor));
