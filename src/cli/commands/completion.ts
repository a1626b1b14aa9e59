import { z } from 'zod';
import { didYouMean } from '../../base/text/suggest-name.js';
import { TrtforgeError } from '../../errors.js';
import { defineCommand } from '../command.js';
import { completedVerbs, completionScript, type Shell, shells } from '../completion.js';

const schema = z.strictObject({
  schema: z.literal('trtforge.completion/1'),
  shell: z.enum(shells),
  script: z.array(z.string()).describe('lines of the script'),
});

export const command = defineCommand({
  arguments: [{ name: 'SHELL', describe: shells.join(', ') }],
  options: {},
  examples: ['eval "$(trtforge completion bash)"', 'trtforge completion fish | source'],
  schema: async () => schema,
  run: async ([shell = ''], _options, { products }): Promise<z.infer<typeof schema>> => {
    if (!isShell(shell))
      throw new TrtforgeError(
        'TF_USAGE',
        `There is no completion for "${shell}".${didYouMean(shell, shells)}`,
        { remedy: `Name one of ${shells.join(', ')}.` },
      );
    const script = completionScript(shell, await completedVerbs(products));
    return { schema: 'trtforge.completion/1', shell, script: [...script] };
  },
  render: ({ script }, { line }) => {
    for (const each of script) line(each);
  },
});

const isShell = (text: string): text is Shell => shells.some((shell) => shell === text);
