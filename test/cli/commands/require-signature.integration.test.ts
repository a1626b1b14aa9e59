import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildAddon } from '../../../scripts/build-native.mjs';
import { makeKeys } from '../../../src/engines/store/sign-engines.js';
import { readPrivateKey, signaturePath, signDocument } from '../../../src/engines/store/trust.js';
import { affineModel, fakeIdentity, manyLayers } from '../../fakes/tensorrt/affine.js';
import { fakeEngine } from '../../fakes/tensorrt/engine.js';
import { fakeTrtexec } from '../../fakes/trtexec.js';
import { verbs } from '../../support/runs.js';
import { samplePassport } from '../../support/sample-engine.js';
import { trtforge as runLine } from '../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-require-signature-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string) => join(folder, name);
const keys = makeKeys(at('team.pem'));
let environment: NodeJS.ProcessEnv = {};
let model: string;

/** A fake of TensorRT 10.3 and of its trtexec; one engine that the team signed, and the same without a signature, and without a passport. */
beforeAll(async () => {
  await buildAddon({ say: () => {} });
  const engine = await fakeEngine('10');
  mkdirSync(at('tmp'));
  environment = engine.environment({
    TENSORRT_HOME: engine.install(at('home')),
    TRTFORGE_TOOLCHAINS: at('none'),
    TRTEXEC: fakeTrtexec(folder, { version: '10.6', says: '10.3.0.26' }),
    XDG_CACHE_HOME: at('cache'),
    TMPDIR: at('tmp'),
    TRTFORGE_REQUIRE_SIGNATURE: '1',
    TRTFORGE_TRUSTED_KEYS: keys.publicKey,
  });
  engine.bench.enter(environment);
  for (const name of ['signed', 'unsigned', 'bare'].map((each) => at(`${each}.engine`)))
    engine.writePlan(name, { kind: 'affine', inner: 4, layers: manyLayers });
  const x = { min: [1, 4], opt: [8, 4], max: [64, 4], values: false };
  const identity = fakeIdentity();
  const built = samplePassport(readFileSync(at('signed.engine')), {
    ...identity,
    recipe: { ...identity.recipe, profiles: [{ x }] },
  });
  const inputs = [{ name: 'x', dtype: 'float32', shape: [null, 4] }];
  const passport = { ...built, plan: { ...built.plan, inputs } };
  for (const name of ['signed', 'unsigned'])
    writeFileSync(at(`${name}.engine.passport.json`), JSON.stringify(passport));
  const signature = signDocument(passport, readPrivateKey(keys.privateKey));
  writeFileSync(signaturePath(at('signed.engine')), JSON.stringify(signature));
  model = await affineModel();
});

async function trtforge(args: readonly string[]) {
  const { exitCode: status, json } = await runLine([...args, '--json'], environment);
  return { status, code: json().error?.code };
}

type Line = readonly [string, (engine: string) => readonly string[]];
const loading: readonly Line[] = [
  ['run', (engine) => ['run', engine, '--inputs', 'random']],
  ['bench', (engine) => ['bench', engine, '--warm-up', '10', '--duration', '0.15']],
  [
    'bench with trtexec',
    (engine) => ['bench', engine, '--with', 'trtexec', '--shapes', 'x:8x4', '--duration', '0.15'],
  ],
  ['verify', (engine) => ['verify', engine, '--against', model]],
  ['engine layers', (engine) => ['engine', 'layers', engine]],
  ['engine inspect', (engine) => ['engine', 'inspect', engine, '--memory']],
  ['explore', (engine) => ['explore', engine]],
];

describe.each(verbs(loading))('%s, where the environment requires signatures', (name, words) => {
  test('loads no engine that is unsigned, or has no passport', async () => {
    expect(await trtforge(words(at('unsigned.engine')))).toEqual({ status: 2, code: 'TF_SIGNATURE_INVALID' });
    // What verify compares with is in the passport.
    const code = name === 'verify' ? 'TF_PASSPORT_MISSING' : 'TF_SIGNATURE_INVALID';
    expect(await trtforge(words(at('bare.engine')))).toEqual({ status: 2, code });
  });

  test('loads one that a trusted key signed, and leaves no copy of it', async () => {
    expect(await trtforge(words(at('signed.engine')))).toEqual({ status: 0, code: undefined });
    expect(readdirSync(at('tmp')).filter((each) => each.startsWith('trtforge-plan-'))).toEqual([]);
  });
});

const images = join(import.meta.dirname, '../../fixtures/images');

test.each(
  verbs<Line>([
    ['eval embeddings', (engine) => [engine, '--against', engine, '--images', images]],
    ['eval classify', (engine) => [engine, '--images', images, '--truth', at('truth.tsv')]],
  ]),
)('%s loads no engine that is unsigned', async (name, words) => {
  writeFileSync(at('truth.tsv'), 'rgb.png\t1\n');
  const line = [...name.split(' '), ...words(at('unsigned.engine'))];
  expect(await trtforge(line)).toEqual({ status: 2, code: 'TF_SIGNATURE_INVALID' });
});
