import { TrtforgeError } from '../../../errors.js';
import type { WorkContext } from '../../../events.js';
import type { ReferenceHeader } from '../../../formats/reference/reference.js';
import {
  agreementOutcome,
  agreementSentence,
  type DecisionDifference,
  decisionDetailsSchema,
} from '../../../quality/tasks/agreement.js';
import { openTask, type Task, type TaskKind } from '../../../quality/tasks/task.js';
import type { VerifyOutcome } from '../../../quality/verify/outcome.js';
import type { Measure } from '../../../quality/verify/result.js';
import { python } from '../compare/tensor-parity.js';
import { argmax } from './argmax.js';
import type { ParityRequest } from './options.js';
import { mainOutput, type StreamPlan } from './plan.js';
import type { JudgedTask, StreamTask } from './result.js';

/**
 * Opens the task that a request asks for: with `decoder` the outputs are decoded by the kind `tokens`, with `taskOutput` alone they are class scores
 * (`argmax`); null without either.
 * Throws TF_PARITY_MISFIT when one side does not have the output, TF_USAGE when `kinds` has no `tokens`, and what opening the task throws.
 */
export async function openStreamTask(
  request: Pick<ParityRequest, 'decoder' | 'taskOutput' | 'minAgreement' | 'reference' | 'candidate'>,
  plan: StreamPlan,
  header: Pick<ReferenceHeader, 'outputs'>,
  { taskKinds = [], ...context }: WorkContext & { readonly taskKinds?: readonly TaskKind[] },
): Promise<Task | null> {
  const { decoder, taskOutput, minAgreement } = request;
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
  if (decoder === undefined) return openTask([argmax], argmax.id, { output, minAgreement }, context);
  const settings = { output, lengths: plan.contract.lengths.result, decoder, minAgreement };
  return openTask(taskKinds, 'tokens', settings, context);
}

/** The result of a task, in the form of the result of a stream, with its verdict. */
export function judgedTask(task: Task): { readonly task: JudgedTask; readonly outcome: VerifyOutcome } {
  const { details, outcome, ...identity } = task.result();
  return { task: { ...decisionDetailsSchema.parse(details), ...identity }, outcome };
}

/** Differences named one by one; the result lists more. */
const MOST_REASONS = 5;

/** Why a task did not pass, and which low-margin decisions it passed with; nothing where all agrees, or it was not judged. */
export function reasonsOfTask(task: StreamTask): readonly string[] {
  if (task.kind === 'not-judged') return [];
  const { decisions, different, differences, unjudged, output } = task;
  return [
    ...(decisions > 0 && agreementOutcome(task) !== 'pass' ? [`Task: ${agreementSentence(task)}`] : []),
    ...differences.slice(0, MOST_REASONS).map((difference) => `Task: ${differenceText(difference)}`),
    ...(different > MOST_REASONS ? [`Task: ${different} decisions differ in all.`] : []),
    ...(unjudged.length > 0
      ? [
          `Task: the candidate gave no ${output} to decide by in ${unjudged.length} chunks, first in chunk ${unjudged[0]}.`,
        ]
      : []),
    ...(decisions === 0 ? ['Task: nothing was decided: the reference has no valid step.'] : []),
  ];
}

/** The judged decisions and their agreement, in one line. */
export function taskLine(task: JudgedTask): string {
  const { decisions, agreed, durationsAgreed, emitted, output, decoder, smallestMargin } = task;
  const how = decoder === null ? `the largest of ${output}` : `${output} decoded by ${decoder}`;
  const durations = durationsAgreed === null ? '' : `, ${durationsAgreed} durations`;
  const margin = smallestMargin === null ? '' : `; the smallest margin is ${marginText(smallestMargin)}`;
  const tokens =
    emitted === null
      ? ''
      : `; ${emitted.reference} tokens against ${emitted.candidate}, ${emitted.equal ? 'the same' : 'not the same'}`;
  return `${how}: ${agreed} of ${decisions} ${decoder === null ? 'classes' : 'tokens'}${durations} agree${tokens}${margin}`;
}

function differenceText({ chunk, at, what, lowMargin, ...sides }: DecisionDifference): string {
  const { reference, candidate, referenceMargin, candidateMargin } = sides;
  if (what === 'steps')
    return `in chunk ${chunk} the candidate has ${candidate} valid steps, the reference ${reference}.`;
  const place =
    what === 'class' ? `at [${at.join(', ')}]` : `frame ${at[1]}${at[0] === 0 ? '' : ` of row ${at[0]}`}`;
  return `chunk ${chunk}, ${place}: ${what} ${candidate} where the reference has ${reference}, by a margin of ${marginText(candidateMargin)} against ${marginText(referenceMargin)}${lowMargin ? ', a low-margin decision' : ''}.`;
}

const marginText = (margin: Measure | null): string =>
  typeof margin === 'number' ? python(margin) : String(margin);
