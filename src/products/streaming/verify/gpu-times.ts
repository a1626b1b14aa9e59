import { medianOf } from '../../../base/statistics.js';
import type { EngineBinding } from '../../../engines/runtime/tensorrt/engine-interface.js';
import type { LoadedEngine } from '../../../engines/runtime/tensorrt/load-engine.js';
import type { NamedTensors } from '../../../formats/tensor/tensor.js';
import { numbersOf } from '../../../formats/tensor/values.js';
import { timesOf } from '../../../quality/bench/times.js';
import type { NativeShape } from '../../../tensorrt/addon/native-engine.js';
import type { ParityResult } from './result.js';

/** One size of chunk with the inputs it was run with, state included. */
export interface SizedInputs {
  readonly profile: number;
  readonly inputs: NamedTensors;
}

const WARM_UP_MS = 50;
const DURATION_MS = 300;

/** Times one size of chunk on the GPU's clock: transfers in, computing, transfers out; `inARowMs` is what a step of it takes by the host's clock. */
export async function gpuTimesOf(
  { addon, native }: Pick<LoadedEngine, 'addon' | 'native'>,
  bindings: readonly EngineBinding[],
  { profile, inputs }: SizedInputs,
  inARowMs: number,
): Promise<ParityResult['gpuTimes'][number]> {
  const shapes: NativeShape[] = bindings.flatMap(({ name, hostValues }) => {
    const tensor = inputs.get(name);
    if (tensor === undefined) return [];
    return [{ name, shape: tensor.shape, values: hostValues ? Array.from(numbersOf(tensor)) : null }];
  });
  const measurement = await addon.measure(native, {
    profile,
    shapes,
    inputs: bindings.flatMap(({ name, hostValues }) => {
      const tensor = inputs.get(name);
      return tensor === undefined || hostValues ? [] : [{ name, data: tensor.bytes }];
    }),
    streams: 1,
    warmUpMs: WARM_UP_MS,
    durationMs: DURATION_MS,
    iterations: 10,
    transfers: true,
    graph: true,
    spinWait: false,
    idleMs: 0,
  }).done;
  const { inputMs, computeMs, outputMs } = timesOf(measurement);
  const compute = medianOf(computeMs);
  return {
    shapes: shapes.map(({ name, shape }) => `${name}:${shape.join('x') || 'scalar'}`).join(','),
    profile,
    inputMs: medianOf(inputMs),
    computeMs: compute,
    outputMs: medianOf(outputMs),
    inARowMs,
    overGpu: compute === 0 ? null : inARowMs / compute,
  };
}
