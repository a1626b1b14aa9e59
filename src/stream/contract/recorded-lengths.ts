import { numbersOf } from '../../tensor/values.js';
import type { Reference, ReferenceChunk } from '../reference/recorded-stream.js';
import { checkAssertions, type Step } from './assertions.js';
import type { Contract, Violation } from './contract.js';

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
}

/** Reads the lengths of every chunk; states and results are passed over. Throws what reading a reference throws. */
export async function recordedLengths(
  contract: Contract,
  reference: Reference,
  signal?: AbortSignal,
): Promise<readonly RecordedLengths[]> {
  const reader = new LengthsReader(contract);
  const options = { select: (_: string, name: string) => reader.names.includes(name) };
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
  #before: Step | undefined;

  constructor(contract: Contract) {
    const { lengths, schedule } = contract;
    const names = [lengths.signal, lengths.result, lengths.stateIn, lengths.stateOut, schedule?.tensor];
    this.names = names.filter((name) => typeof name === 'string');
    this.#contract = contract;
    this.#assertions = contract.assertions.filter(({ tensor }) => this.names.includes(tensor));
  }

  take({ index, inputs, outputs, meta }: ReferenceChunk): void {
    const { lengths, schedule } = this.#contract;
    const step: Step = { chunk: index, inputs, outputs };
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
    });
    this.#before = step;
  }
}

const presentOnly = (assertions: Contract['assertions'], { inputs, outputs }: Step): Contract['assertions'] =>
  assertions.filter(({ tensor }) => inputs.has(tensor) || outputs.has(tensor));
