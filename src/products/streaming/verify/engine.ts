import { medianOf } from '../../../base/statistics.js';
import type { EngineSession } from '../../../engines/runtime/tensorrt/engine-interface.js';
import { engineLoadOptionsOf } from '../../../engines/runtime/tensorrt/engine-options.js';
import { openEngineSession } from '../../../engines/runtime/tensorrt/engine-session.js';
import type { EngineAddon } from '../../../engines/runtime/tensorrt/load-engine.js';
import { readPlanOnDisk } from '../../../engines/runtime/tensorrt/plan-on-disk.js';
import { noTrust } from '../../../engines/store/trust.js';
import type { NamedTensors } from '../../../formats/tensor/tensor.js';
import { loadAddon } from '../../../tensorrt/addon/addon.js';
import { openReference } from '../reference/open.js';
import { runTimes, timeProfiles } from './batch-times.js';
import type { OpenCandidate } from './candidate.js';
import { type EngineRunner, engineRunner } from './engine-runner.js';
import { gpuTimesOf, rememberEngine } from './gpu-times.js';
import type { ParityRequest } from './plan.js';
import { fedBackPairs, type StreamPlan } from './plan.js';
import type { ParityResult } from './result.js';
import { type ParityContext, runParity } from './run-parity.js';

/** Steps with nothing compared between them: while the host compares, the GPU idles and wakes slowly. */
const IN_A_ROW = { warmUp: 5, runs: 50 };

/** Runs a stream on an engine in this process, with the state on the GPU, and times it there. `parity-child.ts` calls it in a process of its own. */
export async function engineParity(
  request: ParityRequest,
  context: ParityContext = {},
  addon: EngineAddon = loadAddon(),
): Promise<ParityResult> {
  const remembered = rememberEngine(addon);
  // What loads it checks whether it is signed.
  const { passport } = await readPlanOnDisk(request.candidate, { requirePassport: false, trust: noTrust });
  const session = await openEngineSession(request.candidate, {
    ...engineLoadOptionsOf(request),
    ...context,
    device: request.device,
    requirePassport: false,
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
      afterwards: async (plan) => {
        const engine = await remembered.engine();
        const sizes = runner === undefined ? [] : sizesOf(runner);
        const gpuTimes: ParityResult['gpuTimes'] = [];
        if (engine !== undefined && request.gpuTimes !== false)
          for (const size of sizes)
            gpuTimes.push(
              await gpuTimesOf(
                addon,
                engine,
                session.inputs,
                size,
                medianOf(await runTimes([size.call], IN_A_ROW)),
              ),
            );
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

/** Each size of chunk with its prepared call and the inputs it was prepared for. */
const sizesOf = (runner: EngineRunner) =>
  runner.calls.map(({ call, inputs, state }) => ({
    call,
    profile: call.profile,
    inputs: new Map([...inputs, ...state]),
  }));

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
