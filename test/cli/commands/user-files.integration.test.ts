import { existsSync, linkSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { longName } from '../../../src/base/options/option.js';
import type { Command } from '../../../src/cli/command.js';
import { type Answer, everyVerb, trtforge } from '../../support/trtforge.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-user-files-'));
const home = process.cwd();
afterAll(() => rmSync(root, { recursive: true, force: true }));

let folder = root;
beforeEach(() => {
  folder = mkdtempSync(join(root, 'case-'));
  process.chdir(folder);
});
afterEach(() => process.chdir(home));

const verbs = await everyVerb();
const allWriters = verbs.flatMap(({ path, command }) =>
  Object.values(command.options).flatMap((spec) =>
    spec.writes === undefined || spec.configOnly
      ? []
      : [{ path, option: `--${longName(spec)}`, writes: spec.writes, command }],
  ),
);

/** Without those that read what is there. */
const writers = allWriters.flatMap(({ writes, ...more }) =>
  writes === 'missing' ? [] : [{ ...more, writes }],
);

const answer = async (args: readonly string[]): Promise<Answer> =>
  (await trtforge([...args, '--json'], { XDG_CACHE_HOME: join(folder, 'xdg') })).json();

const codeOf = async (args: readonly string[]): Promise<string | undefined> =>
  (await answer(args)).error?.code;

/** As many arguments as the command cannot do without, each this text. */
const argumentsOf = ({ arguments: declared = [] }: Command, text: string): string[] =>
  declared.flatMap(({ optional, writes }) => (optional === true || writes === true ? [] : [text]));

/** The options that the command does not run without, of files that are not there. */
const requiredOf = ({ options }: Command, written: string): string[] =>
  Object.values(options)
    .filter((spec) => spec.required !== undefined && `--${longName(spec)}` !== written)
    // Where a value has a form of its own, that of the remedy; else one that names no file.
    .flatMap((spec) => (spec.parse ? spec.required!.split(' ') : [`--${longName(spec)}`, 'absent']));

describe('an output is never an input', () => {
  test.each(writers)('$path $option, of any of its arguments, under any name', async (writer) => {
    // The ending passes for whatever an option wants to hear.
    const [input, link, hard] = ['input.npz', 'link.npz', 'hard.npz'];
    writeFileSync(input, 'precious');
    symlinkSync(input, link);
    linkSync(input, hard);
    const positional = argumentsOf(writer.command, input);
    for (const output of [input, `./${input}`, link, hard]) {
      const words = [...writer.path.split(' '), ...positional, ...requiredOf(writer.command, writer.option)];
      if (positional.length > 0)
        expect(await codeOf([...words, writer.option, output, '--force'])).toBe('TF_OUTPUT_IS_INPUT');
    }
    expect(readFileSync(input, 'utf8')).toBe('precious');
  });

  test.each(writers)('$path $option, of its configuration', async ({ path, option, command }) => {
    writeFileSync('config.npz', '{}');
    const args = [...argumentsOf(command, 'absent.onnx'), ...requiredOf(command, option)];
    const line = [...path.split(' '), ...args, '--config', 'config.npz'];
    expect(await codeOf([...line, option, 'config.npz', '--force'])).toBe('TF_OUTPUT_IS_INPUT');
    expect(readFileSync('config.npz', 'utf8')).toBe('{}');
  });

  test('a key of the configuration that is written', async () => {
    writeFileSync('in.onnx', 'precious');
    writeFileSync('config.json', '{"timing-cache": "in.onnx"}');
    const line = ['bisect', 'in.onnx', '--against', 'absent.onnx', '-o', 'out', '--config', 'config.json'];
    expect(await codeOf([...line, '--force'])).toBe('TF_OUTPUT_IS_INPUT');
    expect(readFileSync('in.onnx', 'utf8')).toBe('precious');
  });

  test('an argument that is written', async () => {
    writeFileSync('engines.json', '{}');
    const line = ['cache', 'export', 'engines.json', '--config', 'engines.json', '--force'];
    expect(await codeOf(line)).toBe('TF_OUTPUT_IS_INPUT');
    expect(readFileSync('engines.json', 'utf8')).toBe('{}');
  });

  test.each([
    ['name=@file', ['run', 'm.onnx', 'x=@in.npz', '-o', 'in.npz']],
    ['name=file', ['gate', 'policy.yaml', 'parity=in.npz', '--junit', 'in.npz']],
    ['another option', ['stream', 'verify', 'm.onnx', '--reference', 'in.npz', '--summary-json', 'in.npz']],
    ['several by comma', ['convert', 'm.onnx', '--calibration', 'other.npz,in.npz', '-o', 'in.npz']],
  ])('that is named by %s', async (_how, line) => {
    writeFileSync('in.npz', 'precious');
    expect(await codeOf(line)).toBe('TF_OUTPUT_IS_INPUT');
    expect(readFileSync('in.npz', 'utf8')).toBe('precious');
  });

  test.each(allWriters)(
    '$path $option, set by a configuration that was only found, stays in its folder',
    async (writer) => {
      const key = writer.option.slice(2);
      const own = { [key]: '../elsewhere.npz' };
      const config = verbs.some(({ path }) => path === key) ? { [writer.path]: own } : own;
      writeFileSync('trtforge.config.json', JSON.stringify(config));
      const args = [
        ...argumentsOf(writer.command, 'absent.onnx'),
        ...requiredOf(writer.command, writer.option),
      ];
      const { error } = await answer([...writer.path.split(' '), ...args]);
      expect(error).toMatchObject({
        code: 'TF_CONFIG_INVALID',
        message: expect.stringContaining(`"${key}" to`),
      });
      expect(existsSync(join(folder, '..', 'elsewhere.npz'))).toBe(false);
    },
  );

  test('a default is no file', async () => {
    writeFileSync('auto', 'notes');
    expect(await codeOf(['build', 'absent.onnx'])).not.toMatch(/TF_OUTPUT/);
  });

  test('a name that is to be passed is not an input', async () => {
    writeFileSync('resnet50', 'ftrt');
    expect(await codeOf(['build', 'absent.onnx', '--name', 'resnet50', '-o', 'resnet50'])).not.toMatch(
      /TF_OUTPUT/,
    );
  });

  /** An option that takes a file is in this list, or marked as one that writes: a new one has to decide. */
  test('every option that takes a file states whether it writes', () => {
    const reading = new Set<string>();
    for (const { command } of verbs)
      for (const spec of Object.values(command.options))
        if (/<(file|place|out|npz|folder|name=@file|reference|json|onnx|meta)>/.test(spec.flags))
          if (spec.writes === undefined) reading.add(longName(spec));
    expect([...reading].sort()).toEqual(
      'audio-dir beside bundle cache-dir cache-from calibration candidate contract data decoder detections engines folder from from-b held-out hyp image image-ids images inputs instances labels manifest model onnx-dir profile-from profiles ref reference sign-key trust-key truth wheel'.split(
        ' ',
      ),
    );
  });
});

