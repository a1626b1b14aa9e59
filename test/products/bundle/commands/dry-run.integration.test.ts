import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { changeMeta, writeBundle } from '../../../support/bundle.js';
import { dryRunIn, refusedIn } from '../../../support/dry-run.js';
import { describeWith } from '../../../support/needs.js';
import { trtforge } from '../../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-bundle-dry-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const environment = { ...process.env, TENSORRT_CACHE_DIR: join(folder, 'store'), ARTIFACTS_BUCKET: '' };
const meta = await writeBundle(folder);
const outdir = join(folder, 'engines');

test.each([
  ['a bundle that contradicts itself', { features: { n_mels: 80 } }, [], 'TF_BUNDLE_MISMATCH'],
  ['a component that it does not have', {}, ['--only', 'join'], 'TF_USAGE'],
  ['a meta file that is none', { blank_id: 'x' }, [], 'TF_BUNDLE_META_INVALID'],
])('what ends a run before its first build ends the dry run: %s', async (_, fields, args, code) => {
  const other = mkdtempSync(join(folder, 'other-'));
  const wrong = await writeBundle(other);
  changeMeta(wrong, fields);
  const line = ['bundle', 'forge', wrong, '--outdir', join(other, 'out'), ...args];
  expect(await refusedIn(folder, line, environment)).toBe(code);
});

describeWith('toolchain', 'the plan of a bundle', () => {
  const options = ['--outdir', outdir, '--precision', 'fp16', '--target', 'tensorrt-rtx:sm_89'];
  const only = [meta, ...options, '--only', 'joint'];

  test('has every component with its identity, what runs, and the report', async () => {
    const { does, steps, resolved } = await dryRunIn(
      folder,
      ['bundle', 'forge', meta, ...options, '--stage', '--keep-temp'],
      environment,
    );
    const component = ['link', 'convert', 'build', 'keep', 'write'];
    expect(does).toEqual([...component, ...component, ...component, 'run', 'run', 'run', 'check', 'write']);
    expect(steps.filter((each) => each.does === 'run').map(({ what }) => what)).toEqual([
      'encoder',
      'predictor',
      'joint',
    ]);
    const { components, profiles } = resolved as Record<
      'components' | 'profiles',
      Record<string, { identity: string }>
    >;
    expect(new Set(Object.values(components).map(({ identity }) => identity)).size).toBe(3);
    expect(profiles).toEqual({
      encoder: expect.stringMatching(/:\d+x\d+x\d+\/\d+x\d+x\d+\//),
      predictor: expect.any(String),
      joint: expect.any(String),
    });
  });

  test('prints the profiles, and what is not checked', async () => {
    const other = mkdtempSync(join(folder, 'unchecked-'));
    const unchecked = await writeBundle(other);
    changeMeta(unchecked, { features: {} });
    const line = ['bundle', 'build', unchecked, ...options, '--dry-run'];
    const { out } = await trtforge(line, environment);
    expect(out).toMatch(/^encoder profiles +\S+:\d/m);
    expect(out).toMatch(/warning.*mel bins/);
  });

  test('and the run warn of a timing cache that tensorrt-rtx does not use', async () => {
    const line = ['bundle', 'build', ...only, '--timing-cache', join(folder, 'times.cache')];
    const { steps } = await dryRunIn(folder, line, environment);
    expect(steps.find(({ what }) => what.endsWith('times.cache'))?.skipped).toMatch(/tensorrt-rtx/);
    const { exitCode, json } = await trtforge([
      ...line,
      '--no-cache',
      '--outdir',
      join(folder, 'y'),
      '--json',
    ]);
    expect(exitCode).toBe(0);
    expect(json<{ warnings: string[] }>().warnings).toEqual([expect.stringContaining('times.cache')]);
    const none = ['bundle', 'build', ...only, '--timing-cache', 'none'];
    expect(
      (await dryRunIn(folder, none, environment)).steps.filter(({ skipped }) => skipped !== null),
    ).toHaveLength(1);
  });

  test('takes what is in its place or in the store, and states the identity that the build gets', async () => {
    const line = ['bundle', 'build', ...only];
    const before = await dryRunIn(folder, line, environment);
    expect(before.does).toEqual(['convert', 'build', 'keep', 'write', '(run)', 'write']);
    const { exitCode, json } = await trtforge([...line, '--json'], environment);
    expect(exitCode).toBe(0);
    const { components } = before.resolved as { components: Record<string, { identity: string }> };
    expect(components.joint?.identity).toBe(
      json<{ components: { forge: { build: { identity: string } } }[] }>().components[0]?.forge.build
        .identity,
    );
    const kept = await dryRunIn(folder, line, environment);
    expect(kept.does).toEqual(['take', '(run)', 'write']);
    expect(kept.steps[0]?.what).toBe(join(outdir, 'joint.engine'));
    expect((await dryRunIn(folder, [...line, '--force-rebuild'], environment)).does).toContain('build');
    const elsewhere = ['bundle', 'build', ...only, '--outdir', join(folder, 'elsewhere')];
    expect((await dryRunIn(folder, elsewhere, environment)).does).toEqual([
      'take',
      'write',
      '(run)',
      'write',
    ]);
  });
});
