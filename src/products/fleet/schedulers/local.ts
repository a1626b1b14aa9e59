import { z } from 'zod';
import { flag } from '../../../cli/option.js';
import { type Scheduler, workLine } from './scheduler.js';

/** The machine that submits. */
export const local: Scheduler<'local'> = {
  schema: z.literal('local'),
  option: flag({ flags: '--local', describe: 'every target that this machine can build, here' }),
  instead: () => 'local',
  machine: () => '',
  script: (submission) => ({ ending: 'sh', content: `${workLine(submission)}\n` }),
  submit: ({ work }) => work(),
};