describe('a file of another kind is replaced only with --force', () => {
  const kinds: readonly (readonly [string, string | Uint8Array])[] = [
    ['an ONNX model', Uint8Array.of(8, 9, 0x12, 7, 112, 121)],
    ['binary data', Uint8Array.of(0, 0, 128, 63, 0, 0, 128, 63)],
    ['an npy file', '\u0093NUMPY\u0001\0'],
    ['a ZIP archive', 'PK\u0003\u0004\0\0'],
    ['a TensorRT plan', 'ftrt\0\0\0\0'],
    ['an HTML page', '<!doctype html><html></html>'],
    ['JSON of a schema', '{ "schema": "trtforge.compare/1" }'],
    ['text', 'notes\n'],
  ];
  const declared = writers.flatMap(({ writes, ...more }) => (writes === true ? [] : [{ ...more, writes }]));

  test.each(declared)('$path $option', async ({ path, option, writes, command }) => {
    const args = [...argumentsOf(command, 'absent.onnx'), ...requiredOf(command, option)];
    const line = [...path.split(' '), ...args, option, 'there'];
    for (const [kind, content] of kinds) {
      if (writes.some((own) => own === kind)) continue;
      const bytes = typeof content === 'string' ? Buffer.from(content, 'latin1') : content;
      writeFileSync('there', bytes);
      expect([kind, await codeOf(line)]).toEqual([kind, 'TF_OUTPUT_OF_OTHER_KIND']);
      expect(await codeOf([...line, '--force'])).not.toBe('TF_OUTPUT_OF_OTHER_KIND');
      expect(readFileSync('there')).toEqual(Buffer.from(bytes));
    }
    writeFileSync('there', '');
    expect(await codeOf(line)).not.toBe('TF_OUTPUT_OF_OTHER_KIND');
  });

  test('at the moment of publishing, where what is written is known only then; its own result in silence', async () => {
    writeFileSync('policy.yaml', 'schema: trtforge.gate-policy/1\n');
    writeFileSync('result.json', '{"schema":"trtforge.compare/1","outcome":"pass"}');
    writeFileSync('other.json', '{"schema":"trtforge.bench/1"}');
    const gate = (...more: string[]) => codeOf(['gate', 'policy.yaml', 'result.json', ...more]);
    expect(await gate('-o', 'other.json')).toBe('TF_OUTPUT_OF_OTHER_KIND');
    expect(readFileSync('other.json', 'utf8')).toContain('trtforge.bench/1');
    expect(await gate('-o', 'other.json', '--force')).toBeUndefined();
    expect(readFileSync('other.json', 'utf8')).toContain('trtforge.gate/1');
    expect(await gate('-o', 'other.json')).toBeUndefined();
    expect(await gate('--junit', 'other.json')).toBe('TF_OUTPUT_OF_OTHER_KIND');
  });
});
