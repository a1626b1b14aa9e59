import { TrtforgeError } from '../errors.js';
import type { CommandContext } from './command.js';
import { flag } from './option.js';

/** Of commands that take away what cannot be had back. */
export const confirmOptions = {
  yes: flag({ flags: '--yes', describe: 'do not ask before removing' }),
  dryRun: flag({ flags: '--dry-run', describe: 'list what would be removed, and remove nothing' }),
};

/** Goes on only with --yes or a yes from the terminal. Throws TF_USAGE where nobody can be asked, TF_CANCELLED for every other answer. */
export async function confirm(
  action: string,
  { yes, ask }: { readonly yes: boolean } & Pick<CommandContext, 'ask'>,
): Promise<void> {
  if (yes) return;
  if (ask === undefined)
    throw new TrtforgeError(
      'TF_USAGE',
      `${action} needs a confirmation, and there is no terminal to ask on.`,
      {
        remedy: 'Add --yes, or see with --dry-run what would be removed.',
      },
    );
  if (!/^y(es)?$/i.test((await ask(`${action}? [y/N] `)).trim()))
    throw new TrtforgeError('TF_CANCELLED', 'Not confirmed; nothing was removed.');
}
