import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { longName } from '../../src/cli/option.js';
import { everyVerb } from '../support/trtforge.js';

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const verbs = await everyVerb();

/** Runs the built program in a process of its own. */
const spawned = (args: readonly string[]) =>
  new Promise<{ readonly status: number; readonly stdout: string; readonly stderr: string }>((resolve) => {
    const child = execFile(process.execPath, [main, ...args], (_error, stdout, stderr) =>
      resolve({ status: child.exitCode ?? -1, stdout, stderr }),
    );
  });

/** Verbs whose data is of one kind. */
const shared: Readonly<Record<string, string>> = {
  'bench model': 'bench',
  'bundle build': 'bundle',
  'bundle forge': 'bundle',
  'deepstream repair': 'deepstream-size',
  'deepstream summary': 'inspect',
};

test.each(verbs)('the result of $path has its name', async ({ path, command }) => {
  const { properties } = z.toJSONSchema(await command.schema(), { unrepresentable: 'any' });
  expect(properties?.schema).toEqual({
    type: 'string',
    const: expect.stringMatching(`^trtforge\\.${shared[path] ?? path.replaceAll(' ', '-')}/\\d$`),
  });
});

describe.each(verbs)('trtforge $path', ({ path, command }) => {
  test('as a process: help on one screen, and a wrong option is exit code 2', async () => {
    const [help, wrong] = await Promise.all([
      spawned([...path.split(' '), '--help']),
      spawned([...path.split(' '), '--no-such-option', '--json']),
    ]);
    expect([help.status, help.stderr]).toEqual([0, '']);
    const lines = help.stdout.trimEnd().split('\n');
    expect(lines.length).toBeLessThanOrEqual(60);
    // An example is a line to copy, however long.
    const examples = lines.indexOf('Examples:');
    const wrapped = examples < 0 ? lines : lines.slice(0, examples);
    expect(wrapped.filter((line) => line.length > 80)).toEqual([]);
    expect(lines[0]).toMatch(new RegExp(`^Usage: trtforge ${path} `));
    const [first] = command.arguments ?? [];
    if (first !== undefined) expect(help.stdout).toMatch(new RegExp(`^ +${first.name} `, 'm'));
    expect(wrong.status).toBe(2);
    expect(JSON.parse(wrong.stdout)).toMatchObject({ ok: false, exitCode: 2, error: { code: 'TF_USAGE' } });
  });

  test('takes at most 30 options, each with a name of its own and a description in lower case', () => {
    const options = Object.values(command.options);
    expect(options.filter((spec) => !spec.configOnly).length).toBeLessThanOrEqual(30);
    expect(new Set(options.map(longName)).size).toBe(options.length);
    const described = [...options, ...(command.arguments ?? [])].map((each) => each.describe);
    // Names keep their capitals: TensorRT, YAML, MODEL_NAME.
    expect(described.filter((text) => /^(?:\p{Lu}\p{Ll}*|\P{L}*)\s/u.test(text))).toEqual([]);
  });
});
