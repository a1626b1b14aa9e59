import { assertWithin } from '../../../base/options/library-arguments.js';
import { runSupervised } from '../../../base/process/supervise.js';
import { digestModelFile } from '../../../engines/identity/model-digest.js';
import type { Arithmetic } from '../../../engines/runtime/back-end.js';
import { chooseBackEnd, openSession } from '../../../engines/runtime/open-session.js';
import { environmentFor } from '../../../engines/runtime/tensorrt/supervised-engine.js';
import { openReference } from '../../../formats/reference/reference.js';
import { inArithmetic, precisionOf } from '../../../quality/verify/precision.js';
import { sessionRunner } from './candidate.js';
import { type ParityRequest, parityOptions } from './options.js';
import type { ParityResult } from './result.js';
import { type ParityContext, runParity } from './run-parity.js';

const CHILD = new URL('../../../../dist/products/streaming/verify/parity-child.js', import.meta.url);

/**
 * Compares an ONNX model (on ONNX Runtime) or an engine (on TensorRT, in a process of its own) with a recorded stream. Throws TF_PARITY_MISFIT,
 * TF_REFERENCE_INVALID, and what opening and running the candidate throws.
 */
export async function verifyAgainstReference(
  request: ParityRequest,
  context: ParityContext = {},
): Promise<ParityResult> {
  assertWithin(parityOptions, request);
  const { takes } = chooseBackEnd(request.candidate, request);
  return takes === 'engine' ? onEngine(request, context) : onModel(request, context);
}

async function onEngine(request: ParityRequest, context: ParityContext): Promise<ParityResult> {
  const { environment = process.env, taskKinds = [], ...work } = context;
  const taskModules = taskKinds.flatMap(({ module }) => module?.href ?? []);
  const message = { request: withPrecision(request, 'fp32'), taskModules };
  const result = await runSupervised(CHILD, message, {
    ...work,
    doing: `running ${request.candidate} on ${request.reference}`,
    env: await environmentFor(request.candidate, request, environment),
  });
  return result as ParityResult;
}

/** With the limits that `verify` would take; an engine without passport has those of FP32. */
const withPrecision = (request: ParityRequest, arithmetic: Arithmetic): ParityRequest => ({
  ...request,
  precision:
    request.precision ?? inArithmetic(precisionOf(request.candidate), request.candidate, { arithmetic }),
});

async function onModel(request: ParityRequest, context: ParityContext): Promise<ParityResult> {
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
    return await runParity(withPrecision(request, session.arithmetic), candidate, reference, context);
  } finally {
    await session.close();
  }
}
