import { runSupervised } from '../../../base/process/supervise.js';
import { assertWithin } from '../../../base/text/number-range.js';
import { digestModelFile } from '../../../engines/identity/model-digest.js';
import { chooseBackEnd, openSession } from '../../../engines/runtime/open-session.js';
import { environmentFor } from '../../../engines/runtime/tensorrt/supervised-engine.js';
import { ignoreEvents } from '../../../events.js';
import { openReference } from '../../../formats/reference/open.js';
import { contractFromModel } from '../contract/draft.js';
import { sessionRunner } from './candidate.js';
import { type ParityRequest, streamPlan } from './plan.js';
import type { ParityResult } from './result.js';
import { chunksToRun, type ParityContext, runParity } from './run-parity.js';
import { openStreamTask } from './task.js';

const CHILD = new URL('../../../../dist/products/streaming/verify/parity-child.js', import.meta.url);

/** What is sent to the process that runs an engine. */
export interface ParityChildRequest {
  readonly request: ParityRequest;
  /** Of the kinds of task (`TaskKind.module`). */
  readonly taskModules: readonly string[];
}

export interface ParityFileContext extends ParityContext {
  readonly environment?: NodeJS.ProcessEnv;
}

/**
 * Compares an ONNX model (on ONNX Runtime) or an engine (on TensorRT, in a process of its own) with a recorded stream. Throws TF_PARITY_MISFIT,
 * TF_REFERENCE_INVALID, and what opening and running the candidate throws.
 */
export async function verifyAgainstReference(
  request: ParityRequest,
  context: ParityFileContext = {},
): Promise<ParityResult> {
  assertWithin(request);
  const { takes } = chooseBackEnd(request.candidate, request);
  return takes === 'engine' ? onEngine(request, context) : onModel(request, context);
}

/** What a verification would run. */
export interface LookedAtParity {
  readonly backend: string;
  /** In the reference, as many as are run; null where the reference does not state it. */
  readonly chunks: number | null;
}

/**
 * Opens candidate, reference and decoders as a verification does, and closes them again: nothing runs. Throws what `verifyAgainstReference` throws before
 * the first chunk.
 */
export async function lookAtParity(
  request: ParityRequest,
  context: ParityFileContext = {},
): Promise<LookedAtParity> {
  using reference = openReference(request.reference);
  await using session = await openSession(request.candidate, request, context);
  const plan = streamPlan(
    request,
    request.contract ?? contractFromModel(request.candidate, session),
    session,
  );
  const { header } = reference;
  const task = await openStreamTask(request, plan, header, context);
  await task?.close();
  return { backend: session.backend, chunks: chunksToRun(header, request) };
}

async function onEngine(request: ParityRequest, context: ParityFileContext): Promise<ParityResult> {
  const { emit = ignoreEvents, signal, environment = process.env, taskKinds = [] } = context;
  const taskModules = taskKinds.flatMap(({ module }) => module?.href ?? []);
  const message: ParityChildRequest = { request, taskModules };
  const result = await runSupervised(CHILD, message, {
    emit,
    doing: `running ${request.candidate} on ${request.reference}`,
    env: await environmentFor(request.candidate, request, environment),
    signal,
  });
  return result as ParityResult;
}

async function onModel(request: ParityRequest, context: ParityFileContext): Promise<ParityResult> {
  using reference = openReference(request.reference);
  const session = await openSession(request.candidate, request, context);
  try {
    const modelDigest =
      reference.header.provenance === null ? null : await digestModelFile(request.candidate, context);
    const candidate = {
      backend: session.backend,
      inputs: session.inputs,
      outputs: session.outputs,
      isFullFloat32: session.arithmetic === 'fp32',
      modelDigest,
      built: null,
      runner: () => sessionRunner(session),
      afterwards: async () => {
        const { warnings, peakHostBytes, gpuBytes } = await session.facts();
        return { warnings, memory: { planBytes: null, peakHostBytes, gpuBytes } };
      },
    };
    return await runParity(request, candidate, reference, context);
  } finally {
    await session.close();
  }
}
