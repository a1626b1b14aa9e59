import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import * as is from '../../src/base/options/kinds.js';
import { parseShapes } from '../../src/base/options/readers.js';
import { type Command, type CommandResult, defineCommand, type Product } from '../../src/cli/command.js';
import { choice, flag, option, text } from '../../src/cli/option.js';
import { runProgram } from '../../src/cli/program/program.js';
import { TrtforgeError } from '../../src/errors.js';
import { recordedConsole } from '../fakes/console.js';
import { trtforge } from '../support/trtforge.js';

interface Echo extends CommandResult {
  readonly inputs: readonly string[];
  readonly options: unknown;
}

const echo = defineCommand({
  examples: ['trtforge echo a --level 3'],
  arguments: [{ name: 'FILES', describe: 'any files', many: true, optional: true }],
  options: {
    level: option({
      flags: '--level <n>',
      describe: 'how much',
      parse: is.whole(0, 5).parse,
      default: 2,
      env: 'ECHO_LEVEL',
    }),
    shapes: option({
      flags: '--shapes <shapes>',
      describe: 'smallest',
      parse: parseShapes,
      repeat: true,
    }),
    precision: choice({ flags: '--precision <type>', describe: 'type', choices: ['fp16', 'bf16'] }),
    noCache: flag({ flags: '--no-cache', describe: 'do not look' }),
    dry: flag({ flags: '--dry-run', describe: 'only say' }),
    name: text({ flags: '--name <name>', describe: 'name' }),
    library: text({ flags: '--library <file>', describe: 'code', env: 'ECHO_LIBRARY', trust: true }),
    rare: text({ flags: '--rare <text>', describe: 'seldom needed', advanced: true }),
    filed: text({ flags: '--filed <text>', describe: 'in a file', configOnly: true, env: 'ECHO_FILED' }),
  },
  schema: async () => z.unknown(),
  run: async (inputs, options): Promise<Echo> => ({ schema: 'trtforge.echo/1', inputs, options }),
  render: (result, output) => output.line(`echo ${result.inputs.join(' ')}`),
});

const saving = defineCommand({
  arguments: [{ name: 'FILE', describe: 'any file' }],
  options: {
    place: text({
      flags: '--place <file>',
      describe: 'where',
      required: '--place b',
      env: 'ECHO_PLACE',
      writes: true,
    }),
  },
  schema: async () => z.unknown(),
  run: async (_inputs, options) => ({ schema: 'trtforge.save/1', options }),
  render: () => {},
});

const failing = defineCommand({
  arguments: [{ name: 'HOW', describe: 'gate, known, unknown' }],
  options: {},
  schema: async () => z.unknown(),
  run: async ([how]) => {
    if (how === 'known')
      throw new TrtforgeError('TF_FILE_NOT_FOUND', 'x.onnx does not exist.', { details: { path: 'x.onnx' } });
    if (how === 'unknown') throw new Error('boom');
    return { schema: 'trtforge.fail/1', exitCode: 1 as const };
  },
  render: (_result, output) => output.line('FAIL'),
});

const verb = (path: string, summary: string, command: Command) => ({
  path,
  summary,
  group: 'Machine' as const,
  load: async () => command,
});
const product: Product = {
  name: 'test',
  verbs: [
    verb('echo', 'returns its options', echo),
    verb('save', 'needs an option', saving),
    verb('fail', 'fails in a chosen way', failing),
    verb('box open', 'opens the box', echo),
  ],
  families: { box: 'a family' },
};
const program = { name: 'trtforge', version: '9.9.9', summary: 'test', products: [product] };

async function run(line: string, environment: NodeJS.ProcessEnv = {}) {
  const recorded = recordedConsole(environment);
  const argv = line.split(' ').filter((word) => word !== '');
  const exitCode = await runProgram(program, argv, recorded.console);
  return { exitCode, out: recorded.out(), err: recorded.err() };
}

/** The options a command got, after JSON. */
async function optionsOf(line: string, environment: NodeJS.ProcessEnv = {}) {
  const { out } = await run(`${line} --json`, environment);
  return (JSON.parse(out) as { options: Record<string, unknown> }).options;
}

let folder: string;
let before: string;
beforeEach(() => {
  before = process.cwd();
  folder = mkdtempSync(join(tmpdir(), 'trtforge-cli-'));
  process.chdir(folder);
});
afterEach(() => {
  process.chdir(before);
  rmSync(folder, { recursive: true });
});

