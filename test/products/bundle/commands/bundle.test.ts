import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { command as build } from '../../../../src/cli/commands/build.js';
import { command as forge } from '../../../../src/cli/commands/forge.js';
import { runProgram } from '../../../../src/cli/program.js';
import { changeMeta, writeBundle } from '../../../support/bundle.js';
import { recordedConsole } from '../../../support/console.js';
import { describeWith } from '../../../support/needs.js';

const entries = [forge, build].map((command) => ({
  name: command.name,
  summary: '',
  load: async () => command,
}));
const program = { name: 'trtforge', version: '0.0.0', summary: '', entries };

const folder = mkdtempSync(join(tmpdir(), 'trtforge-bundle-command-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const meta = await writeBundle(folder);
const outdir = join(folder, 'engines');

async function trtforge(...argv: readonly string[]) {
  const recorded = recordedConsole({ ...process.env, NO_COLOR: '1' });
  const exitCode = await runProgram(program, argv, recorded.console);
  return { exitCode, out: recorded.out(), err: recorded.err() };
}

describe('trtforge forge and build, about a model or a bundle', () => {
  test.each([
    ['neither', ['build'], 'Neither a MODEL nor --meta is given.'],
    ['neither', ['forge'], 'Neither a MODEL nor --meta is given.'],
    ['both', ['forge', 'm.onnx', '--meta', meta], 'Both the model m.onnx and --meta'],
    ['no folder', ['build', '--meta', meta], '--meta needs --outdir'],
    [
      'a profile of one model',
      ['forge', '--meta', meta, '--outdir', outdir, '--profile', 'x:1'],
      'Profiles of one model',
    ],
    [
      'shapes of one model',
      ['build', '--meta', meta, '--outdir', outdir, '--shapes', 'x:1'],
      'Profiles of one model',
    ],
    [
      'one name',
      ['forge', '--meta', meta, '--outdir', outdir, '--name', 'x'],
      'One --name is given for all components',
    ],
    [
      'one output',
      ['build', '--meta', meta, '--outdir', outdir, '-o', 'x.engine'],
      'A bundle has several engines',
    ],
    ['a folder without a bundle', ['build', 'm.onnx', '--outdir', outdir], '--outdir is for bundles'],
    ['no build', ['forge', '--meta', meta, '--outdir', outdir, '--skip', 'build'], 'A bundle is built'],
    ['components of a model', ['build', 'm.onnx', '--only', 'joint'], '--only is about a bundle'],
    ['ranges of a model', ['forge', 'm.onnx', '--encoder-max-T', '512'], '--encoder-max-t is about a bundle'],
    [
      'a range of nothing',
      ['forge', '--meta', meta, '--outdir', outdir, '--joint-min-u', '0'],
      '--joint-min-u',
    ],
    [
      'a component that is not there',
      ['build', '--meta', meta, '--outdir', outdir, '--only', 'encoder,join'],
      'no component «join»',
    ],
  ])('refuse %s: %j', async (_, argv, message) => {
    const { exitCode, err } = await trtforge(...argv);
    expect(exitCode).toBe(2);
    expect(err).toContain('TF_USAGE');
    expect(err).toContain(message);
  });

  test('show what is wrong with a bundle as text and as JSON, with the report written', async () => {
    const other = mkdtempSync(join(folder, 'other-'));
    const contradicting = await writeBundle(other);
    changeMeta(contradicting, { features: { n_mels: 80 } });
    const argv = ['build', '--meta', contradicting, '--outdir', join(other, 'out'), '--quiet'];
    const text = await trtforge(...argv);
    expect(text.exitCode).toBe(2);
    expect(text.out).toMatch(/^ERROR {2}The bundle was not built/m);
    expect(text.out).toMatch(/axis 1 of «audio_signal» is 128; the meta file says 80 mel bins/);
    const json = JSON.parse((await trtforge(...argv, '--json')).out);
    expect(json).toMatchObject({
      schema: 'trtforge.bundle/1',
      ok: false,
      command: 'build',
      exitCode: 2,
      outcome: 'error',
      components: [{ status: 'not-reached' }, {}, {}],
    });
    expect([json.error, json.report]).toEqual([expect.stringContaining('TF_BUNDLE_MISMATCH'), null]);
    expect(readdirSync(join(other, 'out'))).toEqual([]);
  });
});

describeWith('toolchain', 'trtforge build --meta', () => {
  const common = [
    '--meta',
    meta,
    '--outdir',
    outdir,
    '--precision',
    'fp16',
    '--target',
    'tensorrt-rtx:sm_89',
    '--no-cache',
    '--quiet',
  ];

  test('builds, finds again what is built, and takes a flag for one component', async () => {
    const first = await trtforge('build', ...common);
    expect(first.exitCode).toBe(0);
    expect(first.out).toMatch(/^encoder {2}built in .*MiB/m);
    expect(first.out).toContain('profile   audio_signal:1x128x16/1x128x64/1x128x256');
    expect(first.out).toMatch(/^PASS {2}3 engines in/m);
    const second = JSON.parse((await trtforge('build', ...common, '--joint-max-T', '128', '--json')).out);
    expect(second.components.map((one: { status: string }) => one.status)).toEqual(['kept', 'kept', 'built']);
    expect(second.components[2].profile.max.encoder_output).toEqual([1, 32, 128]);
    expect(second.components[2].commands.build.slice(0, 2)).toEqual(['trtforge', 'build']);
    for (const { engine, passport } of second.components)
      expect([existsSync(engine), existsSync(passport)]).toEqual([true, true]);
  });

  test('forge leaves the chained check out with --skip verify', async () => {
    const { exitCode, out } = await trtforge('forge', ...common, '--skip', 'verify');
    expect(exitCode).toBe(0);
    expect(out).not.toContain('chained check');
    const checked = await trtforge('forge', ...common, '--samples', '1');
    expect(checked.out).toMatch(/chained check {2}typed models|ONNX Runtime is missing/);
    const page = readFileSync(join(outdir, 'report.html'), 'utf8');
    expect(page).toMatch(/Chained check: typed models|ONNX Runtime is missing/);
    expect(page).toContain('--samples 1');
  });
});
