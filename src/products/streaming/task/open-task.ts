import { TrtforgeError } from '../../../errors.js';
import { argmax } from '../../../quality/tasks/argmax.js';
import { decisionDetailsSchema } from '../../../quality/tasks/decisions.js';
import type { Rounding } from '../../../quality/tasks/low-margin.js';
import { openTask, type Task, type TaskContext, type TaskKind } from '../../../quality/tasks/task.js';
import type { VerifyOutcome } from '../../../quality/verify/result.js';
import { mainOutput, type StreamPlan } from '../compare/plan.js';
import type { ParityRequest } from '../compare/request.js';
import type { Explanation } from '../compare/result-schema.js';
import type { JudgedTask } from '../compare/task-schema.js';
import { explainSwap } from '../explain/runs.js';
import type { ReferenceHeader } from '../recorded-stream.js';

/**
 * Opens the task that a request asks for: with `decoder` the outputs are decoded by the kind `tokens`, with `taskOutput` alone they are class scores
 * (`argmax`); null without either. `rounding` is that of the candidate: a difference that it explains is a low-margin decision.
 * Throws TF_PARITY_MISFIT when one side does not have the output, TF_USAGE when `kinds` has no `tokens`, and what opening the task throws.
 */
export async function openStreamTask(
  request: Pick<ParityRequest, 'decoder' | 'swap' | 'taskOutput' | 'reference' | 'candidate'>,
  plan: StreamPlan,
  header: Pick<ReferenceHeader, 'outputs'>,
  rounding: Rounding,
  { taskKinds = [], ...context }: TaskContext & { readonly taskKinds?: readonly TaskKind[] },
): Promise<Task | null> {
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
  if (decoder === undefined) return openTask([argmax], argmax.id, { output, rounding }, context);
  const settings = { output, lengths: plan.contract.lengths.result, decoder, swap, rounding };
  return openTask(taskKinds, 'tokens', settings, context);
}

/** What a task found, as the result of a stream has it, with its verdict. */
export function judgedTask(
  task: Task,
  plan: StreamPlan,
): { readonly task: JudgedTask; readonly outcome: VerifyOutcome } {
  const { details, outcome, ...identity } = task.result();
  const { swap, ...decisions } = decisionDetailsSchema.parse(details);
  const limited = swap === null ? null : { ...swap, limit: plan.toleranceOf(swap.logits).absolute };
  return { task: { ...decisions, swap: limited, ...identity }, outcome };
}

/** Which of encoder and decoder the error comes from; nothing where they were not exchanged. */
export function explainExchange({ swap }: JudgedTask): readonly Explanation[] {
  if (swap === null) return [];
  const errors = {
    referenceReference: Number(swap.referenceReference),
    referenceCandidate: Number(swap.referenceCandidate),
    candidateReference: Number(swap.candidateReference),
    candidateCandidate: Number(swap.candidateCandidate),
  };
  return [explainSwap(errors, ['encoder', 'decoder'], swap.limit)];
}
