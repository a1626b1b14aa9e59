import type { Session } from '../../../src/engines/runtime/session.js';
import type { PreparedCall } from '../../../src/engines/runtime/tensorrt/engine-interface.js';
import type { Contract } from '../../../src/formats/contract/contract.js';
import { parseContract } from '../../../src/formats/contract/file.js';
import {
  type ElementArray,
  floatTensor,
  integerTensor,
  type NamedTensors,
  type Tensor,
} from '../../../src/formats/tensor/tensor.js';

/** Steps that the cache of these cases holds. */
export const CAPACITY = 8;

/** A signal in, three steps out, and a cache of eight steps whose length never shrinks. */
export const contract: Contract = parseContract(
  'case.contract.json',
  JSON.stringify({
    schema: 'trtforge.contract/1',
    name: 'case',
    inputs: [
      { name: 'signal', dtype: 'float32', shape: ['B', 4, 'T'], role: 'signal' },
      { name: 'cache', dtype: 'float32', shape: ['B', CAPACITY, 100], role: 'state' },
      { name: 'cache_len', dtype: 'int64', shape: ['B'], role: 'state-length' },
    ],
    outputs: [
      { name: 'y', dtype: 'float32', shape: ['B', 3], role: 'result' },
      { name: 'y_len', dtype: 'int64', shape: ['B'], role: 'length' },
      { name: 'cache_out', dtype: 'float32', shape: ['B', CAPACITY, 100], role: 'state' },
      { name: 'cache_len_out', dtype: 'int64', shape: ['B'], role: 'state-length' },
    ],
    state: [
      { input: 'cache', output: 'cache_out', axis: 1, capacity: CAPACITY, validLength: 'cache_len_out' },
      { input: 'cache_len', output: 'cache_len_out' },
    ],
    assertions: [
      { id: 'three', tensor: 'y_len', kind: 'equal', value: 3 },
      { id: 'bounded', tensor: 'cache_len_out', kind: 'bounded-by-capacity', capacity: CAPACITY },
      { id: 'grows', tensor: 'cache_len_out', kind: 'monotonic', than: 'cache_len', until: CAPACITY },
      { id: 'grows-by-itself', tensor: 'cache_len_out', kind: 'monotonic' },
      { id: 'in-range', tensor: 'cache_len', kind: 'range', min: 0, max: CAPACITY },
      { id: 'small-cache', tensor: 'cache_out', kind: 'range', min: -10, max: 10 },
    ],
  }),
);

export const float = (shape: readonly number[], value = 0): Tensor =>
  floatTensor(
    'float32',
    shape,
    new Float32Array(shape.reduce((product, size) => product * size, 1)).fill(value),
  );
export const integers = (...values: readonly number[]): Tensor =>
  integerTensor('int64', [values.length], values);

export const inputs = (more: Readonly<Record<string, Tensor>> = {}): NamedTensors =>
  new Map(
    Object.entries({
      signal: float([1, 4, 5]),
      cache: float([1, CAPACITY, 100]),
      cache_len: integers(2),
      ...more,
    }),
  );

export const outputs = (more: Readonly<Record<string, Tensor>> = {}): NamedTensors =>
  new Map(
    Object.entries({
      y: float([1, 3]),
      y_len: integers(3),
      cache_out: float([1, CAPACITY, 100]),
      cache_len_out: integers(4),
      ...more,
    }),
  );

/** A session that gives what it is told to, one step after the other; the last goes on. */
export function sessionOf(
  ...answers: readonly (NamedTensors | Error)[]
): Session & { readonly ran: () => number } {
  let at = 0;
  const close = async () => {};
  return {
    backend: 'a case',
    inputs: [],
    outputs: [],
    ran: () => at,
    run: async () => {
      const answer = answers[Math.min(at++, answers.length - 1)] ?? new Map();
      if (answer instanceof Error) throw answer;
      return answer;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** A prepared call with buffers of its own, whose state stays elsewhere; `next` writes the outputs of each run. */
export function callOf(
  next: (outputs: Readonly<Record<string, ElementArray>>, step: number) => void,
): PreparedCall {
  const given = { signal: new Float32Array(20) };
  const taken = { y: new Float32Array(3), y_len: new BigInt64Array(1), cache_len_out: new BigInt64Array(1) };
  const shapes: Readonly<Record<string, Tensor>> = {
    signal: { dtype: 'float32', shape: [1, 4, 5], bytes: new Uint8Array(given.signal.buffer) },
    y: { dtype: 'float32', shape: [1, 3], bytes: new Uint8Array(taken.y.buffer) },
    y_len: { dtype: 'int64', shape: [1], bytes: new Uint8Array(taken.y_len.buffer) },
    cache_len_out: { dtype: 'int64', shape: [1], bytes: new Uint8Array(taken.cache_len_out.buffer) },
  };
  let step = 0;
  return {
    profile: 0,
    cudaGraph: false,
    cudaGraphFallback: null,
    inputs: given,
    outputs: taken,
    runSync: () => next(taken, step++),
    run: async () => next(taken, step++),
    input: (name) => shapes[name]!,
    output: (name) => shapes[name]!,
    close: () => {},
  };
}
