import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { longName } from '../../../src/base/options/option.js';
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
  const page = readFileSync(join(import.meta.dirname, '../../../SECURITY.md'), 'utf8');
  const [list = ''] = /^`accept-license`.*$/m.exec(page) ?? [];
  expect(list.match(/[\w-]+/g)).toEqual(marked.map(([name]) => name).sort());
});
