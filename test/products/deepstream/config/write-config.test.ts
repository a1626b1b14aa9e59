import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterAll, describe, expect, it, test } from 'vitest';
import { readModelContent } from '../../../../src/engines/identity/model-content.js';
import { parseProtobufText } from '../../../../src/formats/serving/protobuf-text.js';
import { parseKeyGroups } from '../../../../src/products/deepstream/config/read-config.js';
import type { DeepstreamCheck } from '../../../../src/products/deepstream/config/result.js';
import type { DeepstreamConfig } from '../../../../src/products/deepstream/config/write-config.js';
import { fakeElf } from '../../../fakes/elf.js';
import {
  type DetectorOptions,
  type PlanOptions,
  writeDetector,
  writePlan,
} from '../../../fakes/nvinfer-engine.js';
import { codeOfLine, trtforge } from '../../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-deepstream-config-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const library = fakeElf({ symbols: { NvDsInferParseCustom_net: null } });
let count = 0;
/** A project of DeepStream's layout, and the line that configures its model or engine. */
async function project(
  {
    model = {},
    plan,
    files = {},
  }: {
    readonly model?: DetectorOptions | null;
    readonly plan?: PlanOptions;
    readonly files?: Readonly<Record<string, unknown>>;
  } = {},
  options: readonly string[] = [],
) {
  const root = join(folder, `${count++}`, 'models', 'net');
  const onnx = join(root, 'model', 'net.onnx');
  mkdirSync(dirname(onnx), { recursive: true });
  if (model !== null) await writeDetector(onnx, model);
  for (const [name, content] of Object.entries(files))
    writeFileSync(join(root, 'model', name), typeof content === 'string' ? content : JSON.stringify(content));
  const engine = join(root, 'benchmarks', 'engines', 'net_dynamic_b8.engine');
  const reading = { cacheFolder: join(folder, 'cache'), emit: () => {} };
  const own = model === null ? {} : { model: (await readModelContent(onnx, reading)).digest };
  if (plan !== undefined) writePlan(engine, { ...own, ...plan });
  const line = [
    'deepstream',
    'config',
    plan === undefined ? onnx : engine,
    '-o',
    join(root, 'config'),
    ...options,
  ];
  return { root, onnx, engine, line };
}

async function configured(...given: Parameters<typeof project>) {
  const { line, ...made } = await project(...given);
  const { json, exitCode } = await trtforge([...line, '--json']);
  expect(exitCode).toBe(0);
  const result = json<DeepstreamConfig>();
  const path = join(made.root, 'config', 'config_infer_primary_net.txt');
  const property = parseKeyGroups(readFileSync(path, 'utf8'), path).groups.get('property')!;
  const keys = Object.fromEntries([...property].map(([key, { value }]) => [key, value]));
  const serverPath = join(made.root, 'config', 'config_inferserver_primary_net.txt');
  const server = parseProtobufText(
    'nvdsinferserver.config.PluginControl',
    readFileSync(serverPath, 'utf8'),
    serverPath,
  );
  return { ...made, result, keys, server, path };
}

const ultralytics = { stride: '32', task: 'detect', imgsz: '[64, 64]', names: "{0: 'cat', 1: 'dog'}" };

