import { z } from 'zod';
import { throwIfCancelled } from '../../../base/process/cancel.js';
import { startGroup } from '../../../base/process/command.js';
import { lastLines } from '../../../base/process/supervise.js';
import { ExitCode, TrtforgeError } from '../../../errors.js';
import { line, quoted, type Scheduler, workLine } from './scheduler.js';

const sshSchema = z.strictObject({
  host: z.string().regex(/^[\w[][\w.:@%[\]-]*$/, 'must be the name of a host, with "user@" or not'),
  /** There; default: the plan's folder. */
  folder: line.optional(),
});

/** A machine that has trtforge, the plan's folder and a key that asks for no password. */
export const ssh: Scheduler<z.infer<typeof sshSchema>> = {
  schema: sshSchema,
  option: {
    flags: '--ssh <host>',
    describe: 'every target, on that machine, which has trtforge',
    trust: true,
  },
  instead: (host) => ({ ssh: { host } }),
  machine: ({ host }) => host,
  script: (submission, { host, folder }) => {
    // A password would be asked for where nobody looks.
    const command = `exec ssh -o BatchMode=yes -- ${host} ${quoted('The line', workLine(submission, folder))}`;
    return { ending: 'sh', content: `${command}\n` };
  },
  submit: async ({ target, script }, { emit, signal, environment }) => {
    throwIfCancelled(signal, `working on ${target}`);
    const { child, stop } = startGroup('/bin/sh', ['-c', script.content], { environment });
    const lines = lastLines(child, emit);
    const onAbort = () => stop();
    signal.addEventListener('abort', onAbort, { once: true });
    const exitCode = await new Promise<number | null>((end) => child.on('close', end));
    signal.removeEventListener('abort', onAbort);
    throwIfCancelled(signal, `working on ${target}`);
    if (exitCode !== null && exitCode <= ExitCode.internal) return { exitCode: exitCode as ExitCode };
    const why = `ended with exit code ${exitCode}: ${lines.all().join('\n')}`;
    throw new TrtforgeError('TF_SCHEDULER_FAILED', `ssh for ${target} ${why}`);
  },
};
