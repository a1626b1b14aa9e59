import { expect, test } from 'vitest';
import { type Console, reportError } from '../../src/cli/output.js';

test.each(['EMFILE', 'ENFILE'])('%s is an error of the machine with a remedy, not of trtforge', (code) => {
  const out: string[] = [];
  const console = {
    out: (text: string) => out.push(text),
    err: () => {},
    isTerminal: { out: false, err: false },
    environment: {},
  } as unknown as Console;
  reportError(Object.assign(new Error(code), { code }), { json: true, command: 'build' }, console);
  expect(JSON.parse(out.join(''))).toMatchObject({ error: { code: 'TF_FILE_UNREADABLE' } });
});