describe('the command line', () => {
  test('--version prints the version and nothing else', async () => {
    expect(await run('--version')).toEqual({ exitCode: 0, out: '9.9.9', err: '' });
  });

  test("--help lists every command; a command's help lists its options, defaults and examples", async () => {
    const top = await run('--help');
    expect(top.exitCode).toBe(0);
    for (const { path, summary } of product.verbs)
      if (!path.includes(' ')) expect(top.out).toContain(summary);
    expect(top.out).toContain('a family');
    const { out, exitCode } = await run('echo --help');
    expect(exitCode).toBe(0);
    expect(out).toContain('--level <n>');
    expect(out).toContain('default 2; environment ECHO_LEVEL');
    expect(out).toContain('one of fp16, bf16');
    expect(out).toContain('trtforge echo a --level 3');
    expect(out).not.toContain('--rare');
    expect(out).not.toContain('--json ');
    const all = await run('echo --help all');
    expect(all).toMatchObject({ exitCode: 0, out: expect.stringContaining('--rare') });
    expect(all.out).toContain('--json ');
    expect(`${out}${all.out}`).not.toContain('--filed');
  });

  test('a key of the config file that is no option may be one written wrongly', async () => {
    writeFileSync('trtforge.config.yaml', 'precison: fp16\n');
    const { exitCode, err } = await run('echo');
    expect(exitCode).toBe(2);
    expect(err).toContain('"precison", which is not an option. Did you mean "precision"?');
  });

  test.each(['echo', 'box', 'box open'])('help %s shows what %s --help shows', async (command) => {
    const shown = await run(`${command} --help`);
    expect(await run(`help ${command}`)).toEqual(shown);
    expect(shown).toMatchObject({ exitCode: 0, out: expect.stringContaining(`Usage: trtforge ${command}`) });
  });

  test.each([
    ['--json', null],
    ['box --json', 'box'],
  ])('an option before any command: %s', async (line, command) => {
    const { exitCode, out } = await run(line);
    expect(exitCode).toBe(2);
    expect(JSON.parse(out)).toMatchObject({
      command,
      error: { code: 'TF_USAGE', message: 'There is no command before --json.' },
    });
  });

  test('stopped before its work began, it answers like one stopped later', async () => {
    const { console, out } = recordedConsole();
    expect(await runProgram(program, ['echo', 'a', '--json'], console, AbortSignal.abort())).toBe(4);
    expect(JSON.parse(out())).toMatchObject({
      ok: false,
      exitCode: 4,
      command: 'echo',
      error: { code: 'TF_CANCELLED' },
    });
  });

  test('no command at all shows the help and is bad usage', async () => {
    const { exitCode, err } = await run('');
    expect(exitCode).toBe(2);
    expect(err).toContain('Usage: trtforge');
    expect(JSON.parse((await run('--json')).out)).toMatchObject({
      ok: false,
      exitCode: 2,
      error: { code: 'TF_USAGE' },
    });
  });

  test.each([
    ['engine inspect d.plam', 'engine inspect d.plan'],
    ['inspect ./yolo.onxx', 'inspect yolo.onnx'],
    ['yolo.onxx', 'inspect yolo.onnx'],
    ['yolo.onnx', 'inspect yolo.onnx'],
    ['d.plan --json', 'engine inspect d.plan'],
  ])('%s: the remedy names the file that is there', async (line, better) => {
    for (const file of ['yolo.onnx', 'd.plan', 'engine.plan']) writeFileSync(file, '');
    const { exitCode, err } = await trtforge(line.split(' '));
    expect(exitCode).toBe(2);
    expect(err).toMatch(new RegExp(`Run: trtforge ${better}$`));
  });

  test.each([
    ['inspect m.onnx --nodes --json', '--nodes'],
    ['build m.onnx --batch --json', '--batch'],
    ['build m.onnx --minShapes --dry-run --json', '--minShapes'],
    ['verify a.onnx --against --atol=1e-3 --json', '--against'],
    ['cache ls --log-file --quiet --json', '--log-file'],
  ])('"%s": what has no value takes no option for it', async (line, option) => {
    const { exitCode, json } = await trtforge(line.split(' '));
    expect([exitCode, json().error]).toMatchObject([2, { code: 'TF_USAGE', details: { option } }]);
  });

  test.each([
    ['build m.onnx --refit w1,w2 --json', '--refit'],
    ['build --refit w1,w2 m.onnx --json', '--refit'],
    ['build m.onnx --refit=w1,w2 --json', '--refit'],
    ['build m.onnx --quiet=yes --json', '--quiet'],
  ])('"%s": a flag takes no value', async (line, flag) => {
    writeFileSync('m.onnx', '');
    const { exitCode, json } = await trtforge(line.split(' '));
    const { code, message, remedy } = json().error ?? {};
    expect([exitCode, code]).toEqual([2, 'TF_USAGE']);
    expect(message).toContain(`${flag} takes no value`);
    expect(remedy).not.toContain('--output');
  });

  test('an option is a value behind "="', async () => {
    expect(await optionsOf('echo --name=--dry-run')).toMatchObject({ name: '--dry-run', dry: false });
    expect(await optionsOf('echo --name --other')).toMatchObject({ name: '--other' });
  });

  test.each([
    ['ecko', 'Did you mean echo?'],
    ['echo --levle 3', 'Did you mean --level?'],
    ['echo --level 9', '--level: "9" is not a whole number from 0 to 5.'],
    ['echo --level', 'argument missing'],
    ['echo --precision fp61', '"fp61" is not one of fp16, bf16'],
    ['echo --shapes x:1x', '"x:1x" is not a shape'],
    ['box', 'Usage: trtforge box'],
    ['box opne', 'Did you mean open?'],
    ['ecko --help', 'Did you mean echo?'],
    ['help ecko', 'Did you mean echo?'],
    ['box opne --help', 'Did you mean open?'],
    ['help box opne', 'Did you mean open?'],
    ['fail', "Missing required argument 'HOW'"],
    ['fail gate more', 'takes HOW only'],
    ['save a c', 'Run: trtforge save a --place c'],
  ])('"%s" stops with exit 2', async (line, said) => {
    const { exitCode, err, out } = await run(line);
    expect(exitCode).toBe(2);
    expect(err).toContain(said);
    expect(out).toBe('');
  });
});

