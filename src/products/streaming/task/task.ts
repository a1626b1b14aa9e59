import { TrtforgeError } from '../../../errors.js';
import { type EventListener, ignoreEvents } from '../../../events.js';
import { closeCallShare, type Rounding } from '../../../quality/tasks/low-margin.js';
import type { VerifyOutcome } from '../../../quality/verify/result.js';
import { type BundleDecoder, openDecoder } from '../../bundle/open-decoder.js';
import { mainOutput, type StreamPlan } from '../compare/plan.js';
import type { ParityRequest } from '../compare/request.js';
import type { TaskResult } from '../compare/task-schema.js';
import type { ReferenceHeader } from '../recorded-stream.js';
import { ArgmaxTask } from './argmax.js';
import type { TaskJudge } from './judge.js';
import { TransducerTask } from './transducer.js';

/**
 * Opens the judge that a request asks for: with `decoder` the outputs are decoded, with `taskOutput` alone they are class scores; null without either. With `swap` the
 * candidate has a decoder of its own, and both are exchanged. `rounding` is that of the candidate: what it turns is a close call.
 * Throws TF_PARITY_MISFIT when one side does not have the output, and what `openDecoder` throws.
 */
export async function openTask(
  request: Pick<ParityRequest, 'decoder' | 'swap' | 'taskOutput' | 'reference' | 'candidate'>,
  plan: StreamPlan,
  header: Pick<ReferenceHeader, 'outputs'>,
  rounding: Rounding,
  { emit = ignoreEvents, signal }: { readonly emit?: EventListener; readonly signal?: AbortSignal },
): Promise<TaskJudge | null> {
  const { decoder, swap, taskOutput } = request;
  if (decoder === undefined && taskOutput === undefined) return null;
  const output = taskOutput ?? mainOutput(plan);
  const sides = [
    [request.candidate, plan.outputs],
    [request.reference, header.outputs],
  ] as const;
  for (const [path, outputs] of sides) {
    if (outputs.some(({ name }) => name === output)) continue;
    throw new TrtforgeError(
      'TF_PARITY_MISFIT',
      `${path} has no output ${output ?? 'of numbers'} to decide by.`,
      {
        remedy: `It has ${outputs.map(({ name }) => name).join(', ')}; name one with --task-output.`,
      },
    );
  }
  const share = closeCallShare[rounding];
  if (decoder === undefined) return new ArgmaxTask(output!, share);
  const context = { emit, signal };
  const opened = await openDecoder(decoder, context);
  const { result } = plan.contract.lengths;
  if (swap === undefined) return new TransducerTask(output!, result, opened, share);
  try {
    const own = await openSwap(swap, opened, context);
    const limit = plan.toleranceOf(opened.logits).absolute;
    return new TransducerTask(output!, result, opened, share, { decoder: own, limit });
  } catch (error) {
    await opened.close();
    throw error;
  }
}

/** The candidate's own decoder, which must decide about the same things as the reference's. */
async function openSwap(
  path: string,
  { facts }: BundleDecoder,
  context: Parameters<typeof openDecoder>[1],
): Promise<BundleDecoder> {
  const own = await openDecoder(path, context);
  const { tokenLogits, blankId, durations } = own.facts;
  if (
    tokenLogits === facts.tokenLogits &&
    blankId === facts.blankId &&
    durations.join() === facts.durations.join()
  )
    return own;
  await own.close();
  throw new TrtforgeError(
    'TF_BUNDLE_MISMATCH',
    `${path} decides about other tokens or durations than the bundle of --decoder, so the two cannot be exchanged.`,
  );
}

/** The verdict of a task; null where it was not judged. */
export function outcomeOfTask(task: TaskResult): VerifyOutcome | null {
  if (task.kind === 'not-judged') return null;
  // After a close call free decoding may go another way: that is its doing.
  if (task.different > task.closeCalls || (task.different === 0 && task.emitted?.equal === false))
    return 'fail';
  return task.decisions === 0 || task.unjudged.length > 0 ? 'inconclusive' : 'pass';
}
