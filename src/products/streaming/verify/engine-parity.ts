import { gpuBytesInUse } from '../../../addon/gpus.js';
import type { NativeShape } from '../../../addon/native-engine.js';
import { medianOf } from '../../../base/statistics.js';
import type { EngineBinding } from '../../../engines/runtime/tensorrt/engine-interface.js';
import { sessionOf } from '../../../engines/runtime/tensorrt/engine-session.js';
import { type LoadedEngine, loadEngine } from '../../../engines/runtime/tensorrt/load-engine.js';
import { openReference } from '../../../formats/reference/reference.js';
import { type NamedTensors, numbersOf } from '../../../formats/tensor/tensor.js';
import { timesOf } from '../../../quality/bench/times.js';
import { runTimes, timeProfiles } from './batch-times.js';
import type { OpenCandidate } from './candidate.js';
import { type EngineRunner, engineRunner } from './engine-runner.js';
import type { ParityRequest } from './options.js';
import { fedBackPairs } from './plan.js';
import type { ParityResult } from './result.js';
import { type ParityContext, runParity } from './run-parity.js';

/** Steps with nothing compared between them: while the host compares, the GPU idles and wakes slowly. */
const IN_A_ROW = { warmUp: 5, runs: 50 };

/**
 * Runs a stream on an engine in this process, with the state on the GPU, and times it there: `openSession` runs engines in a process of their own, where
 * no state can stay between steps. `parity-child.ts` calls it in such a process.
 */
export async function engineParity(request: ParityRequest, context: ParityContext): Promise<ParityResult> {
  const options = { ...request, ...context, requirePassport: false };
  const engine = await loadEngine(request.candidate, options);
  const session = sessionOf(engine, options);
  const document = engine.plan.passport?.identity.document;
  let runner: EngineRunner | undefined;
  const candidate: OpenCandidate = {
    backend: session.backend,
    inputs: session.inputs,
    outputs: session.outputs,
    isFullFloat32: document?.recipe.flags.includes('no-tf32') === true,
    modelDigest: document?.model ?? null,
    built:
      document === undefined
        ? null
        : {
            model: document.model,
            precision: document.recipe.precision,
            tf32: !document.recipe.flags.includes('no-tf32'),
          },
    runner: (plan) => {
      runner = engineRunner(session, { state: fedBackPairs(plan), keepState: plan.mode === 'closed-loop' });
      return runner;
    },
    afterwards: async ({ contract }) => {
      const sizes = runner === undefined ? [] : sizesOf(runner);
      const gpuTimes: ParityResult['gpuTimes'] = [];
      for (const size of request.gpuTimes === false ? [] : sizes) {
        const inARowMs = medianOf(await runTimes([size.call], IN_A_ROW));
        gpuTimes.push(await gpuTimesOf(engine, session.inputs, size, inARowMs));
      }
      const { batches = [] } = request;
      const inputs = sizes.map((size) => size.inputs);
      const profiles = batches.length === 0 ? null : await timeProfiles(session, contract, inputs, batches);
      const memory = {
        planBytes: engine.plan.header.planBytes,
        peakHostBytes: process.resourceUsage().maxRSS * 1024,
        gpuBytes: gpuBytesInUse(request.device),
      };
      return { gpuTimes, memory, profiles };
    },
  };
  try {
    using reference = openReference(request.reference);
    return await runParity(request, candidate, reference, context);
  } finally {
    runner?.close();
    await session.close();
  }
}

/** Each size of chunk with its prepared call and the inputs it was prepared for. */
const sizesOf = (runner: EngineRunner) =>
  runner.calls.map(({ call, inputs, state }) => ({
    call,
    profile: call.profile,
    inputs: new Map([...inputs, ...state]),
  }));

/** One size of chunk with the inputs it was run with, state included. */
interface SizedInputs {
  readonly profile: number;
  readonly inputs: NamedTensors;
}

const WARM_UP_MS = 50;
const DURATION_MS = 300;

/** Times one size of chunk on the GPU's clock: transfers in, computing, transfers out; `inARowMs` is what a step of it takes by the host's clock. */
async function gpuTimesOf(
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
