import { copyFileSync, cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Which } from '../../../src/products/fleet/which/result.js';
import { describeWith } from '../../support/needs.js';
import { writeSampleModel } from '../../support/sample-engine.js';
import { codeIn, trtforge } from '../../support/trtforge.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-swapped-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const at = (name: string) => join(root, name);

describeWith('toolchain', 'where signatures are required, an engine in the place of another', () => {
  const environment = process.env;
  const signing = () => ({
    ...environment,
    TRTFORGE_SIGNING_KEY: at('k.pem'),
    TRTFORGE_TRUSTED_KEYS: at('k.pem.pub'),
    TRTFORGE_REQUIRE_SIGNATURE: '1',
  });
  const buildWords = (store: string, precision: string) => [
    ...[at('m.onnx'), '--target', 'tensorrt-rtx:sm_89', '--precision', precision],
    ...['--batch', '1', '--cache-dir', at(store)],
  ];
  const built = async (store: string, precision: string, env: NodeJS.ProcessEnv) => {
    const { json } = await trtforge(['build', ...buildWords(store, precision), '--json'], env);
    expect(json().error).toBeUndefined();
    return json<{ engine: string; identity: string; source: string }>();
  };
  let signed: Record<'own' | 'other' | 'unsigned', string>;

  beforeAll(async () => {
    await writeSampleModel(at('m.onnx'));
    await trtforge(['cache', 'keygen', '-o', at('k.pem'), '--json'], environment);
    writeFileSync(at('machines.yaml'), 'machines: { m: { gpu: sm_89, tensorrt-rtx: 1.7.1.116 } }\n');
    signed = {
      own: (await built('store', 'as-is', signing())).engine,
      other: (await built('store', 'fp16', signing())).engine,
      unsigned: (await built('unsigned', 'as-is', environment)).engine,
    };
    cpSync(at('store'), at('whole'), { recursive: true, verbatimSymlinks: true });
  });

  const replaced = (from: string, parts: readonly string[]) => {
    for (const part of parts) copyFileSync(`${from}${part}`, `${signed.own}${part}`);
  };
  test.each<[string, string, () => void, string?]>([
    ['another signed one', 'TF_ENGINE_SIZE_MISMATCH', () => replaced(signed.other, [''])],
    [
      'garbage',
      'TF_ENGINE_SIZE_MISMATCH',
      () => writeFileSync(signed.own, 'garbage'),
      // No library is asked about what has no header of a plan.
      'TF_PLAN_INVALID',
    ],
    ['the passport of another', 'TF_PASSPORT_INVALID', () => replaced(signed.other, ['.passport.json'])],
    [
      'another signed one with its passport and signature',
      'TF_PASSPORT_INVALID',
      () => replaced(signed.other, ['', '.passport.json', '.signature.json']),
    ],
    [
      'an unsigned one with its passport',
      'TF_SIGNATURE_INVALID',
      () => replaced(signed.unsigned, ['', '.passport.json']),
    ],
  ])('%s is taken by no verb', async (_, code, swap, loading = code) => {
    rmSync(at('store'), { recursive: true });
    cpSync(at('whole'), at('store'), { recursive: true, verbatimSymlinks: true });
    swap();
    const line = async (...words: readonly string[]) => trtforge([...words, '--json'], signing());
    const run = await line('run', signed.own, '--inputs', 'random');
    expect([run.exitCode, codeIn(run.json())]).toEqual([2, loading]);

    const taken = await line('cache', 'import', signed.own, '--cache-dir', at('elsewhere'));
    expect(taken.exitCode).toBe(1);
    expect(taken.json()).toMatchObject({ engines: [], rejected: [{ code }] });

    // Of the file, and of what the store has of the model.
    const file = await line('which', signed.own, '--on', at('machines.yaml'));
    expect(file.json<Which>().machines).toMatchObject([{ loads: [{ verdict: 'no', rule: code }] }]);
    const model = await line('which', at('m.onnx'), '--on', at('machines.yaml'), '--cache-dir', at('store'));
    const [{ loads = [] } = {}] = model.json<Which>().machines;
    expect(loads).toContainEqual(expect.objectContaining({ engine: signed.other, verdict: 'yes' }));
    expect(loads.filter(({ engine }) => engine !== signed.other)).not.toContainEqual(
      expect.objectContaining({ verdict: 'yes' }),
    );

    const steps = async (...words: readonly string[]) =>
      (await line(...words, '--dry-run')).json<{ steps: readonly { does: string }[] }>().steps;
    const wish = buildWords('store', 'as-is');
    for (const words of [
      ['build', ...wish],
      ['forge', ...wish, '--run-root', at('run')],
    ])
      expect((await steps(...words)).map(({ does }) => does)).toContain('build');
  });
});