describe('what is written', () => {
  test('of an engine and its model in DeepStream’s layout', async () => {
    const { keys, server, result, root } = await configured({ model: { metadata: ultralytics }, plan: {} });
    expect(keys).toMatchObject({
      'onnx-file': '../model/net.onnx',
      'model-engine-file': '../benchmarks/engines/net_dynamic_b8.engine',
      'batch-size': '8',
      'infer-dims': '3;64;64',
      'network-mode': '0',
      'network-type': '0',
      'num-detected-classes': '2',
      'labelfile-path': 'labels.txt',
      'cluster-mode': '2',
      'maintain-aspect-ratio': '1',
      'symmetric-padding': '1',
      'model-color-format': '0',
      'output-blob-names': 'output0',
      'custom-lib-path': '../parser/libnvdsinfer_custombboxparser_net.so',
      'parse-bbox-func-name': 'NvDsInferParseCustom_net',
    });
    expect(Number(keys['net-scale-factor'])).toBeCloseTo(1 / 255, 12);
    expect(server).toMatchObject({
      infer_config: {
        max_batch_size: 8,
        backend: { triton: { model_name: 'net', model_repo: { root: ['../triton'] } } },
        preprocess: { network_format: 'IMAGE_FORMAT_RGB', symmetric_padding: 1 },
        postprocess: { detection: { num_detected_classes: 2 } },
      },
    });
    expect(readFileSync(join(root, 'config/labels.txt'), 'utf8')).toBe('cat\ndog\n');
    expect(readFileSync(join(root, 'parser/Makefile'), 'utf8')).toMatch(/^\t\$\(CXX\)/m);
    expect(result).toMatchObject({ layout: 'boxes', classes: 2, assumed: [], warnings: [] });
    expect(result.files.map((file) => basename(file)).slice(-2)).toEqual([
      'config_infer_primary_net.txt',
      'config_inferserver_primary_net.txt',
    ]);
  });

  test('of a model that lies elsewhere, by another name', async () => {
    const { line, root, onnx } = await project({ model: { metadata: ultralytics }, plan: {} });
    renameSync(onnx, join(root, 'other.onnx'));
    const named = [...line, '--onnx', join(root, 'other.onnx'), '--name', 'cars', '--json'];
    const { json } = await trtforge(named);
    const files = json<DeepstreamConfig>().files.map((file) => basename(file));
    expect(files).toContain('config_inferserver_primary_cars.txt');
    const text = readFileSync(join(root, 'config', 'config_infer_primary_cars.txt'), 'utf8');
    expect(text).toContain('onnx-file=../other.onnx');
    expect(text).toContain('parse-bbox-func-name=NvDsInferParseCustom_cars');
  });

  test('of a model: the engine is the one that nvinfer builds, and the check agrees', async () => {
    const { keys, result, path, root } = await configured({ model: { metadata: ultralytics } }, [
      '--batch',
      '4',
    ]);
    expect(keys['model-engine-file']).toBe('../model/net.onnx_b4_gpu0_fp32.engine');
    writeFileSync(join(root, 'parser', 'libnvdsinfer_custombboxparser_net.so'), library);
    const { json } = await trtforge(['deepstream', 'check', path, '--json']);
    const { outcome, findings, writes } = json<DeepstreamCheck>();
    expect({ outcome, writes }).toEqual({ outcome: 'builds', writes: result.engine });
    expect(findings.map(({ code }) => code)).toEqual(['engine-missing']);
  });

  it.each([
    [{ recipe: { precision: 'fp16' } }, {}, { 'network-mode': '2', 'strongly-typed': undefined }],
    [
      { recipe: { precision: 'fp16' } },
      { weight: 'float16' },
      { 'network-mode': '0', 'strongly-typed': '1' },
    ],
  ] as const)('%j of a model %j', async (plan, model, expected) => {
    const { keys } = await configured({ plan, model: { ...model, metadata: ultralytics } });
    expect(keys['network-mode']).toBe(expected['network-mode']);
    expect(keys['strongly-typed']).toBe(expected['strongly-typed']);
  });

  it.each([
    ['end-to-end', { output0: ['batch', 300, 6] }, '4'],
    ['detr', { logits: ['batch', 10, 2], pred_boxes: ['batch', 10, 4] }, '4'],
    ['boxes', { output0: ['batch', 6, 84] }, '2'],
  ] as const)('layout %s', async (layout, outputs, mode) => {
    const { keys, result } = await configured({ model: { outputs, metadata: ultralytics } });
    expect(result.layout).toBe(layout);
    expect(keys['cluster-mode']).toBe(mode);
  });

  it.each(['pose', 'obb', 'segment'])('the task %s has no parser here, whatever the labels', async (task) => {
    const { keys, result } = await configured({ model: { metadata: { ...ultralytics, task } } });
    expect([result.layout, keys['network-type']]).toEqual([null, '100']);
    expect(result.warnings).toHaveLength(1);
  });

  it.each([
    ['yolo', { 'maintain-aspect-ratio': '1', 'symmetric-padding': '1', offsets: undefined }, [], 0],
    ['rt-detr', { 'maintain-aspect-ratio': '0', offsets: undefined }, [], 0],
    ['arcface', { 'net-scale-factor': `${1 / 127.5}`.slice(0, 9), offsets: '127.5;127.5;127.5' }, [], 0],
    ['imagenet', { 'maintain-aspect-ratio': '0', offsets: '123.675;116.28;103.53' }, [], 1],
    ['yolo', { 'maintain-aspect-ratio': '0' }, ['--fit', 'stretch'], 1],
  ] as const)('of an engine that was calibrated as %s: %j', async (preprocess, expected, options, warned) => {
    const given = { plan: { preprocess }, files: { 'config.json': { names: ['cat', 'dog'] } } };
    const { keys, result } = await configured(given, options);
    for (const [key, value] of Object.entries(expected))
      if (value === undefined) expect(keys[key]).toBeUndefined();
      else expect(keys[key]).toContain(value);
    expect([result.assumed, result.warnings.length]).toEqual([[], warned]);
  });

  test('an engine of another model is a warning', async () => {
    const { result } = await configured({
      model: { metadata: ultralytics },
      plan: { model: 'b'.repeat(64) },
    });
    expect(result.warnings).toEqual([expect.stringContaining('bbbbbbbbbbbb')]);
  });

  test('what the model states beside another preparation of its calibration is a warning', async () => {
    const { result } = await configured({
      model: { metadata: ultralytics },
      plan: { preprocess: 'rt-detr' },
    });
    expect(result.warnings).toEqual([expect.stringContaining('"rt-detr"')]);
    const same = await configured({ model: { metadata: ultralytics }, plan: { preprocess: 'yolo' } });
    expect(same.result.warnings).toEqual([]);
  });

  test('a classifier has its labels on one line, and no parser', async () => {
    const outputs = { scores: ['batch', 2] };
    const { keys, result, root, server } = await configured({ model: { outputs, metadata: ultralytics } });
    expect(keys).toMatchObject({ 'network-type': '1', 'labelfile-path': 'labels.txt' });
    expect(result).toMatchObject({ layout: 'classifier', classes: 2 });
    expect(readFileSync(join(root, 'config/labels.txt'), 'utf8')).toBe('cat;dog\n');
    expect(server).toMatchObject({ infer_config: { postprocess: { classification: {} } } });
    const classify = { ...ultralytics, task: 'classify' };
    const { line } = await project({ model: { outputs: { scores: ['batch', 3] }, metadata: classify } });
    expect(await codeOfLine(line)).toBe('TF_SERVING_REFUSED');
  });

  test('for nvinferserver: the next line exports the model that it takes from Triton', async () => {
    const { line, root } = await project({ model: { metadata: ultralytics }, plan: {} });
    const [, next = ''] = /Next.* trtforge (triton .+)/.exec((await trtforge(line)).out) ?? [];
    expect((await trtforge(next.split(' '))).exitCode).toBe(0);
    writeFileSync(join(root, 'parser', 'libnvdsinfer_custombboxparser_net.so'), library);
    const path = join(root, 'config', 'config_inferserver_primary_net.txt');
    const { json } = await trtforge(['deepstream', 'check', path, '--json']);
    expect(json<DeepstreamCheck>()).toMatchObject({ outcome: 'loads', reason: 'model-served', findings: [] });
  });

  it.each([
    [{ outputs: { features: ['batch', 8] } }, 1],
    [{ dtype: 'float16' }, 2],
    [{ input: ['batch', 4, 64, 64], outputs: { features: ['batch', 8] } }, 2],
  ] as const)(
    'outputs that the parser does not read go to the pipeline as they are: %j',
    async (model, warnings) => {
      const { keys, result, root } = await configured({ model });
      expect(keys).toMatchObject({ 'network-type': '100', 'output-tensor-meta': '1' });
      expect(keys['parse-bbox-func-name']).toBeUndefined();
      expect(result.warnings).toHaveLength(warnings);
      expect(existsSync(join(root, 'parser'))).toBe(false);
    },
  );
});

