import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import {
  type Exporter,
  flatExporter,
  folderExporter,
  writeExport,
} from '../../../src/engines/exports/exporter.js';
import { readPassport } from '../../../src/engines/identity/passport.js';
import { verifyEngine } from '../../../src/engines/plan/verify-engine.js';
import type { StoredEngine } from '../../../src/engines/store/store.js';
import { noTrust } from '../../../src/engines/store/trust.js';
import { minimal } from '../../support/minimal.js';
import { sampleIdentity, samplePlan, writeSample } from '../../support/sample-engine.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-exports-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const place = () => mkdtempSync(join(root, 'case-'));

function engine(fill = 0): StoredEngine {
  const planPath = writeSample(place(), 'engine.plan', samplePlan(fill));
  const passport = readPassport(planPath);
  return { identity: passport.identity.digest, planPath, passport, signature: null, readablePath: null };
}

test('the exporter of the documentation is the one that is tested', () => {
  const [, documented] = /```ts\n(.*?)```/s.exec(readFileSync('docs/adding-an-exporter.md', 'utf8')) ?? [];
  const tested = readFileSync('test/support/minimal.ts', 'utf8').replaceAll('../../src/', '../../');
  expect(documented).toBe(tested);
});

test('an exporter is the list of its files: plans are copied, texts are written', async () => {
  const [{ passport, ...one }, to] = [engine(), place()];
  const tensors = {
    inputs: [{ name: 'x', dtype: 'float16', shape: [null, 64] }],
    outputs: [{ name: 'y', dtype: 'int64', shape: [1] }],
  };
  const described = { ...one, passport: { ...passport, plan: { ...passport.plan, ...tensors } } };
  const files = await writeExport(minimal, [described], to, { trust: noTrust });
  const { name } = passport.model;
  expect(files.map(({ path }) => path)).toEqual([`${name}/1/model.plan`, `${name}/config.pbtxt`]);
  expect(readFileSync(join(to, name, '1', 'model.plan'))).toEqual(samplePlan());
  const configuration = readFileSync(join(to, name, 'config.pbtxt'), 'utf8');
  expect(configuration).toContain('{ name: "x" data_type: TYPE_FP16 dims: [ -1, 64 ] }');
  expect(configuration).toContain('{ name: "y" data_type: TYPE_INT64 dims: [ 1 ] }');
});

test('the engines of a run root lie side by side, and a plan that is moved leaves its place', async () => {
  const [one, two, to] = [engine(1), engine(2), place()];
  await writeExport(flatExporter, [one], to, { trust: noTrust });
  await writeExport(flatExporter, [two], to, { trust: noTrust, move: true });
  const { name } = two.passport;
  expect(readdirSync(to).sort()).toEqual([name, `${name}.passport.json`]);
  expect(readFileSync(join(to, name))).toEqual(samplePlan(2));
  expect([existsSync(one.planPath), existsSync(two.planPath)]).toEqual([true, false]);
});

test('the folder exporter keeps engines of one name apart, and each is an engine of its own', async () => {
  const [one, two, to] = [engine(1), engine(2), place()];
  const other = { ...two.passport, identity: { ...two.passport.identity, digest: 'f'.repeat(64) } };
  const paths = [...folderExporter.files([one, { ...two, passport: other }])].map(({ path }) => path);
  expect(new Set(paths).size).toBe(2);
  expect(paths[1]).toContain('~ffffffff');
  await writeExport(folderExporter, [one], to, { trust: noTrust });
  expect(verifyEngine(join(to, paths[0] ?? '')).identity.document).toEqual(sampleIdentity());
});

describe('what an exporter may not do', () => {
  const naming = (...paths: readonly string[]): Exporter => ({
    id: 'test',
    files: () => paths.map((path) => ({ path, text: 'x' })),
  });
  test.each([
    ['leave the folder', ['../outside']],
    ['leave it further in', ['a/../../outside']],
    ['name an absolute path', ['/outside']],
    ['name a file twice', ['a', 'a']],
  ])('%s: nothing is written', async (_what, paths) => {
    const to = join(place(), 'out');
    await expect(writeExport(naming('first', ...paths), [], to, { trust: noTrust })).rejects.toMatchObject({
      code: 'TF_INTERNAL',
    });
    expect(existsSync(to)).toBe(false);
  });

  test('write where a file is in the way: an error with its path', async () => {
    const to = join(place(), 'file');
    writeFileSync(to, '');
    const copying: Exporter = { id: 'test', files: () => [{ path: 'a', copyOf: engine().planPath }] };
    await expect(writeExport(copying, [], to, { trust: noTrust })).rejects.toMatchObject({
      code: 'TF_WRITE_FAILED',
    });
  });
});
