import { CommanderError } from 'commander';
import { longName } from '../../base/options/option.js';
import { shellLine } from '../../base/text/shell-line.js';
import { TrtforgeError } from '../../errors.js';
import type { Command } from '../command.js';
import { globalOptions } from '../option.js';
import { isBareFlag, onlyInConfig, parseValue } from '../resolve.js';
import { commandForFile } from './near-file.js';

/** commander's own complaints become TF_USAGE, with its "did you mean" kept; everything else stays what it is. */
export function usageError(
  error: unknown,
  path = '',
  command?: Command,
  args: readonly string[] = [],
): unknown {
  if (!(error instanceof CommanderError)) return error;
  const unknown = /unknown option '(--[\w-]+)/.exec(error.message)?.[1];
  const key = Object.values(command?.options ?? {}).find(
    (spec) => spec.configOnly && `--${longName(spec)}` === unknown,
  );
  if (key !== undefined) return onlyInConfig(path, key, args);
  const [, flag = '', value = ''] = /unknown option '(--[\w-]+)=(.*)'/.exec(error.message) ?? [];
  if (isBareFlag(flag, command?.options ?? {}))
    return new TrtforgeError('TF_USAGE', `${flag} takes no value, and ${value || 'one'} stands behind it.`, {
      remedy: `Write ${flag} alone.`,
    });
  const taken = error.code === 'commander.missingArgument' && command && takenArgument(command, args);
  if (taken) return taken;
  if (error.code === 'commander.help')
    return new TrtforgeError('TF_USAGE', 'The command line names no command.');
  const early = error.code === 'commander.unknownOption' ? globalOption(error.message) : undefined;
  if (early !== undefined)
    return new TrtforgeError('TF_USAGE', `There is no command before ${early}.`, {
      remedy: 'Options follow the command: trtforge cache ls --json',
    });
  const [complaint = '', ...hints] = error.message.replace(/^error: /, '').split('\n');
  const isUnknownCommand = error.code === 'commander.unknownCommand';
  const hint = hints.join(' ').replace(/^\(|\)$/g, '');
  const remedy =
    (isUnknownCommand ? commandForFile(args[0] ?? '') : undefined) ??
    (hint !== '' ? hint : isUnknownCommand ? '`trtforge --help` lists the commands.' : undefined);
  return new TrtforgeError(
    'TF_USAGE',
    `${complaint.charAt(0).toUpperCase()}${complaint.slice(1).replace(/\.?$/, '.')}`,
    { remedy },
  );
}

/** Of an option that takes the next word as its value where there is one: the argument that is missing is that word, unless it is such a value. */
function takenArgument({ options }: Command, args: readonly string[]): TrtforgeError | undefined {
  for (const spec of Object.values(options).filter(({ flags }) => flags.includes('['))) {
    const flag = `--${longName(spec)}`;
    const at = args.indexOf(flag);
    const word = at < 0 ? undefined : args[at + 1];
    if (word === undefined || word.startsWith('-')) continue;
    try {
      parseValue(spec, flag, word);
    } catch (error) {
      const line = shellLine(['trtforge', ...args.toSpliced(at, 2), word, flag]);
      return new TrtforgeError('TF_USAGE', (error as Error).message, { remedy: `Run: ${line}` });
    }
  }
  return undefined;
}

/** The option of every command that commander did not expect, which happens before a command only. */
function globalOption(complaint: string): string | undefined {
  const option = /'(--?[a-z-]+)(?:=.*)?'/.exec(complaint)?.[1];
  return globalOptions.some(([flags]) => flags.split(/,? /).includes(option ?? '')) ? option : undefined;
}