describe('options', () => {
  test('are parsed, typed and repeated', async () => {
    const options = await optionsOf(
      'echo a b --level 3 --shapes x:1x2 --shapes y:3 --no-cache --precision bf16',
    );
    expect(options).toEqual({
      level: 3,
      shapes: [[{ name: 'x', dims: [1, 2] }], [{ name: 'y', dims: [3] }]],
      precision: 'bf16',
      noCache: true,
      dry: false,
    });
  });

  test('come from flags over the file over the environment over the default', async () => {
    expect((await optionsOf('echo')).level).toBe(2);
    expect((await optionsOf('echo', { ECHO_LEVEL: '4' })).level).toBe(4);
    writeFileSync('trtforge.config.yaml', 'level: 5\nno-cache: true\nshapes: [x:1x2, y:3]\n');
    const options = await optionsOf('echo', { ECHO_LEVEL: '4' });
    expect(options).toMatchObject({ level: 5, noCache: true });
    expect(options.shapes).toHaveLength(2);
    expect((await optionsOf('echo --level 1', { ECHO_LEVEL: '4' })).level).toBe(1);
  });

  test('that a command needs come from the command line, the file or the environment; without one it does not run', async () => {
    const { exitCode, out } = await run('save a --json');
    expect([exitCode, JSON.parse(out).error]).toMatchObject([
      2,
      { code: 'TF_USAGE', remedy: 'Run: trtforge save a --json --place b' },
    ]);
    expect((await run('save a --print-config')).exitCode).toBe(0);
    expect(await optionsOf('save a --place b')).toEqual({ place: 'b' });
    expect(await optionsOf('save a', { ECHO_PLACE: 'c' })).toEqual({ place: 'c' });
    writeFileSync('trtforge.config.yaml', 'place: d\n');
    expect(await optionsOf('save a')).toEqual({ place: 'd' });
  });

  test('in a section of the file belong to that command only', async () => {
    writeFileSync(
      'trtforge.config.json',
      JSON.stringify({ level: 1, echo: { level: 3 }, 'box open': { level: 4 } }),
    );
    expect((await optionsOf('echo')).level).toBe(3);
    expect((await optionsOf('box open')).level).toBe(4);
    expect((await run('fail gate')).exitCode).toBe(1);
  });

  test('in the file that no verb takes are an error that names file and key', async () => {
    writeFileSync('trtforge.config.yaml', 'levle: 5\n');
    const { exitCode, err } = await run('fail gate');
    expect(exitCode).toBe(2);
    expect(err).toContain('has the key "levle"');
    writeFileSync('trtforge.config.yaml', 'level: high\n');
    expect((await run('echo')).err).toContain('trtforge.config.yaml: level: "high" is not a whole number');
    writeFileSync('trtforge.config.yaml', 'level: [\n');
    expect((await run('echo')).err).toContain('TF_CONFIG_INVALID');
  });

  test.each(['library: evil.so\n', 'echo:\n  library: evil.so\n', '"library": ""\n'])(
    'that decide what code runs come from no file that was only found: %j',
    async (content) => {
      writeFileSync('trtforge.config.yaml', content);
      const { out, exitCode } = await run('echo --json');
      const { error } = JSON.parse(out) as { error: { code: string; message: string; remedy: string } };
      expect([exitCode, error.code]).toEqual([2, 'TF_CONFIG_INVALID']);
      expect(error.message).toContain('library');
      expect(error.remedy).toContain('--config ./trtforge.config.yaml');
      expect((await run('echo --library own.so')).exitCode).toBe(2);
      expect((await optionsOf('echo --config ./trtforge.config.yaml')).library).toBe(
        content.includes('evil') ? 'evil.so' : '',
      );
    },
  );

  test.each(['../out', '/tmp/out', 'link', 'link/out', 'dangling'])(
    'that write to %s, outside of the folder, come from no file that was only found',
    async (place) => {
      symlinkSync('..', 'link');
      symlinkSync('../nothing', 'dangling');
      writeFileSync('trtforge.config.yaml', `save: {place: ${place}}\n`);
      const { out, exitCode } = await run('save a --json');
      expect([exitCode, JSON.parse(out).error.code]).toEqual([2, 'TF_CONFIG_INVALID']);
      expect(await optionsOf('save a --config trtforge.config.yaml')).toEqual({ place });
    },
  );

  test('that decide what code runs come from flags and the environment', async () => {
    writeFileSync('trtforge.config.yaml', 'level: 5\n');
    expect((await optionsOf('echo', { ECHO_LIBRARY: 'own.so' })).library).toBe('own.so');
    expect((await optionsOf('echo --library own.so')).library).toBe('own.so');
  });

  test('come from one found file: two are an error that names both', async () => {
    writeFileSync('trtforge.config.yaml', 'level: 5\n');
    writeFileSync('trtforge.config.json', '{"level": 4}');
    const { exitCode, err } = await run('echo');
    expect([exitCode, err.includes('TF_CONFIG_INVALID')]).toEqual([2, true]);
    expect(err).toMatch(/trtforge\.config\.json.*trtforge\.config\.yaml/);
    expect((await optionsOf('echo --config trtforge.config.yaml')).level).toBe(5);
  });

  test('are shown as resolved by --print-config, in the form the file takes', async () => {
    const { out, exitCode } = await run('echo --level 4 --shapes x:1x2 --print-config');
    expect(exitCode).toBe(0);
    writeFileSync('trtforge.config.yaml', out);
    expect(await optionsOf('echo')).toMatchObject({ level: 4, shapes: [[{ name: 'x', dims: [1, 2] }]] });
  });
});

