import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { visibleGpus } from '../../src/addon/gpus.js';
import { modelFile } from '../engines/runtime/onnxruntime/models.js';
import { describeWith } from '../support/needs.js';
import { writeSample } from '../support/sample-engine.js';
import { codeOfLine, trtforge } from '../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-rejected-'));
const at = (name: string) => join(folder, name);
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const environment = { ...process.env, TENSORRT_CACHE_DIR: at('engines'), ARTIFACTS_BUCKET: '' };
const codeOf = (line: readonly string[]) => codeOfLine(line, environment);

beforeAll(async () => {
  const model = await modelFile((graph) => {
    graph.input('x', 'float32', ['n', 4]);
    graph.node('Softmax', { inputs: ['x'], outputs: ['y'] });
    graph.output('y', 'float32', ['n', 4]);
  });
  cpSync(model, at('m.onnx'));
  await trtforge(['convert', at('m.onnx'), '--precision', 'fp16', '-o', at('m.fp16.onnx')]);
});

test('a conversion onto its own input is rejected', async () => {
  const line = ['convert', at('m.onnx'), '--precision', 'bf16', '-o', at('m.onnx')];
  expect(await codeOf(line)).toBe('TF_OUTPUT_IS_INPUT');
});

test('a signature without a key, and a name that no engine has, are rejected', async () => {
  await trtforge(['cache', 'keygen', '-o', at('key.pem')]);
  expect(await codeOf(['cache', 'sign'])).toBe('TF_USAGE');
  expect(await codeOf(['cache', 'sign', '--sign-key', at('key.pem'), 'no-such-engine'])).toBe('TF_USAGE');
});

describe('verify', () => {
  test.each([
    ['a tolerance of no output', ['--atol', 'z:1'], 'TF_USAGE'],
    ['an input that is not there', ['--inputs', 'x=@absent.npy'], 'TF_FILE_NOT_FOUND'],
    ['shapes that do not fit', ['--shapes', 'x:1x5'], 'TF_SHAPE_INVALID'],
    ['an option of engines', ['--weight-budget', '1G'], 'TF_USAGE'],
    ['a model that is not there', ['--against', 'absent.onnx'], 'TF_FILE_NOT_FOUND'],
  ])('rejects %s', async (_, args, code) => {
    const line = ['verify', at('m.onnx'), '--against', at('m.onnx'), ...args];
    expect(await codeOf(line)).toBe(code);
  });
});

describe('engine inspect', () => {
  const engine = () => writeSample(folder, 'plain.engine');

  test.each([['--device', '0'], ['--weight-budget', '1G'], ['--plugin', 'p.so'], ['--allow-host-code']])(
    'loads nothing without --memory, so %s is rejected',
    async (...option) => {
      const { exitCode, json } = await trtforge(
        ['engine', 'inspect', engine(), ...option, '--json'],
        environment,
      );
      const { code, message, remedy } = json().error!;
      expect([exitCode, code, message]).toEqual([2, 'TF_USAGE', expect.stringContaining(option[0]!)]);
      expect(remedy).toContain('--memory');
      expect((await trtforge(['engine', 'inspect', engine()], environment)).exitCode).toBe(0);
    },
  );

  test.skipIf(visibleGpus().gpus.length > 0)(
    'names only options that it has where there is no GPU',
    async () => {
      const line = ['engine', 'inspect', engine(), '--memory', '--json'];
      const { code, remedy } = (await trtforge(line, environment)).json().error!;
      expect(code).toBe('TF_GPU_UNAVAILABLE');
      expect(remedy).not.toMatch(/--from|export/);
      const layers = (await trtforge(['engine', 'diff', engine(), engine(), '--json'], environment)).json();
      expect(layers.error?.remedy).toContain('in place of the engine');
    },
  );
});

describe('bisect', () => {
  const line = [
    'bisect',
    at('m.fp16.onnx'),
    '--against',
    at('m.onnx'),
    '-o',
    at('search'),
    '--precision',
    'fp16',
  ];

  test.each([
    ['a candidate in FP32', ['bisect', at('m.onnx'), '--against', at('m.onnx'), '-o', at('x')], 'TF_USAGE'],
    ['a check without a place for the candidate', [...line, '--check-command', 'true'], 'TF_USAGE'],
    ['samples that are not there', [...line, '--inputs', at('absent.npz')], 'TF_FILE_NOT_FOUND'],
    ['a profile without a target', [...line, '--profile', 'x:1x4'], 'TF_USAGE'],
  ])('rejects %s', async (_, args, code) => {
    expect(await codeOf(args)).toBe(code);
  });

  describeWith('toolchain', 'of engines', () => {
    test.skipIf(visibleGpus().gpus.length > 0)('needs a GPU that runs them before one is built', async () => {
      const engines = ['--target', 'tensorrt-rtx:sm_89', '--batch', '2'];
      expect(await codeOf([...line, ...engines])).toBe('TF_GPU_UNAVAILABLE');
    });
  });
});

test('a comparison inside of models is rejected for a tolerance of no tensor, and without its samples', async () => {
  const layers = ['compare', 'layers', at('m.onnx'), '--against', at('m.onnx')];
  expect(await codeOf([...layers, '--atol', 'no-tensor:1'])).toBe('TF_USAGE');
  expect(await codeOf([...layers, '--inputs', at('absent.npy')])).toBe('TF_FILE_NOT_FOUND');
});
