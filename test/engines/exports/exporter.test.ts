import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { type ExportedFile, type Exporter, writeExport } from '../../../src/engines/exports/exporter.js';
import { folderExporter } from '../../../src/engines/exports/folder.js';
import { readPassport } from '../../../src/engines/identity/passport.js';
import { verifyEngine } from '../../../src/engines/plan/verify-engine.js';
import type { StoredEngine } from '../../../src/engines/store/store.js';
import { noTrust } from '../../../src/engines/store/trust.js';
import { sampleIdentity, samplePlan, writeSample } from '../../support/sample-engine.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-exports-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const place = () => mkdtempSync(join(root, 'case-'));

function engine(fill = 0): StoredEngine {
  const planPath = writeSample(place(), 'engine.plan', samplePlan(fill));
  const passport = readPassport(planPath);
  return { identity: passport.identity.digest, planPath, passport, signature: null, readablePath: null };
}

/** The exporter of docs/adding-an-exporter.md. */
function modelRepository(): Exporter {
  return {
    id: 'model-repository',
    *files(engines): Iterable<ExportedFile> {
      for (const { planPath, passport } of engines) {
        const { name } = passport.model;
        yield { path: `${name}/1/model.plan`, copyOf: planPath };
        // Last: a model without a configuration is not loaded.
        yield { path: `${name}/config.pbtxt`, text: `name: "${name}"\nplatform: "tensorrt_plan"\n` };
      }
    },
  };
}

test('an exporter is the list of its files: plans are copied, texts are written', async () => {
  const [one, to] = [engine(), place()];
  await writeExport(modelRepository(), [one], to, noTrust);
  const { name } = one.passport.model;
  expect(readdirSync(join(to, name), { recursive: true, encoding: 'utf8' }).sort()).toEqual([
    '1',
    join('1', 'model.plan'),
    'config.pbtxt',
  ]);
  expect(readFileSync(join(to, name, '1', 'model.plan'))).toEqual(samplePlan());
  expect(readFileSync(join(to, name, 'config.pbtxt'), 'utf8')).toContain(`name: "${name}"`);
});

test('the folder exporter keeps engines of one name apart, and each is an engine of its own', async () => {
  const [one, two, to] = [engine(1), engine(2), place()];
  const other = { ...two.passport, identity: { ...two.passport.identity, digest: 'f'.repeat(64) } };
  const paths = [...folderExporter().files([one, { ...two, passport: other }])].map(({ path }) => path);
  expect(new Set(paths).size).toBe(2);
  expect(paths[1]).toContain('~ffffffff');
  await writeExport(folderExporter(), [one], to, noTrust);
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
    await expect(writeExport(naming('first', ...paths), [], to, noTrust)).rejects.toMatchObject({
      code: 'TF_INTERNAL',
    });
    expect(existsSync(to)).toBe(false);
  });

  test('write where a file is in the way: an error with its path', async () => {
    const to = join(place(), 'file');
    writeFileSync(to, '');
    const copying: Exporter = { id: 'test', files: () => [{ path: 'a', copyOf: engine().planPath }] };
    await expect(writeExport(copying, [], to, noTrust)).rejects.toMatchObject({ code: 'TF_WRITE_FAILED' });
  });
});
