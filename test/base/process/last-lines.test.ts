import type { ChildProcess } from 'node:child_process';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { lastLines } from '../../../src/base/process/supervise.js';

const logged = (message: string) => ({ type: 'log', source: 'TensorRT', severity: 'info', message }) as const;

async function linesOf(printed: number, events: number): Promise<readonly string[]> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const lines = lastLines({ stdout, stderr } as unknown as ChildProcess, undefined);
  for (let line = 0; line < printed; line++) stderr.write(`printed ${line}\n`);
  stderr.end();
  await new Promise((resolve) => stderr.once('end', resolve));
  for (let event = 0; event < events; event++) lines.note(logged(`logged ${event}`));
  return lines.all();
}

test.each([
  [1, 100, 19, 1],
  [100, 1, 1, 19],
  [100, 100, 10, 10],
  [3, 4, 4, 3],
])(
  'of %i printed and %i logged lines %i logged are kept and %i printed',
  async (printed, events, ...kept) => {
    const all = await linesOf(printed, events);
    const begin = (word: string) => all.filter((line) => line.startsWith(word));
    expect([begin('logged').length, begin('printed').length]).toEqual(kept);
    expect(all.at(-1)).toBe(`printed ${printed - 1}`);
  },
);
