import { execFileSync } from 'node:child_process';
import { expect } from 'vitest';
import { defineCommand } from '../../src/cli/command.js';
import { forgeOptions, forgeWishes } from '../../src/cli/commands/forge.js';
import { runProgram } from '../../src/cli/program.js';
import type { ForgeOptions } from '../../src/forge/options.js';
import { recordedConsole } from '../support/console.js';

/** The words of a command line as a real shell splits them. */
function shellWords(commandLine: string): readonly string[] {
  const script = `set -- ${commandLine}\nprintf '%s\\0' "$@"`;
  return execFileSync('sh', ['-c', script], { encoding: 'utf8' }).split('\0').slice(0, -1);
}

/** Reads a `trtforge forge` or `build` line back into wishes, through the shell and the real option tables. */
export const readBack = (commandLine: string): Promise<ForgeOptions> =>
  readWords(shellWords(commandLine).slice(1));

/** The same of words that are split: the command's name, the model, options. */
export async function readWords(words: readonly string[]): Promise<ForgeOptions> {
  let read: ForgeOptions | undefined;
  const probe = defineCommand({
    name: words[0]!,
    summary: '',
    arguments: [{ name: 'MODEL', describe: '' }],
    options: forgeOptions,
    run: async ([model = ''], options) => {
      read = forgeWishes(model, options);
      return { schema: 'trtforge.probe/1' };
    },
    render: () => {},
  });
  const recorded = recordedConsole();
  const entries = [{ name: probe.name, summary: '', load: async () => probe }];
  const program = { name: 'trtforge', version: '0', summary: '', entries };
  const exitCode = await runProgram(program, words, recorded.console);
  expect([exitCode, recorded.err()]).toEqual([0, '']);
  return read!;
}
