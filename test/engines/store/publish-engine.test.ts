import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { passportPath } from '../../../src/engines/identity/engine-name.js';
import { readPassport } from '../../../src/engines/identity/passport.js';
import { verifyEngine } from '../../../src/engines/plan/verify-engine.js';
import { copyEngine } from '../../../src/engines/store/publish-engine.js';
import { noTrust } from '../../../src/engines/store/trust.js';
import { samplePlan, writeSample } from '../../support/sample-engine.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-copy-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const folder = () => mkdtempSync(join(root, 'case-'));
const engineAt = (planPath: string) => ({ planPath, passport: readPassport(planPath), signature: null });

test('a copy is an engine of its own, and replaces what was there', async () => {
  const source = writeSample(folder());
  const target = writeSample(folder(), 'old.engine', samplePlan(5));
  await copyEngine(engineAt(source), target, noTrust);
  expect(readFileSync(target)).toEqual(samplePlan());
  expect(verifyEngine(target)).toEqual(verifyEngine(source));
});

test('a place that cannot be written is an error with its path', async () => {
  const source = writeSample(folder());
  await expect(
    copyEngine(engineAt(source), join(source, 'below-a-file', 'm.engine'), noTrust),
  ).rejects.toMatchObject({ code: 'TF_WRITE_FAILED', message: expect.stringContaining('below-a-file') });
});

test('where signatures are required, a plan that changed after its check is not published, and what was there stays', async () => {
  const source = writeSample(folder());
  const engine = engineAt(source);
  writeFileSync(source, samplePlan(1));
  const trust = { ...noTrust, required: true };
  const place = folder();
  const target = writeSample(place, 'old.engine', samplePlan(5));
  const code = 'TF_ENGINE_DIGEST_MISMATCH';
  await expect(copyEngine(engine, target, trust)).rejects.toMatchObject({ code });
  expect(readFileSync(target)).toEqual(samplePlan(5));
  expect(existsSync(passportPath(target))).toBe(true);
  expect(readdirSync(place)).toHaveLength(2);
});
