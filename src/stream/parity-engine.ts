import { medianOf } from '../bench/statistics.js';
import type { EngineSession } from '../runtime/engine-interface.js';
import { openEngineSession } from '../runtime/engine-session.js';
import type { EngineAddon } from '../runtime/load-engine.js';
import { readPlanOnDisk } from '../runtime/plan-on-disk.js';
import type { NamedTensors } from '../tensor/tensor.js';
import { loadAddon } from '../toolchain/addon.js';
import { type EngineRunner, engineRunner } from './closed-loop.js';
import { type OpenCandidate, type ParityContext, runParity } from './parity-here.js';
import { fedBackPairs, type StreamPlan } from './parity-plan.js';
import type { ParityRequest } from './parity-request.js';
import type { ParityResult } from './parity-schema.js';
import { type ChunkOutcome, sizeOf } from './parity-stream.js';
import { timeProfiles } from './profile-batches.js';
import { gpuTimesOf, rememberEngine } from './profile-gpu.js';
import { openReference } from './reference.js';

/** Runs a stream on an engine in this process, with the state on the GPU, and times it there. `parity-child.ts` calls it in a process of its own. */
export async function engineParity(
  request: ParityRequest,
  context: ParityContext = {},
  addon: EngineAddon = loadAddon(),
): Promise<ParityResult> {
  const remembered = rememberEngine(addon);
  const { passport } = await readPlanOnDisk(request.candidate, false);
  const { requirePassport = false, ...options } = request.engine ?? {};
  const session = await openEngineSession(request.candidate, {
    ...options,
    ...context,
    requirePassport,
    addon: remembered.addon,
  });
  let runner: EngineRunner | undefined;
  try {
    const document = passport?.identity.document;
    const built =
      document === undefined
        ? null
        : {
            model: document.model,
            precision: document.recipe.precision,
            tf32: !document.recipe.flags.includes('no-tf32'),
          };
    const candidate: OpenCandidate = {
      backend: session.backend,
      inputs: session.inputs,
      outputs: session.outputs,
      isFullFloat32: built?.tf32 === false,
      modelDigest: built?.model ?? null,
      built,
      runner: (plan) => {
        runner = engineRunner(session, { state: fedBackPairs(plan), keepState: plan.mode === 'closed-loop' });
        return runner;
      },
      afterwards: async (plan, stream) => {
        const engine = await remembered.engine();
        const sizes = runner === undefined ? [] : sizesOf(runner, stream.chunks);
        const gpuTimes: ParityResult['gpuTimes'] = [];
        if (engine !== undefined && request.gpuTimes !== false)
          for (const size of sizes) gpuTimes.push(await gpuTimesOf(addon, engine, session.inputs, size));
        return { gpuTimes, profiles: await profilesOf(request, session, plan, sizes) };
      },
    };
    using reference = openReference(request.reference);
    return await runParity(request, candidate, reference, context);
  } finally {
    runner?.close();
    await session.close();
  }
}

/** Each size of chunk with the inputs it was prepared for, and how long its steps took. */
function sizesOf(runner: EngineRunner, chunks: readonly ChunkOutcome[]) {
  return runner.calls.map(({ call, inputs, state }) => {
    const own = sizeOf(inputs);
    const steps = chunks.filter(({ size, isFirstOfSize }) => size === own && !isFirstOfSize);
    const stepMs = steps.length === 0 ? null : medianOf(Float64Array.from(steps, ({ totalMs }) => totalMs));
    return { profile: call.profile, inputs: new Map([...inputs, ...state]), stepMs };
  });
}

async function profilesOf(
  { batches = [] }: ParityRequest,
  session: EngineSession,
  plan: StreamPlan,
  sizes: readonly { readonly inputs: NamedTensors }[],
): Promise<ParityResult['profiles']> {
  if (batches.length === 0) return null;
  return timeProfiles(
    session,
    plan.contract,
    sizes.map(({ inputs }) => inputs),
    batches,
  );
}