describe('how pictures are prepared', () => {
  const means = { image_mean: [0.485, 0.456, 0.406], image_std: [0.229, 0.224, 0.225] };

  test('by preprocessor_config.json, with one scale for all channels', async () => {
    const preprocessor = {
      do_rescale: true,
      rescale_factor: 1 / 255,
      do_normalize: true,
      size: { height: 64, width: 64 },
      ...means,
    };
    const { keys, result } = await configured({ files: { 'preprocessor_config.json': preprocessor } });
    expect(Number(keys['net-scale-factor'])).toBeCloseTo(1 / 255 / 0.226, 6);
    expect(keys.offsets).toBe('123.675;116.28;103.53');
    expect(keys['maintain-aspect-ratio']).toBe('0');
    expect(result.assumed).toHaveLength(1);
    expect(result.warnings).toHaveLength(2);
  });

  test('by options', async () => {
    const options = ['--scale', '1', '--offsets', '104;117;123', '--color', 'bgr', '--fit', 'corner'];
    const { keys } = await configured({}, options);
    expect(keys).toMatchObject({
      'net-scale-factor': '1',
      offsets: '104;117;123',
      'model-color-format': '1',
      'maintain-aspect-ratio': '1',
      'symmetric-padding': '0',
    });
  });

  test('without any file it is assumed, which the result states', async () => {
    const { result } = await configured();
    expect(result.assumed).toHaveLength(2);
  });

  test('of open sides by the size', async () => {
    const model = { input: ['batch', 3, 'h', 'w'] };
    expect((await configured({ model }, ['--size', '32x96'])).keys['infer-dims']).toBe('3;32;96');
    expect(await codeOfLine((await project({ model })).line)).toBe('TF_SERVING_REFUSED');
  });
});

