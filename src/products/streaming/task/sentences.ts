import type { DecisionDifference } from '../../../quality/tasks/decisions.js';
import type { Measure } from '../../../quality/verify/result.js';
import { python } from '../compare/chunk-compare.js';
import type { JudgedTask, StreamTask } from '../compare/task-schema.js';

/** Differences named one by one; the result lists more. */
const MOST_REASONS = 5;

/** Why a task did not pass, and which low-margin decisions it passed with; nothing where all agrees, or it was not judged. */
export function reasonsOfTask(task: StreamTask): readonly string[] {
  if (task.kind === 'not-judged') return [];
  const { decisions, different, differences, unjudged, output } = task;
  return [
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

/** What was judged and how far it agrees, in one line. */
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
