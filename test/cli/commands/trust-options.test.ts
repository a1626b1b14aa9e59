import { expect, test } from 'vitest';
import { longName } from '../../../src/cli/option.js';
import { everyVerb } from '../../support/trtforge.js';

test('the options that a config file which was only found cannot set, in every verb that has them', async () => {
  const marks = new Map<string, Set<boolean>>();
  for (const { command } of await everyVerb())
    for (const spec of Object.values(command.options)) {
      const seen = marks.get(longName(spec)) ?? new Set();
      marks.set(longName(spec), seen.add(spec.trust === true));
    }
  const marked = [...marks].filter(([, seen]) => seen.has(true));
  expect(marked.filter(([, seen]) => seen.size > 1)).toEqual([]);
  expect(marked.map(([name]) => name).sort()).toEqual([
    'accept-license',
    'allow-host-code',
    'cache-dir',
    'cache-from',
    'check-command',
    'folder',
    'onnxruntime',
    'plugin',
    'provider-option',
    'remote',
    'require-signature',
    'sign-key',
    'toolchain',
    'trust-key',
    'wheel',
  ]);
});