describe('names of classes', () => {
  it.each([
    [{ id2label: { 1: 'dog', 0: 'cat' } }, 'cat\ndog\n'],
    [{ names: ['cat', 'dog'] }, 'cat\ndog\n'],
  ])('config.json %j', async (config, text) => {
    const { root } = await configured({ files: { 'config.json': config } });
    expect(readFileSync(join(root, 'config/labels.txt'), 'utf8')).toBe(text);
  });

  test('there is no default list', async () => {
    const { keys, result, root } = await configured();
    expect(keys).toMatchObject({ 'num-detected-classes': '2' });
    expect(keys['labelfile-path']).toBeUndefined();
    expect(existsSync(join(root, 'config/labels.txt'))).toBe(false);
    expect(result.warnings).toHaveLength(1);
  });
});

describe('what is rejected', () => {
  const list = (text: string) => ({ files: { 'config.json': { names: text.split('|') } } });
  it.each([
    ['TensorRT-RTX', { plan: { product: 'tensorrt-rtx' } }, [], 'TF_SERVING_REFUSED'],
    ['a batch above the engine’s', { plan: {} }, ['--batch', '9'], 'TF_SERVING_REFUSED'],
    ['labels of another model', list('a|b|c'), [], 'TF_SERVING_REFUSED'],
    ['a label with a line break', list('a|b\nc'), [], 'TF_SERVING_REFUSED'],
    ['a label with a semicolon', list('a|b;c'), [], 'TF_SERVING_REFUSED'],
    [
      'a gap among labels',
      { files: { 'config.json': { id2label: { 0: 'a', 2: 'b' } } } },
      [],
      'TF_EVAL_DATA',
    ],
    ['a name with a slash', {}, ['--name', '../net'], 'TF_SERVING_REFUSED'],
    ['a name with a line break', {}, ['--name', 'net\nx'], 'TF_SERVING_REFUSED'],
    ['an output with a quote', { model: { outputs: { 'a"; //': ['b', 6, 84] } } }, [], 'TF_SERVING_REFUSED'],
    ['no picture', { model: { input: ['batch', 8] } }, [], 'TF_SERVING_REFUSED'],
    [
      'an engine without passport and model',
      { model: null, plan: { passport: false } },
      [],
      'TF_SERVING_REFUSED',
    ],
    ['rows without labels', { model: { outputs: { output0: ['b', 300, 6] } } }, [], 'TF_SERVING_REFUSED'],
    ['offsets of two channels', {}, ['--offsets', '1;2'], 'TF_SERVING_REFUSED'],
    ['a scale of 0', {}, ['--scale', '0'], 'TF_USAGE'],
    ['a size that the model fixes', {}, ['--size', '32x32'], 'TF_SERVING_REFUSED'],
    ['a size', {}, ['--size', '64'], 'TF_USAGE'],
  ] as const)('%s', async (_, given, options, code) => {
    const { line, root } = await project(given, options);
    expect(await codeOfLine(line)).toBe(code);
    expect(existsSync(join(root, 'config'))).toBe(false);
  });

  test('an engine of TensorRT-RTX is a warning with --force', async () => {
    const { result } = await configured({ plan: { product: 'tensorrt-rtx' } }, ['--force']);
    expect(result.warnings.join()).toContain('TensorRT-RTX');
  });

  test('files that were edited stay, all of them', async () => {
    const { line, root, path } = await projectWritten();
    writeFileSync(path, '[property]\n');
    expect(await codeOfLine([...line, '--batch', '2'])).toBe('TF_OUTPUT_OF_OTHER_KIND');
    expect(readFileSync(path, 'utf8')).toBe('[property]\n');
    expect(readFileSync(join(root, 'config/config_inferserver_primary_net.txt'), 'utf8')).toContain(
      'max_batch_size: 1',
    );
    expect(await codeOfLine([...line, '--batch', '2', '--force'])).toBeNull();
  });
});

async function projectWritten() {
  const made = await project();
  await trtforge(made.line);
  return { ...made, path: join(made.root, 'config', 'config_infer_primary_net.txt') };
}
