import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, expect, test, vi } from 'vitest';
import { forge } from '../../src/forge/forge.js';
import { dynamicModel } from '../native/tiny-models.js';
import { describeWith } from '../support/needs.js';

/** What this process opened; builder and ONNX Runtime open files in processes of their own. */
const opened = vi.hoisted((): string[] => []);
vi.mock('node:fs', async (load) => {
  const fs = await load<typeof import('node:fs')>();
  const noting =
    <T extends unknown[], R>(open: (...args: T) => R) =>
    (...args: T): R => {
      opened.push(String(args[0]));
      return open(...args);
    };
  return {
    ...fs,
    openSync: noting(fs.openSync),
    readFileSync: noting(fs.readFileSync as (path: string) => Buffer),
    copyFileSync: noting(fs.copyFileSync),
  };
});

const folder = mkdtempSync(join(tmpdir(), 'trtforge-opened-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const timesOpened = (path: string): number => opened.filter((each) => resolve(each) === resolve(path)).length;

describeWith('toolchain', 'forge with a build', (toolchain) => {
  describeWith('onnxruntime', 'and a comparison', () => {
    test('opens the original and the typed copy at most three times each', async () => {
      const model = dynamicModel(folder);
      const result = await forge({
        model,
        precision: 'fp16',
        profiles: ['x:1x64/8x64/32x64'],
        target: 'tensorrt-rtx:sm_89',
        toolchain,
        store: join(folder, 'store'),
        runRoot: join(folder, 'run'),
      });
      expect(result.verdict.outcome).toBe('pass');
      for (const path of [model, result.conversion!.output]) {
        const times = timesOpened(path);
        expect(times, path).toBeGreaterThan(0);
        expect(times, path).toBeLessThanOrEqual(3);
      }
    });
  });
});
