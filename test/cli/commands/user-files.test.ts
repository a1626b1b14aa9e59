import { linkSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Command } from '../../../src/cli/command.js';
import { longName } from '../../../src/cli/option.js';
import { runProgram } from '../../../src/cli/program.js';
import { registry } from '../../../src/registry.js';
import { recordedConsole } from '../../support/console.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-user-files-'));
const home = process.cwd();
afterAll(() => rmSync(root, { recursive: true, force: true }));

let folder = root;
beforeEach(() => {
  folder = mkdtempSync(join(root, 'case-'));
  process.chdir(folder);
});
afterEach(() => process.chdir(home));

/** Every command with its words: `cache export`. */
async function everyCommand(): Promise<readonly { readonly words: string; readonly command: Command }[]> {
  const loaded = await Promise.all(registry.map(({ load }) => load()));
  return loaded.flatMap((each) =>
    'subcommands' in each
      ? each.subcommands.map((command) => ({ words: `${each.name} ${command.name}`, command }))
      : [{ words: each.name, command: each }],
  );
}

const commands = await everyCommand();
const writers = commands.flatMap(({ words, command }) =>
  Object.values(command.options).flatMap((spec) =>
    spec.writes === undefined ? [] : [{ words, option: `--${longName(spec)}`, writes: spec.writes, command }],
  ),
);

/** Runs a command line in this process; its JSON. */
async function answer(argv: readonly string[]): Promise<unknown> {
  const { console, out } = recordedConsole({ XDG_CACHE_HOME: join(folder, 'xdg') });
  const program = { name: 'trtforge', version: '0', summary: '', entries: registry };
  await runProgram(program, [...argv, '--json'], console);
  return JSON.parse(out());
}

const codeOf = async (argv: readonly string[]): Promise<unknown> => {
  const said = await answer(argv);
  return (said as { readonly error?: { readonly code: string } }).error?.code;
};

/** As many arguments as the command cannot do without, each this text. */
const argumentsOf = ({ arguments: declared = [] }: Command, text: string): string[] =>
  declared.flatMap(({ optional, writes }) => (optional === true || writes === true ? [] : [text]));

describe('an output is never an input', () => {
  test.each(writers)('$words $option, of any of its arguments, under any name', async (writer) => {
    // The ending passes for whatever an option wants to hear.
    const [input, link, hard] = ['input.npz', 'link.npz', 'hard.npz'];
    writeFileSync(input, 'precious');
    symlinkSync(input, link);
    linkSync(input, hard);
    const positional = [...argumentsOf(writer.command, input), ...(writer.words === 'record' ? [input] : [])];
    for (const output of [input, `./${input}`, link, hard]) {
      const words = [...writer.words.split(' '), ...positional];
      if (positional.length > 0)
        expect(await codeOf([...words, writer.option, output, '--force'])).toBe('TF_OUTPUT_IS_INPUT');
    }
    expect(readFileSync(input, 'utf8')).toBe('precious');
  });

  test.each(writers)('$words $option, of its configuration', async ({ words, option, command }) => {
    writeFileSync('config.npz', '{}');
    const line = [...words.split(' '), ...argumentsOf(command, 'absent.onnx'), '--config', 'config.npz'];
    expect(await codeOf([...line, option, 'config.npz', '--force'])).toBe('TF_OUTPUT_IS_INPUT');
    expect(readFileSync('config.npz', 'utf8')).toBe('{}');
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
    ['another option', ['verify', 'm.onnx', '--reference', 'in.npz', '--summary-json', 'in.npz']],
    ['several by comma', ['build', 'm.onnx', '--calibration', 'other.npz,in.npz', '-o', 'in.npz']],
  ])('that is named by %s', async (_how, line) => {
    writeFileSync('in.npz', 'precious');
    expect(await codeOf(line)).toBe('TF_OUTPUT_IS_INPUT');
    expect(readFileSync('in.npz', 'utf8')).toBe('precious');
  });

  test('a default is no file', async () => {
    writeFileSync('auto', 'notes');
    expect(await codeOf(['build', 'absent.onnx'])).not.toMatch(/TF_OUTPUT/);
  });

  test('a name that is to be given is no input', async () => {
    writeFileSync('resnet50', 'ftrt');
    expect(await codeOf(['build', 'absent.onnx', '--name', 'resnet50', '-o', 'resnet50'])).not.toMatch(
      /TF_OUTPUT/,
    );
  });

  /** An option that takes a file is in this list, or marked as one that writes: a new one has to decide. */
  test('every option that takes a file says whether it writes', () => {
    const reading = new Set<string>();
    for (const { command } of commands)
      for (const spec of Object.values(command.options))
        if (/<(file|place|out|npz|folder|name=@file|reference|json|onnx|meta)>/.test(spec.flags))
          if (spec.writes === undefined) reading.add(longName(spec));
    expect([...reading].sort()).toEqual(
      'beside cache-dir cache-from calibration contract convert decoder folder inputs layers-from meta model onnx-dir profiles reference root sign-key swap trust-key wheel'.split(
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

  test.each(declared)('$words $option', async ({ words, option, writes, command }) => {
    const line = [...words.split(' '), ...argumentsOf(command, 'absent.onnx'), option, 'there'];
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
