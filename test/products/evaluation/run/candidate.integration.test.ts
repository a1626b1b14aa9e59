import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { buildAddon } from '../../../../scripts/build-native.mjs';
import { withCandidate } from '../../../../src/products/evaluation/run/candidate.js';
import { fakeIdentity } from '../../../fakes/tensorrt/affine.js';
import { fakeEngine } from '../../../fakes/tensorrt/engine.js';
import { samplePassport } from '../../../support/sample-engine.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-candidate-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('an engine that was calibrated on images in another preparation has a warning', async () => {
  await buildAddon({ say: () => {} });
  const engine = await fakeEngine('10');
  const home = engine.install(join(folder, 'home'));
  const environment = engine.environment({ TENSORRT_HOME: home, XDG_CACHE_HOME: join(folder, 'cache') });
  const file = engine.writePlan(join(folder, 'x.engine'), { kind: 'affine', inner: 4 });
  const passport = samplePassport(readFileSync(file), fakeIdentity());
  const warningsOf = async (calibrated: string | undefined, preprocess?: string) => {
    const model = { ...passport.model, preprocess: calibrated };
    writeFileSync(`${file}.passport.json`, JSON.stringify({ ...passport, model }));
    const context = { environment, ...(preprocess !== undefined && { preprocess }) };
    const { candidate } = await withCandidate(file, {}, context, async () => undefined);
    return candidate.warnings.length;
  };
  expect(await warningsOf('yolo', 'rt-detr')).toBe(1);
  expect(await warningsOf('yolo', 'yolo')).toBe(0);
  expect(await warningsOf(undefined, 'yolo')).toBe(0);
  expect(await warningsOf('yolo')).toBe(0);
});