describe('results', () => {
  test('are one JSON object with --json, text without', async () => {
    expect(JSON.parse((await run('echo a --json')).out)).toMatchObject({
      schema: 'trtforge.echo/1',
      ok: true,
      exitCode: 0,
      command: 'echo',
      inputs: ['a'],
    });
    expect((await run('echo a')).out).toBe('echo a');
  });

  test('carry their own exit code', async () => {
    expect((await run('fail gate')).exitCode).toBe(1);
    expect(JSON.parse((await run('fail gate --json')).out)).toMatchObject({ ok: false, exitCode: 1 });
  });

  test('an error has a code, a message and a remedy, as text and as JSON', async () => {
    const shown = await run('fail known');
    expect(shown).toMatchObject({ exitCode: 2, out: '' });
    expect(shown.err).toBe('error TF_FILE_NOT_FOUND x.onnx does not exist.\n  → Check the path.');
    expect(JSON.parse((await run('fail known --json')).out)).toEqual({
      schema: 'trtforge.error/1',
      ok: false,
      exitCode: 2,
      command: 'fail',
      error: {
        code: 'TF_FILE_NOT_FOUND',
        message: 'x.onnx does not exist.',
        remedy: 'Check the path.',
        details: { path: 'x.onnx' },
      },
    });
  });

  test('bad usage is JSON too when --json was asked for', async () => {
    const { out, exitCode } = await run('echo --levle 3 --json');
    expect(exitCode).toBe(2);
    expect(JSON.parse(out)).toMatchObject({ ok: false, error: { code: 'TF_USAGE' } });
  });

  test('an unknown error is our own fault: exit 5, the stack on request', async () => {
    expect(await run('fail unknown')).toMatchObject({ exitCode: 5 });
    expect((await run('fail unknown', { TRTFORGE_DEBUG: '1' })).err).toContain('program.integration.test.ts');
  });
});
