import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { TrtforgeError } from '../../src/errors.js';
import type { WorkEvent } from '../../src/events.js';
import type { KnownIssue } from '../../src/index.js';
import { defaultRequest } from '../../src/quality/bench/options.js';
import { modelFile } from '../engines/runtime/onnxruntime/models.js';
import { writeWheel } from '../fakes/wheel.js';
import { noted } from '../support/noted-library.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-library-reading-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string) => join(folder, name);
const bench = defaultRequest('none.engine');
const fixture = (name: string) => join(import.meta.dirname, '../fixtures', name);

describe('compareOutputs', () => {
  test('takes the runner requested from a file of several', async () => {
    const two = fixture('polygraphy/two-runners.json');
    const compared = await noted.compareOutputs({
      ...{ candidate: two, candidateRunner: 'trt-runner' },
      ...{ reference: two, referenceRunner: 'onnxrt-runner', precision: 'fp16' },
    });
    expect(JSON.stringify(compared)).toContain('trt-runner');
    const same = noted.compareOutputs({ candidate: two, reference: two, candidateRunner: 'none' });
    await expect(same).rejects.toMatchObject({ message: expect.stringContaining('none') });
  });

  test('reads elements without a type as requested', async () => {
    const file = fixture('tensors/bfloat16.npy');
    const pair = { candidate: file, reference: file };
    expect(await noted.compareOutputs({ ...pair, voidDtype: 'bfloat16' })).toMatchObject({
      outputs: [{ dtype: 'bfloat16' }],
    });
    await expect(noted.compareOutputs(pair)).rejects.toMatchObject({ code: 'TF_TENSOR_UNSUPPORTED' });
  });

  test('judges by the checks requested', async () => {
    const file = fixture('tensors/float32.npy');
    const compared = await noted.compareOutputs({
      ...{ candidate: file, reference: file, precision: 'fp16' },
      checks: [{ name: null, kind: 'cosine', threshold: 0.5 }],
    });
    const [output] = compared.outputs;
    expect(output?.checks).toMatchObject([{ limit: 0.5 }]);
  });
});

test('what reads and converts files takes the context that all functions take', async () => {
  const context = { environment: { ...process.env }, emit: () => {} };
  const model = await modelFile((graph) => {
    graph.input('x', 'float32', [1, 4]);
    graph.node('Relu', { inputs: ['x'], outputs: ['y'] });
    graph.output('y', 'float32', [1, 4]);
  });
  const typed = at('typed.onnx');
  const tensors = fixture('tensors/float32.npy');
  expect((await noted.inspectModel(model, {}, context)).inputs).toMatchObject([{ name: 'x' }]);
  expect(
    (await noted.convertModel(model, typed, { precision: 'fp16', ioTypes: 'convert' }, context)).output,
  ).toBe(typed);
  const same = { candidate: tensors, reference: tensors };
  expect((await noted.compareOutputs(same, context)).outcome).toBe('pass');
});

describe('explaining', () => {
  const issue: KnownIssue = {
    id: 'of-the-test',
    severity: 'warning',
    pattern: /a line of the test/,
    cause: 'The test.',
    remedy: 'None.',
    majors: [11, 11],
    versions: '11',
    source: 'measured',
  };
  const line: WorkEvent = {
    type: 'log',
    source: 'tensorrt',
    severity: 'warning',
    message: 'a line of the test',
  };

  test('looks for the issues requested, of the version and in the model', async () => {
    const model = await modelFile((graph) => {
      graph.input('x', 'float32', [1, 3, 8, 8]);
      graph.input('grid', 'float32', [1, 4, 4, 2]);
      graph.node('GridSample', { inputs: ['x', 'grid'], outputs: ['y'], name: 'sampled' });
      graph.output('y', 'float32', [1, 3, 4, 4]);
    });
    const heard: WorkEvent[] = [];
    const found = async (version: string) => {
      const { result, issues } = await noted.explaining(
        async (emit) => {
          emit(line);
          return 'done';
        },
        {
          ...{ emit: (event: WorkEvent) => void heard.push(event), model, version },
          knownIssues: async () => [issue],
          built: () => ({ product: 'tensorrt' as const, version }),
        },
      );
      expect(result).toBe('done');
      return issues.map(({ id }) => id).toSorted();
    };
    expect(await found('11.0.0')).toEqual(['grid-sample-wrong', 'of-the-test']);
    expect(await found('11.4.0')).toEqual(['of-the-test']);
    expect(await found('10.3.0')).toEqual([]);
    expect(heard).toContainEqual(line);
  });

  test('puts them into the error of what failed', async () => {
    const failing = noted.explaining(
      async (emit) => {
        emit(line);
        throw new TrtforgeError('TF_BUILD_FAILED', 'Nothing was built.');
      },
      { emit: () => {}, version: '11.0.0', knownIssues: async () => [issue] },
    );
    await expect(failing).rejects.toMatchObject({
      code: 'TF_BUILD_FAILED',
      details: { issues: [{ id: 'of-the-test' }] },
    });
  });
});

test('installToolchain installs the wheel passed, once its licence is accepted', async () => {
  const wheel = writeWheel(folder, { version: '1.9.0.1' });
  const events: WorkEvent[] = [];
  const request = { wheel, version: '1.9.0.1', folder: at('toolchains'), command: 'my-installer' };
  const context = {
    emit: (event: WorkEvent) => void events.push(event),
    signal: new AbortController().signal,
    environment: { ...process.env },
  };
  await expect(noted.installToolchain({ ...request, acceptLicense: false }, context)).rejects.toMatchObject({
    code: 'TF_LICENSE_NOT_ACCEPTED',
    details: { command: 'my-installer --accept-license' },
  });
  const installed = await noted.installToolchain({ ...request, acceptLicense: true }, context);
  expect(installed).toMatchObject({ isNew: true, manifest: { version: '1.9.0.1' } });
  expect(existsSync(join(at('toolchains'), 'tensorrt-rtx-1.9.0.1-x86_64'))).toBe(true);
  expect(events.length).toBeGreaterThan(0);
  const other = { ...request, version: '1.8.0.1', folder: at('other'), acceptLicense: true };
  await expect(noted.installToolchain(other)).rejects.toMatchObject({ code: 'TF_TOOLCHAIN_MISMATCH' });
  await expect(
    noted.installToolchain(
      { ...request, acceptLicense: true, folder: at('aborted') },
      { signal: AbortSignal.abort() },
    ),
  ).rejects.toMatchObject({ code: 'TF_CANCELLED' });
});

test.each([
  ['buildOrLoad', 'exporter', {}],
  ['buildOrLoad', 'areSizesKnown', true],
  ['forge', 'build', () => {}],
  ['forge', 'profileFrom', []],
  ['installToolchain', 'platform', 'linux'],
  ['benchCompare', 'trtexecLog', 'trtexec.log'],
] as const)('%s has no option %s, which is for rooms of the package', async (name, option, value) => {
  const request = {
    buildOrLoad: { model: 'none.onnx' },
    forge: { model: 'none.onnx' },
    installToolchain: { acceptLicense: false },
    benchCompare: { candidate: bench, reference: bench, rounds: 3 },
  }[name];
  const call = noted[name] as (request: unknown, context: unknown) => Promise<unknown>;
  await expect(call(request, { [option]: value })).rejects.toMatchObject({
    code: 'TF_USAGE',
    details: { option },
  });
});
