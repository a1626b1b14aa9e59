import { openDecoder } from '../bundle/open-decoder.js';
import { TrtforgeError } from '../errors.js';
import { type EventListener, ignoreEvents } from '../events.js';
import type { VerifyOutcome } from '../verify/result.js';
import { mainOutput, type StreamPlan } from './parity-plan.js';
import type { ParityRequest } from './parity-request.js';
import type { ReferenceHeader } from './recorded-stream.js';
import { ArgmaxTask } from './task-argmax.js';
import type { TaskJudge } from './task-judge.js';
import type { TaskResult } from './task-schema.js';
import { TransducerTask } from './task-transducer.js';

/**
 * Opens the judge that a request asks for: with `decoder` the outputs are decoded, with `taskOutput` alone they are class scores; null without either.
 * Throws TF_PARITY_MISFIT when one side does not have the output, and what `openDecoder` throws.
 */
export async function openTask(
  request: Pick<ParityRequest, 'decoder' | 'taskOutput' | 'reference' | 'candidate' | 'threads'>,
  plan: StreamPlan,
  header: Pick<ReferenceHeader, 'outputs'>,
  { emit = ignoreEvents, signal }: { readonly emit?: EventListener; readonly signal?: AbortSignal },
): Promise<TaskJudge | null> {
  const { decoder, taskOutput, threads } = request;
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
  if (decoder === undefined) return new ArgmaxTask(output!);
  const opened = await openDecoder(decoder, { emit, signal, ...(threads === undefined ? {} : { threads }) });
  return new TransducerTask(output!, plan.contract.lengths.result, opened);
}

/** The verdict of a task; null where it was not judged. */
export function outcomeOfTask(task: TaskResult): VerifyOutcome | null {
  if (task.kind === 'not-judged') return null;
  if (task.different > 0 || task.emitted?.equal === false) return 'fail';
  return task.decisions === 0 || task.unjudged.length > 0 ? 'inconclusive' : 'pass';
}
