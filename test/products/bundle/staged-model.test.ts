import {
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { readModel } from '../../../src/engines/identity/model-digest.js';
import { ignoreEvents } from '../../../src/events.js';
import { readComponent } from '../../../src/products/bundle/component.js';
import {
  type StagingMethod,
  stageComponent,
  stagingMethods,
} from '../../../src/products/bundle/staged-model.js';
import { scatterWeights, writeBundle } from '../../support/bundle.js';
import { refusal } from '../../support/refusal.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-stage-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
await writeBundle(folder);
const onnx = join(folder, 'encoder.onnx');
const options = { cacheFolder: join(folder, 'cache'), emit: ignoreEvents };
const digest = async (path: string) => (await readModel(path, options)).content.digest;
const locations = scatterWeights(onnx, 'weights');
const component = readComponent({ name: 'encoder', onnx });

const failing = (code: string) => () => {
  throw Object.assign(new Error(code), { code });
};

describe('staging', () => {
  test('finds every external file, also one that only an attribute of a Constant refers to', () => {
    expect(locations.length).toBeGreaterThan(60);
    expect(component.externalFiles).toEqual([...locations].sort());
    expect(component.externalFiles).toContain('weights/Constant_2337_attr__value');
  });

  test.each([
    ['hard link', 'no failure', stagingMethods],
    ['symbolic link', 'another device', [['hard link', failing('EXDEV')], ...stagingMethods.slice(1)]],
    [
      'copy',
      'no links at all',
      [['hard link', failing('EPERM')], ['symbolic link', failing('EPERM')], ...stagingMethods.slice(2)],
    ],
  ] as [StagingMethod, string, typeof stagingMethods][])(
    'uses a %s where there is %s, and the model is the same',
    async (method, _, tools) => {
      const target = join(folder, method.replace(' ', '-'));
      const staged = stageComponent(component, target, tools);
      expect(staged).toEqual({
        onnx: join(target, 'encoder', 'encoder.onnx'),
        method,
        files: locations.length + 1,
      });
      expect(await digest(staged.onnx)).toBe(await digest(onnx));
      const blob = join(target, 'encoder', locations[0]!);
      expect(lstatSync(blob).isSymbolicLink()).toBe(method === 'symbolic link');
      expect(statSync(blob).ino === statSync(join(folder, locations[0]!)).ino).toBe(method !== 'copy');
      rmSync(target, { recursive: true });
      expect(readFileSync(join(folder, locations[0]!)).length).toBeGreaterThan(0);
    },
  );

  test('reports a full disk', () => {
    const error = refusal(() =>
      stageComponent(component, join(folder, 'full'), [['copy', failing('ENOSPC')]]),
    );
    expect([error.code, error.message]).toEqual([
      'TF_WRITE_FAILED',
      expect.stringContaining('the disk is full'),
    ]);
  });

  test('follows a model that is itself a link', async () => {
    const elsewhere = join(folder, 'links');
    mkdirSync(elsewhere);
    const linked = join(elsewhere, 'encoder.onnx');
    symlinkSync(onnx, linked);
    mkdirSync(join(elsewhere, 'weights'));
    for (const location of locations) linkSync(join(folder, location), join(elsewhere, location));
    const staged = stageComponent(
      readComponent({ name: 'encoder', onnx: linked }),
      join(folder, 'staged-links'),
    );
    expect(await digest(staged.onnx)).toBe(await digest(onnx));
  });

  test('names every file that is missing', () => {
    const gone = ['weights/Constant_2337_attr__value', locations[1]!];
    for (const location of gone) unlinkSync(join(folder, location));
    const error = refusal(() => readComponent({ name: 'encoder', onnx }));
    expect(error.code).toBe('TF_ONNX_EXTERNAL_MISSING');
    expect(error.message).toMatch(/of which 2 cannot be read/);
    expect(error.details?.missing).toEqual(expect.arrayContaining(gone));
  });
});
