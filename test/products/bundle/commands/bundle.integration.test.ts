import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { forgeBundle } from '../../../../src/products/bundle/forge-bundle.js';
import type { BundleReport } from '../../../../src/products/bundle/result.js';
import { changeMeta, writeBundle } from '../../../support/bundle.js';
import { describeWith } from '../../../support/needs.js';
import { trtforge as run } from '../../../support/trtforge.js';

const main = fileURLToPath(new URL('../../../../dist/main.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'trtforge-bundle-command-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const meta = await writeBundle(folder);
const outdir = join(folder, 'engines');

const bundle = (...args: readonly string[]) => run(['bundle', ...args], { ...process.env, NO_COLOR: '1' });

describe('trtforge bundle build and bundle forge', () => {
  test.each([
    ['no meta file', ['build'], 'META'],
    ['no meta file', ['forge'], 'META'],
    ['no folder', ['build', meta], '--outdir'],
    ['a profile of one model', ['forge', meta, '--outdir', outdir, '--profile', 'x:1'], '--profile'],
    ['shapes of one model', ['build', meta, '--outdir', outdir, '--shapes', 'x:1'], '--shapes'],
    ['one name', ['forge', meta, '--outdir', outdir, '--name', 'x'], '--name'],
    ['one output', ['build', meta, '--outdir', outdir, '-o', 'x.engine'], '-o'],
    ['a range of nothing', ['forge', meta, '--outdir', outdir, '--batch', '0'], '--batch'],
    [
      'a component that is not there',
      ['build', meta, '--outdir', outdir, '--only', 'encoder,join'],
      'no component "join"',
    ],
  ])('reject %s: %j', async (_, args, message) => {
    const { exitCode, err } = await bundle(...args);
    expect(exitCode).toBe(2);
    expect(err).toContain('TF_USAGE');
    expect(err).toContain(message);
  });

  test('show what is wrong with a bundle as text and as JSON, with the report written', async () => {
    const other = mkdtempSync(join(folder, 'other-'));
    const contradicting = await writeBundle(other);
    changeMeta(contradicting, { features: { n_mels: 80 } });
    const argv = ['build', contradicting, '--outdir', join(other, 'out'), '--quiet'];
    const text = await bundle(...argv);
    expect(text.exitCode).toBe(2);
    expect(text.out).toMatch(/^ERROR {2}The bundle was not built/m);
    expect(text.out).toMatch(/axis 1 of "audio_signal" is 128; the meta file states 80 mel bins/);
    const json = JSON.parse((await bundle(...argv, '--json')).out);
    expect(json).toMatchObject({
      schema: 'trtforge.bundle/1',
      ok: false,
      command: 'bundle build',
      exitCode: 2,
      outcome: 'error',
      components: [{ status: 'not-reached' }, {}, {}],
    });
    expect([json.error, json.report]).toEqual([expect.stringContaining('TF_BUNDLE_MISMATCH'), null]);
    expect(existsSync(join(other, 'out'))).toBe(false);
  });
});

describeWith('toolchain', 'trtforge bundle with tensorrt-rtx', () => {
  const common = [
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

  test('builds, finds again what is built, and takes ranges of one component', async () => {
    const first = await bundle('build', ...common);
    expect(first.exitCode).toBe(0);
    expect(first.out).toMatch(/^encoder {2}built in .*MiB/m);
    expect(first.out).toContain('profile   audio_signal:1x128x16/1x128x64/1x128x256');
    expect(first.out).toMatch(/^BUILT {2}3 engines in/m);
    const profiles = join(folder, 'profiles.yaml');
    writeFileSync(
      profiles,
      "components: { encoder: , predictor: , joint: { inputs: { encoder_output: '1x32x16/1x32x64/1x32x128' } } }",
    );
    const second = JSON.parse((await bundle('build', ...common, '--profiles', profiles, '--json')).out);
    expect(second.components.map((one: { status: string }) => one.status)).toEqual(['kept', 'kept', 'built']);
    expect(second.components[2].profile.max.encoder_output).toEqual([1, 32, 128]);
    expect(second.repeat).toMatch(/^trtforge bundle build .* --profiles \S+ --json$/);
    for (const { engine, forge } of second.components)
      expect([existsSync(engine), existsSync(forge.passport)]).toEqual([true, true]);
  });

  const sizes = (profile: { min: object; opt: object; max: object }, input: string) =>
    [profile.min, profile.opt, profile.max].map((shapes) => (shapes as Record<string, unknown>)[input]);

  test('takes a batch and dimensions for every component, by option, by configuration file and in a call', async () => {
    const config = join(folder, 'batch.yaml');
    writeFileSync(config, 'batch: 1/1/2\nbundle build:\n  dim: time=16/32/512\n');
    const lines = [
      ['build', ...common, '--only', 'joint', '--batch', '1/2/4', '--dim', 'time=16/64/512'],
      ['build', ...common, '--only', 'joint', '--config', config],
      ['forge', ...common, '--batch', '1/1/2', '--dim', 'time=16/32/128', '--samples', '1'],
    ];
    const made = [];
    for (const line of lines) {
      const { exitCode, json } = await bundle(...line, '--json');
      expect(exitCode).toBe(0);
      made.push(json<BundleReport>().components.find(({ component }) => component === 'joint')!.profile);
    }
    expect(made.map((profile) => sizes(profile, 'encoder_output'))).toEqual([
      [
        [1, 32, 16],
        [2, 32, 64],
        [4, 32, 512],
      ],
      [
        [1, 32, 16],
        [1, 32, 32],
        [2, 32, 512],
      ],
      [
        [1, 32, 16],
        [1, 32, 32],
        [2, 32, 128],
      ],
    ]);
    const request = { meta, outdir, target: 'tensorrt-rtx:sm_89', store: false, only: ['joint'] } as const;
    const dims = { time: '16/32/96' };
    const called = await forgeBundle({ ...request, batch: '1/2/3', dims, check: false });
    expect([called.outcome, called.checks]).toEqual(['built', []]);
    expect(
      sizes(called.components.find(({ component }) => component === 'joint')!.profile, 'encoder_output'),
    ).toEqual([
      [1, 32, 16],
      [2, 32, 32],
      [3, 32, 96],
    ]);
  });

  test.each([
    [
      ['--encoder-max-T', '512', '--encoder-opt-t', '32'],
      { encoder: 'audio_signal:1x128x16/1x128x32/1x128x512' },
    ],
    [
      ['--predictor-max-u', '4'],
      { predictor: 'y:1x1/1x1/1x4', joint: 'encoder_output:1x32x16/1x32x64/1x32x256' },
    ],
    [['--joint-min-T=300'], { joint: 'encoder_output:1x32x300,' }],
    [['--min-batch', '1', '--max-batch', '4'], { encoder: 'audio_signal:1x128x16/1x128x64/4x128x256' }],
  ])('%j of the script is the line that its remedy prints', async (flags, profiles) => {
    const { json } = await bundle('build', ...common, ...flags, '--dry-run', '--json');
    const { remedy = '' } = json().error ?? {};
    const line = /^Run: (.*)$/.exec(remedy)![1]!.replace('trtforge ', `${process.execPath} ${main} `);
    const { stdout, stderr } = spawnSync('sh', ['-c', line], { cwd: folder, encoding: 'utf8' });
    const { resolved } = JSON.parse(stdout || `"${stderr}"`) as {
      readonly resolved: { readonly profiles: object };
    };
    for (const [component, range] of Object.entries(profiles))
      expect(resolved.profiles).toMatchObject({ [component]: expect.stringContaining(range) });
  });

  test('forge checks by default, as command and as call', async () => {
    const request = { meta, outdir, precision: 'fp16', target: 'tensorrt-rtx:sm_89', store: false } as const;
    const withoutTimes = (checks: BundleReport['checks']) => checks.map((check) => ({ ...check, ms: 0 }));
    const { checks, outcome } = await forgeBundle(request);
    expect([outcome, checks.map(({ samples }) => samples)]).toEqual(['pass', [3]]);
    const { json } = await bundle('forge', ...common, '--json');
    expect(withoutTimes(json<BundleReport>().checks)).toEqual(withoutTimes(checks));
  });

  test('forge leaves the chained check out with --no-check', async () => {
    const { exitCode, out } = await bundle('forge', ...common, '--no-check');
    expect(exitCode).toBe(0);
    expect(out).not.toContain('chained check');
    const checked = await bundle('forge', ...common, '--samples', '1');
    expect(checked.out).toMatch(/chained check {2}typed models|ONNX Runtime is missing/);
    const page = readFileSync(join(outdir, 'report.html'), 'utf8');
    expect(page).toMatch(/Chained check: typed models|ONNX Runtime is missing/);
    expect(page).toContain('--samples 1');
  });
});
