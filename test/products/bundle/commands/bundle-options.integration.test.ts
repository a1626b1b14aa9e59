import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { BundleReport } from '../../../../src/products/bundle/result.js';
import { writeBundle } from '../../../support/bundle.js';
import { describeWith } from '../../../support/needs.js';
import { trtforge } from '../../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-bundle-options-'));
const at = (...names: readonly string[]) => join(folder, ...names);
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let meta: string;

/** The models lie in another folder than the meta file. */
beforeAll(async () => {
  meta = await writeBundle(folder);
  mkdirSync(at('models'));
  for (const name of readdirSync(folder).filter((each) => /\.onnx/.test(each)))
    renameSync(at(name), at('models', name));
  writeFileSync(
    at('profiles.yaml'),
    'components: { encoder: , predictor: , joint: { symbols: { time: 16/32/48 } } }',
  );
});

describeWith('toolchain', 'a bundle whose models lie elsewhere', () => {
  test.each([
    ['build', ['--only', 'joint']],
    ['forge', ['--seed', '3', '--samples', '1', '--min-agreement', '0.9']],
  ] as const)('is made by %s as requested', async (verb, more) => {
    const outdir = at(verb);
    const line = [
      'bundle',
      verb,
      meta,
      '--onnx-dir',
      at('models'),
      '--outdir',
      outdir,
      '--target',
      'tensorrt-rtx:sm_89',
    ];
    const told = [
      '--profiles',
      at('profiles.yaml'),
      '--stage',
      '--keep-temp',
      '--memory-budget',
      '2G',
      '--allow-host-code',
    ];
    const { exitCode, err, json } = await trtforge([
      ...line,
      '--precision',
      'fp16',
      '--no-cache',
      ...told,
      ...more,
      '--json',
    ]);
    expect(exitCode, err).toBe(0);
    const { components, checks, not_checked } = json<BundleReport>();
    const joint = components.find(({ component }) => component === 'joint');
    expect(joint?.profile.max.encoder_output).toEqual([1, 32, 48]);
    expect(readdirSync(outdir).filter((name) => name.startsWith('staging-'))).toHaveLength(1);
    if (verb === 'forge')
      expect(checks, not_checked.join(' ')).toMatchObject([{ seed: 3, samples: 1, min_agreement: 0.9 }]);
  });
});
