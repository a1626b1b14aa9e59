import { formatShare, plural } from '../../../base/text/quantity.js';
import type { ParityResult } from '../verify/result.js';
import { taskLine } from '../verify/task.js';

/** The number of chunks that passed, and each verdict. */
export function parityHeadline({ passed, chunks, passRate, verdicts, task }: ParityResult): string {
  const judged =
    task.kind === 'not-judged' ? `not judged (${task.why})` : `${verdicts.task}; ${taskLine(task)}`;
  return `${plural(passed, 'chunk')} of ${chunks} passed (${formatShare(passRate)}). Contract: ${verdicts.contract}. Numbers: ${verdicts.numeric}. Task: ${judged}.`;
}
