import { expect, test } from 'vitest';
import type { Command, CommandGroup } from '../../../src/cli/command.js';
import { longName } from '../../../src/cli/option.js';
import { registry } from '../../../src/registry.js';

test('the options that a config file which was only found cannot set, in every command that has them', async () => {
  const marks = new Map<string, Set<boolean>>();
  const note = (loaded: Command | CommandGroup) => {
    if ('subcommands' in loaded) return void loaded.subcommands.forEach(note);
    for (const spec of Object.values(loaded.options)) {
      const seen = marks.get(longName(spec)) ?? new Set();
      marks.set(longName(spec), seen.add(spec.trust === true));
    }
  };
  for (const entry of registry) note(await entry.load());
  const marked = [...marks].filter(([, seen]) => seen.has(true));
  expect(marked.filter(([, seen]) => seen.size > 1)).toEqual([]);
  expect(marked.map(([name]) => name).sort()).toEqual([
    'accept-license',
    'allow-host-code',
    'cache-dir',
    'cache-from',
    'folder',
    'plugin',
    'remote',
    'require-signature',
    'sign-key',
    'toolchain',
    'trust-key',
    'wheel',
  ]);
});
