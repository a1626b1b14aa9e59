import { mapOf } from '../../../engines/runtime/check-inputs.js';
import type { RunOptions, Session } from '../../../engines/runtime/session.js';
import type { PreparedCall } from '../../../engines/runtime/tensorrt/engine-interface.js';
import type { Contract } from '../../../formats/contract/contract.js';
import type { ByName, NamedTensors, Tensor } from '../../../formats/tensor/tensor.js';
import type { GuardCounters } from './counters.js';
import { type GuardOptions, GuardWatch } from './guard.js';

/** The members of a guarded session or call besides its own. */
export interface Guarded {
  readonly counters: GuardCounters;
  /** Records an error that the caller measured: the largest absolute difference of an output from a reference. */
  recordError(tensor: string, maxAbs: number): void;
  /** A new stream begins. */
  reset(): void;
}

/**
 * A session that checks every step against a contract: tensors, dtypes and shapes before and after, and the contract's assertions about lengths. It checks
 * what is small and copies nothing large; a step costs it a few microseconds. One guard for one stream at a time.
 */
export function guard(session: Session, contract: Contract, options: GuardOptions = {}): Session & Guarded {
  const watch = new GuardWatch(contract, options);
  return {
    backend: session.backend,
    inputs: session.inputs,
    outputs: session.outputs,
    run: async (passed: ByName<Tensor>, run?: RunOptions) => {
      const inputs = mapOf('inputs', passed);
      return watched(watch, inputs, () => session.run(inputs, run));
    },
    close: () => session.close(),
    [Symbol.asyncDispose]: () => session.close(),
    ...handles(watch),
  };
}

/** The same over a prepared call of an engine. Tensors that stay on the GPU are not checked: `stream verify` checks them. */
export function guardCall(
  call: PreparedCall,
  contract: Contract,
  options: GuardOptions = {},
): PreparedCall & Guarded {
  const inputs = viewOf(Object.keys(call.inputs), (name) => call.input(name));
  const watch = new GuardWatch(contract, options, new Set([...inputs.keys(), ...Object.keys(call.outputs)]));
  // The buffers are the same from run to run.
  let view: NamedTensors | undefined;
  const outputs = () => {
    view ??= viewOf(Object.keys(call.outputs), (name) => call.output(name));
    return view;
  };
  return {
    ...call,
    runSync: () => {
      watch.before(inputs);
      const began = performance.now();
      try {
        call.runSync();
      } catch (error) {
        watch.failed(secondsSince(began));
        throw error;
      }
      watch.after(inputs, outputs(), secondsSince(began));
    },
    run: async (run?: RunOptions) => {
      await watched(watch, inputs, () => call.run(run).then(outputs));
    },
    input: (name) => call.input(name),
    output: (name) => call.output(name),
    close: () => call.close(),
    ...handles(watch),
  };
}

async function watched(
  watch: GuardWatch,
  inputs: NamedTensors,
  step: () => Promise<NamedTensors>,
): Promise<NamedTensors> {
  watch.before(inputs);
  const began = performance.now();
  const outputs = await step().catch((error: unknown) => {
    watch.failed(secondsSince(began));
    throw error;
  });
  watch.after(inputs, outputs, secondsSince(began));
  return outputs;
}

const handles = (watch: GuardWatch): Guarded => ({
  counters: watch.counters,
  recordError: (tensor, maxAbs) => watch.recordError(tensor, maxAbs),
  reset: () => watch.reset(),
});

const viewOf = (names: readonly string[], tensor: (name: string) => Tensor): NamedTensors =>
  new Map(names.map((name) => [name, tensor(name)]));

const secondsSince = (began: number): number => (performance.now() - began) / 1000;
