import { mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CommandOutcome, CommandRunner } from '../../src/base/process/command.js';
import type { Host } from '../../src/tensorrt/toolchain/places.js';

/** What a fake command says: its output, or what it does for the arguments. */
export type FakeCommand = string | ((args: readonly string[], environment: NodeJS.ProcessEnv) => string);

const absent: CommandOutcome = { outcome: 'absent', exitCode: null, stdout: '', stderr: '' };

/** Runs no program: answers from a table by the command's path or name; what is not in it is absent. */
export function fakeRunner(commands: Readonly<Record<string, FakeCommand>>): CommandRunner {
  return async (command, args, { environment = {} }) => {
    const found = commands[command] ?? commands[command.slice(command.lastIndexOf('/') + 1)];
    if (found === undefined) return absent;
    const stdout = typeof found === 'string' ? found : found(args, environment);
    return { outcome: 'ended', exitCode: 0, stdout, stderr: '' };
  };
}

/** A machine in a temporary folder: its root, a home, a working folder, and commands that answer from a table. */
export function fakeMachine(
  commands: Readonly<Record<string, FakeCommand>> = {},
  environment: NodeJS.ProcessEnv = {},
): Host {
  const root = mkdtempSync(join(tmpdir(), 'trtforge-machine-'));
  for (const name of ['home', 'work']) mkdirSync(join(root, name));
  const toolchains = join(root, 'home', '.cache', 'trtforge', 'toolchains');
  return {
    environment: { TRTFORGE_TOOLCHAINS: toolchains, ...environment },
    root,
    home: join(root, 'home'),
    workingFolder: join(root, 'work'),
    architecture: 'x64',
    run: fakeRunner(commands),
  };
}
