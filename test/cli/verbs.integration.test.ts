import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { longName } from '../../src/base/options/option.js';
import { everyVerb, program, trtforge } from '../support/trtforge.js';

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const verbs = await everyVerb();

/** Verbs whose data is of one kind. */
const shared: Readonly<Record<string, string>> = {
  'bench model': 'bench',
  'bundle build': 'bundle',
  'bundle forge': 'bundle',
  'compare-backends repair': 'compare-backends',
  'deepstream summary': 'inspect',
  'fleet report': 'report',
};

test.each(verbs)('the result of $path has its name', async ({ path, command }) => {
  const { properties } = z.toJSONSchema(await command.schema(), { unrepresentable: 'any' });
  expect(properties?.schema).toEqual({
    type: 'string',
    const: expect.stringMatching(`^trtforge\\.${shared[path] ?? path.replaceAll(' ', '-')}/\\d$`),
  });
});

describe.each(verbs)('trtforge $path', ({ path, command }) => {
  test('has help on one screen', async () => {
    const { exitCode, out, err } = await trtforge([...path.split(' '), '--help']);
    expect([exitCode, err]).toEqual([0, '']);
    const lines = out.split('\n');
    // What a first conversion needs stands in the help of forge and build too.
    expect(lines.length).toBeLessThanOrEqual(72);
    // An example is a line to copy, however long.
    const examples = lines.indexOf('Examples:');
    const wrapped = examples < 0 ? lines : lines.slice(0, examples);
    expect(wrapped.filter((line) => line.length > 80)).toEqual([]);
    expect(lines[0]).toMatch(new RegExp(`^Usage: trtforge ${path} `));
    const [first] = command.arguments ?? [];
    if (first !== undefined) expect(out).toMatch(new RegExp(`^ +${first.name} `, 'm'));
  });

  test('a wrong option is exit code 2, and one JSON object', async () => {
    const { exitCode, json } = await trtforge([...path.split(' '), '--no-such-option', '--json']);
    expect(exitCode).toBe(2);
    expect(json()).toMatchObject({ ok: false, exitCode: 2, error: { code: 'TF_USAGE' } });
  });

  test('shows at most 30 options, each with a name of its own and a description in lower case', () => {
    const options = Object.values(command.options);
    expect(options.filter((spec) => !spec.configOnly && !spec.advanced).length).toBeLessThanOrEqual(30);
    expect(new Set(options.map(longName)).size).toBe(options.length);
    const described = [...options, ...(command.arguments ?? [])].map((each) => each.describe);
    // Names keep their capitals: TensorRT, YAML, MODEL_NAME.
    expect(described.filter((text) => /^(?:\p{Lu}\p{Ll}*|\P{L}*)\s/u.test(text))).toEqual([]);
  });
});

test.each(program.products)('the process runs the verbs of $name too', ({ verbs: [first] }) => {
  const args = [main, ...(first?.path ?? '').split(' '), '--no-such-option', '--json'];
  const { status, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  expect(status).toBe(2);
  expect(JSON.parse(stdout)).toMatchObject({ ok: false, exitCode: 2, error: { code: 'TF_USAGE' } });
});
