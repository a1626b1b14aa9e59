import { medianOf, quantile } from '../../../base/statistics.js';
import type {
  EngineBinding,
  EngineRunner,
  PreparedCall,
} from '../../../engines/runtime/tensorrt/engine-interface.js';
import { TrtforgeError } from '../../../errors.js';
import type { Contract } from '../../../formats/contract/contract.js';
import { elementCount, packedBytes } from '../../../formats/tensor/dtype.js';
import type { NamedTensors, Tensor } from '../../../formats/tensor/tensor.js';
import type { ProfileTimes } from './result.js';

/** The session that batches and switches are timed on: any of an engine. */
export interface BatchRunner extends Pick<EngineRunner, 'prepare'> {
  readonly inputs: readonly EngineBinding[];
}

export interface BatchOptions {
  readonly warmUp?: number;
  readonly runs?: number;
  readonly signal?: AbortSignal;
}

const WARM_UP = 3;
const RUNS = 30;

/** Sizes of chunk that switching is measured between, at most. */
const MOST_CALLS = 3;

/** A batch dimension by the names of exporters. */
const BATCH_SYMBOL = /^(b|n|batch|batch_?size)$/i;

/**
 * Times the same chunk in batches of several sizes, and what it costs to go from one prepared call to another and back. A batch that no profile takes is
 * listed with the engine's error. `inputs` are those of one recorded chunk, state included.
 */
export async function timeProfiles(
  session: BatchRunner,
  contract: Pick<Contract, 'inputs'>,
  chunks: readonly NamedTensors[],
  batches: readonly number[],
  options: BatchOptions = {},
): Promise<ProfileTimes> {
  const calls: NamedCall[] = [];
  const timed: ProfileTimes['batches'] = [];
  try {
    for (const [at, inputs] of chunks.slice(0, MOST_CALLS).entries())
      calls.push({ name: `size ${at + 1}`, call: await prepared(session, inputs, options) });
    const [first] = chunks;
    for (const batch of first === undefined ? [] : batches) {
      const inputs = new Map(
        [...first!].map(([name, tensor]) => [
          name,
          inBatch(tensor, batchAxis(session, contract, name), batch),
        ]),
      );
      try {
        const call = await prepared(session, inputs, options);
        calls.push({ name: `batch ${batch}`, call });
        timed.push({ batch, ...(await timeCall(call, batch, options)), error: null });
      } catch (error) {
        if (!(error instanceof TrtforgeError) || error.code !== 'TF_PROFILE_MISFIT') throw error;
        const none = { profile: null, medianMs: null, p95Ms: null, itemsPerSecond: null };
        timed.push({ batch, ...none, error: error.message });
      }
    }
    return { batches: timed, switching: await timeSwitches(calls, options) };
  } finally {
    for (const { call } of calls) call.close();
  }
}

interface NamedCall {
  readonly name: string;
  readonly call: PreparedCall;
}

async function prepared(
  session: BatchRunner,
  inputs: NamedTensors,
  { signal }: BatchOptions,
): Promise<PreparedCall> {
  const isHostValue = (name: string) =>
    session.inputs.find((each) => each.name === name)?.hostValues === true;
  const shapes = new Map(
    [...inputs].map(([name, tensor]) => [name, isHostValue(name) ? tensor : tensor.shape]),
  );
  const call = await session.prepare(shapes, { signal });
  for (const [name, tensor] of inputs) if (!isHostValue(name)) call.input(name).bytes.set(tensor.bytes);
  return call;
}

async function timeCall(call: PreparedCall, batch: number, options: BatchOptions) {
  const times = await runTimes([call], options);
  const medianMs = medianOf(times);
  return {
    profile: call.profile,
    medianMs,
    p95Ms: quantile(times.slice().sort(), 0.95),
    itemsPerSecond: medianMs === 0 ? null : (1000 * batch) / medianMs,
  };
}

/** Milliseconds of each run, the calls taking turns. */
export async function runTimes(
  calls: readonly PreparedCall[],
  { warmUp = WARM_UP, runs = RUNS, signal }: BatchOptions,
): Promise<Float64Array> {
  const times: number[] = [];
  for (let round = 0; round < warmUp + runs; round++) {
    for (const call of calls) {
      const started = performance.now();
      await call.run({ signal });
      if (round >= warmUp) times.push(performance.now() - started);
    }
  }
  return Float64Array.from(times);
}

/** Neighbours only: what alternating costs beyond staying, for one change. */
async function timeSwitches(
  calls: readonly NamedCall[],
  options: BatchOptions,
): Promise<ProfileTimes['switching']> {
  const switching: ProfileTimes['switching'] = [];
  for (let at = 1; at < calls.length; at++) {
    const [from, to] = [calls[at - 1]!, calls[at]!];
    const stays = [
      medianOf(await runTimes([from.call], options)),
      medianOf(await runTimes([to.call], options)),
    ];
    const turns = await runTimes([from.call, to.call], options);
    const stayMs = (stays[0]! + stays[1]!) / 2;
    const alternateMs =
      (medianOf(turns.filter((_, index) => index % 2 === 0)) +
        medianOf(turns.filter((_, index) => index % 2 === 1))) /
      2;
    const acrossProfiles = from.call.profile !== to.call.profile;
    switching.push({
      from: from.name,
      to: to.name,
      acrossProfiles,
      stayMs,
      alternateMs,
      costMs: alternateMs - stayMs,
    });
  }
  return switching;
}

/** The axis that the contract calls the batch, else the first that the engine leaves open, else the first. */
function batchAxis(session: BatchRunner, contract: Pick<Contract, 'inputs'>, name: string): number {
  const named = contract.inputs
    .find((binding) => binding.name === name)
    ?.shape?.findIndex((size) => typeof size === 'string' && BATCH_SYMBOL.test(size));
  if (named !== undefined && named >= 0) return named;
  const open = session.inputs.find((binding) => binding.name === name)?.shape.indexOf(null) ?? -1;
  return Math.max(0, open);
}

/** The same rows again and again along one axis, until there are `count`. A scalar stays as it is. */
export function inBatch(tensor: Tensor, axis: number, count: number): Tensor {
  const size = tensor.shape[axis];
  if (size === undefined || size === 0 || size === count) return tensor;
  const shape = tensor.shape.with(axis, count);
  const rowBytes = packedBytes(tensor.dtype, elementCount(tensor.shape.slice(axis + 1)));
  const bytes = new Uint8Array(packedBytes(tensor.dtype, elementCount(shape)));
  const rows = elementCount(tensor.shape.slice(0, axis));
  for (let row = 0; row < rows; row++) {
    for (let at = 0; at < count; at++) {
      const from = (row * size + (at % size)) * rowBytes;
      bytes.set(tensor.bytes.subarray(from, from + rowBytes), (row * count + at) * rowBytes);
    }
  }
  return { dtype: tensor.dtype, shape, bytes };
}
