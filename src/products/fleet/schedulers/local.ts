import { z } from 'zod';
import { type Scheduler, workLine } from './scheduler.js';

/** The machine that submits. */
export const local: Scheduler<'local'> = {
  schema: z.literal('local'),
  option: { flags: '--local', describe: 'every target that this machine can build, here' },
  instead: () => 'local',
  machine: () => '',
  script: (submission) => ({ ending: 'sh', content: `${workLine(submission)}\n` }),
  submit: ({ work }) => work(),
};
