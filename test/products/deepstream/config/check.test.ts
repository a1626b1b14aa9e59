import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { readModelContent } from '../../../../src/engines/identity/model-content.js';
import { findingKinds } from '../../../../src/products/deepstream/config/findings.js';
import type { DeepstreamCheck } from '../../../../src/products/deepstream/config/result.js';
import { fakeElf } from '../../../fakes/elf.js';
import { writeDetector, writePlan } from '../../../fakes/nvinfer-engine.js';
import { codeOfLine, trtforge } from '../../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-deepstream-check-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (...names: string[]) => join(folder, ...names);

const digestOf = async (name: string) =>
  (await readModelContent(at(name), { environment: { XDG_CACHE_HOME: at('cache') } })).digest;

beforeAll(async () => {
  await writeDetector(at('net.onnx'));
  await writeDetector(at('typed.onnx'), { weight: 'float16' });
  await writeDetector(at('half.onnx'), { dtype: 'float16' });
  await writeDetector(at('bfloat.onnx'), { dtype: 'bfloat16' });
  await writeDetector(at('gray.onnx'), { input: ['batch', 1, 64, 64] });
  await writeDetector(at('nhwc.onnx'), { input: ['batch', 64, 64, 3] });
  await writeDetector(at('flat.onnx'), { input: ['batch', 64] });
  await writeDetector(at('rows.onnx'), { outputs: { dets: ['num_dets', 7] } });
  await writeDetector(at('class.onnx'), { outputs: { scores: ['batch', 2] } });
  await writeDetector(at('pose.onnx'), { metadata: { task: 'pose' } });
  await writeDetector(at('end.onnx'), { outputs: { output0: ['batch', 300, 6] } });
  writePlan(at('net.engine'), { model: await digestOf('net.onnx') });
  writePlan(at('typed.engine'), { model: await digestOf('typed.onnx') });
  writePlan(at('old.engine'));
  writePlan(at('yolo.engine'), { model: await digestOf('net.onnx'), preprocess: 'yolo' });
  writePlan(at('detr.engine'), { model: await digestOf('net.onnx'), preprocess: 'rt-detr' });
  writePlan(at('rtx.engine'), { product: 'tensorrt-rtx', model: await digestOf('net.onnx') });
  writePlan(at('bare.engine'), { passport: false });
  writeFileSync(at('labels.txt'), 'cat\ndog\n');
  writeFileSync(at('three.txt'), 'cat\ndog\nbird\n');
  writeFileSync(at('line.txt'), 'cat;dog\n');
  writeFileSync(at('lib.so'), fakeElf({ symbols: { ParseNet: null } }));
});

const parseMask = 'parse-bbox-instance-mask-func-name';
const masks = { 'network-type': 3, 'cluster-mode': 4, [parseMask]: 'ParseNet' };
const created = { 'onnx-file': undefined, 'engine-create-func-name': 'ParseNet', 'network-mode': 1 };
/** Nothing but the model tells of inputs. */
const bare = { 'model-engine-file': 'bare.engine' };
const good: Readonly<Record<string, string | number>> = {
  'onnx-file': 'net.onnx',
  'model-engine-file': 'net.engine',
  'batch-size': 4,
  'net-scale-factor': 0.0039,
  'infer-dims': '3;64;64',
  'num-detected-classes': 2,
  'labelfile-path': 'labels.txt',
  'output-blob-names': 'output0',
  'cluster-mode': 2,
  'custom-lib-path': 'lib.so',
  'parse-bbox-func-name': 'ParseNet',
};

let count = 0;
async function check(
  changes: Readonly<Record<string, string | number | undefined>> = {},
  options: readonly string[] = [],
) {
  const keys = Object.entries({ ...good, ...changes }).filter(([, value]) => value !== undefined);
  const path = at(`config${count++}.txt`);
  writeFileSync(path, `[property]\n${keys.map((pair) => pair.join('=')).join('\n')}\n`);
  const { exitCode, json } = await trtforge(['deepstream', 'check', path, '--json', ...options]);
  const result = json<DeepstreamCheck>();
  const { outcome, reason, writes, findings } = result;
  return { exitCode, outcome, reason, writes, codes: findings.map(({ code }) => code), result };
}

test('a configuration that fits loads without a finding', async () => {
  const options = ['--gpu', 'L4', '--tensorrt', '10.14'];
  expect(await check({}, options)).toMatchObject({ exitCode: 0, outcome: 'loads', codes: [] });
});

describe('outcomes', () => {
  it.each([
    [{ 'batch-size': 16 }, [], 'rebuilds', 'engine-batch', 'net.onnx_b16_gpu0_fp32.engine', 1],
    [{}, ['--tensorrt', '10.6'], 'rebuilds', 'engine-other-tensorrt', 'net.onnx_b4_gpu0_fp32.engine', 1],
    [{}, ['--gpu', 'NVIDIA H100'], 'rebuilds', 'engine-other-gpu', 'net.onnx_b4_gpu0_fp32.engine', 1],
    [{}, ['--gpu', '8.0'], 'rebuilds', 'engine-other-gpu', 'net.onnx_b4_gpu0_fp32.engine', 1],
    [{ 'model-engine-file': 'rtx.engine' }, [], 'rebuilds', 'engine-rtx', 'net.onnx_b4_gpu0_fp32.engine', 1],
    [
      { 'model-engine-file': 'labels.txt' },
      [],
      'rebuilds',
      'engine-invalid',
      'net.onnx_b4_gpu0_fp32.engine',
      1,
    ],
    [
      { 'model-engine-file': 'none.engine', 'network-mode': 2 },
      [],
      'rebuilds',
      'engine-missing',
      'net.onnx_b4_gpu0_fp16.engine',
      1,
    ],
    [
      { 'model-engine-file': 'net.onnx_b4_gpu1_fp16.engine', 'network-mode': 1, 'gpu-id': 1 },
      [],
      'builds',
      'engine-missing',
      'net.onnx_b4_gpu1_fp16.engine',
      0,
    ],
    [
      { ...created, 'model-engine-file': 'model_b4_gpu0_int8.engine' },
      [],
      'builds',
      'engine-missing',
      'model_b4_gpu0_int8.engine',
      0,
    ],
    [{ ...created, 'model-engine-file': 'none.engine' }, [], 'rebuilds', 'engine-missing', null, 1],
    [{ 'model-engine-file': undefined }, [], 'builds', 'engine-not-named', 'net.onnx_b4_gpu0_fp32.engine', 0],
    [{ 'infer-dims': '3;32;32' }, [], 'fails', 'model-dims', null, 1],
    [{ 'onnx-file': undefined, 'batch-size': 16 }, [], 'fails', 'engine-batch', null, 1],
    [{ 'custom-lib-path': 'no.so' }, [], 'fails', 'library-missing', null, 1],
    [{ 'custom-lib-path': 'labels.txt' }, [], 'fails', 'library-invalid', null, 1],
    [{ 'parse-bbox-func-name': 'ParseNot' }, [], 'fails', 'function-missing', null, 1],
    [{ ...bare, 'onnx-file': 'bfloat.onnx' }, [], 'fails', 'type-unknown', null, 1],
    [{ 'model-color-format': 2 }, [], 'fails', 'color-format', null, 1],
    [{ ...bare, 'infer-dims': '4;64;64' }, [], 'fails', 'color-format', null, 1],
    [{ ...bare, 'onnx-file': 'gray.onnx', 'infer-dims': undefined }, [], 'fails', 'color-format', null, 1],
    [{ ...bare, 'onnx-file': 'nhwc.onnx', 'infer-dims': undefined }, [], 'fails', 'color-format', null, 1],
    [{ offsets: '1;2' }, [], 'fails', 'offsets-count', null, 1],
    [{ 'mean-file': 'no.ppm' }, [], 'fails', 'mean-missing', null, 1],
    [{ ...bare, 'onnx-file': 'flat.onnx', 'infer-dims': undefined }, [], 'fails', 'input-rank', null, 1],
    [{ ...masks, 'cluster-mode': 2 }, [], 'fails', 'instance-mask', null, 1],
    [{ ...masks, [parseMask]: undefined }, [], 'fails', 'instance-mask', null, 1],
    [{ 'output-instance-mask': 1 }, [], 'fails', 'mask-output', null, 1],
    [{ 'infer-dims': undefined, 'input-dims': '3;32;32;0' }, [], 'fails', 'model-dims', null, 1],
    [{ 'labelfile-path': 'no.txt' }, [], 'fails', 'labels-missing', null, 1],
    [{ 'batch-size': 0 }, [], 'fails', 'value-out-of-range', null, 1],
    [
      { 'labelfile-path': 'no.txt', 'model-engine-file': undefined },
      [],
      'fails',
      'labels-missing',
      'net.onnx_b4_gpu0_fp32.engine',
      1,
    ],
    [{ 'custom-lib-path': 'no.so', 'model-engine-file': undefined }, [], 'fails', 'library-missing', null, 1],
  ] as const)('%j %j', async (changes, options, outcome, reason, writes, exitCode) => {
    const checked = await check(changes, options);
    expect(checked).toMatchObject({
      ...{ outcome, reason, exitCode },
      writes: writes === null ? null : at(writes),
    });
    expect(checked.codes).toContain(reason);
  });

  test('an error that ends nvinfer does not hide what is wrong with the engine', async () => {
    const { codes } = await check({ 'custom-lib-path': 'no.so', 'model-engine-file': 'rtx.engine' });
    expect(codes).toEqual(['library-missing', 'engine-rtx']);
  });

  test('a folder that nvinfer may not write', async () => {
    mkdirSync(at('sealed'));
    await writeDetector(at('sealed', 'net.onnx'));
    chmodSync(at('sealed'), 0o500);
    const checked = await check({ 'onnx-file': 'sealed/net.onnx', 'model-engine-file': 'none.engine' });
    chmodSync(at('sealed'), 0o700);
    // Root writes anywhere.
    expect(checked.reason).toBe(process.getuid?.() === 0 ? 'engine-missing' : 'folder-read-only');
  });
});

describe('findings of a configuration that loads', () => {
  it.each([
    [{ 'labelfile-path': 'three.txt' }, ['labels-count'], 0],
    [{ 'labelfile-path': 'line.txt' }, ['labels-count'], 1],
    [{ 'num-detected-classes': 3, 'labelfile-path': 'three.txt' }, ['classes-count'], 1],
    [{ 'cluster-mode': 4 }, ['cluster-mode'], 0],
    [{ 'output-blob-names': 'output1' }, ['output-unknown'], 0],
    [{ 'custom-lib-path': undefined }, ['function-without-library'], 1],
    [{ 'parse-bbox-func-name': undefined }, ['parser-missing'], 1],
    [{ 'onnx-file': 'no.onnx' }, ['model-missing'], 1],
    [{ 'onnx-file': 'labels.txt' }, ['model-invalid'], 1],
    [{ 'onnx-file': 'typed.onnx', 'model-engine-file': 'typed.engine' }, ['model-typed'], 0],
    [{ 'model-engine-file': 'yolo.engine' }, ['preparation-differs'], 0],
    [{ 'model-engine-file': 'yolo.engine', 'input-tensor-from-meta': 1 }, [], 0],
    [{ 'model-engine-file': 'detr.engine', 'net-scale-factor': 0.0039216 }, [], 0],
    [{ 'model-engine-file': 'old.engine' }, ['engine-other-model'], 1],
    [{ 'strongly-typed': 1, 'network-mode': 2 }, ['mode-strongly-typed'], 0],
    [{ 'strongly-typed': 1, 'network-mode': 1 }, ['mode-strongly-typed'], 0],
    [{ 'network-mode': 1 }, ['calibration-missing'], 0],
    [{ 'net-scale-factor': undefined }, ['scale-default'], 0],
    [bare, ['passport-missing'], 0],
    [
      { ...bare, 'onnx-file': 'rows.onnx', 'output-blob-names': 'dets' },
      ['batch-axis', 'passport-missing'],
      1,
    ],
    [{ ...masks, 'output-instance-mask': 1 }, [], 0],
    [{ offsets: '1;2', 'mean-file': 'labels.txt' }, [], 0],
    [{ offsets: '1;2;3' }, [], 0],
    [{ ...bare, 'onnx-file': 'half.onnx' }, ['input-type', 'passport-missing'], 1],
    [{ ...bare, 'onnx-file': 'half.onnx', 'input-tensor-from-meta': 1 }, ['passport-missing'], 0],
    [{ 'custom-lib-path': '/opt/nvidia/deepstream/lib/x.so' }, ['library-elsewhere'], 0],
  ] as const)('%j', async (changes, codes, exitCode) => {
    expect(await check(changes)).toMatchObject({ outcome: 'loads', codes, exitCode });
  });

  const classifier = {
    ...{ ...bare, 'onnx-file': 'class.onnx', 'output-blob-names': 'scores', 'labelfile-path': 'line.txt' },
    ...{ 'parse-bbox-func-name': undefined, 'custom-lib-path': undefined, 'cluster-mode': undefined },
  };
  const rest = ['classifier-logits', 'passport-missing'];
  it.each([
    [{ ...classifier, 'network-type': 1 }, rest],
    [{ ...classifier, 'is-classifier': 1 }, ['key-translated', ...rest]],
    [{ ...classifier, 'is-classifier': 1, 'network-type': 1 }, ['key-legacy', ...rest]],
    [{ ...classifier, 'network-type': 1, 'labelfile-path': 'labels.txt' }, [...rest, 'labels-classifier']],
    [{ ...bare, 'onnx-file': 'pose.onnx' }, ['task-differs', 'passport-missing']],
    [{ ...bare, 'onnx-file': 'pose.onnx', 'network-type': 100 }, ['passport-missing']],
    [{ 'cluster-mode': undefined, 'enable-dbscan': 1 }, ['key-translated']],
  ] as const)('%j finds %j', async (changes, codes) => {
    const { codes: found } = await check(changes);
    expect(found.toSorted()).toEqual(codes.toSorted());
  });

  test('the configuration that a file of deepstream-app names is checked, with what replaces it', async () => {
    const { result } = await check();
    const gie = (name: string, ...keys: string[]) => `[${name}]\n${keys.join('\n')}\n`;
    const config = `config-file=${result.config}`;
    const app = async (...groups: string[]) => {
      writeFileSync(at('app.txt'), `[application]\n${groups.join('')}`);
      const { json } = await trtforge(['deepstream', 'check', at('app.txt'), '--json']);
      const { config: checked, reason, findings } = json<DeepstreamCheck>();
      return { isChecked: checked === result.config, reason, codes: findings.map(({ code }) => code) };
    };
    const plain = { isChecked: true, reason: 'engine-fits', codes: ['app-config'] };
    expect(await app(gie('primary-gie', config))).toEqual(plain);
    const off = gie('primary-gie', 'enable=0', 'config-file=other.txt');
    expect(await app(off, gie('secondary-gie0', config))).toEqual(plain);
    expect(await app(gie('primary-gie', config, 'batch-size=16'))).toMatchObject({
      reason: 'engine-batch',
      codes: ['app-overrides', 'engine-batch', 'app-config'],
    });
    expect((await app(gie('secondary-gie0', config), gie('primary-gie', config))).codes).toEqual([
      'app-config',
      'app-config',
    ]);
  });

  test('end-to-end outputs are not clustered', async () => {
    const end = { 'onnx-file': 'end.onnx', 'model-engine-file': undefined };
    expect((await check({ ...end, 'cluster-mode': 2 })).codes).toContain('cluster-mode');
    expect((await check({ ...end, 'cluster-mode': 4 })).codes).not.toContain('cluster-mode');
  });
});

describe('nvinferserver', () => {
  const server = (batch: number, model = 'net') => `infer_config {
  max_batch_size: ${batch}
  backend { triton { model_name: "${model}" model_repo { root: "repo" } } }
  postprocess { labelfile_path: "labels.txt" detection { num_detected_classes: 2 } }
}
`;
  const checkServer = async (text: string) => {
    mkdirSync(at('repo', 'net'), { recursive: true });
    mkdirSync(at('repo', 'fixed'), { recursive: true });
    writeFileSync(at('repo', 'fixed', 'config.pbtxt'), 'name: "fixed"\n');
    writeFileSync(at('repo', 'net', 'config.pbtxt'), 'name: "net"\nmax_batch_size: 8\n');
    writeFileSync(at('server.txt'), text);
    const { exitCode, json } = await trtforge(['deepstream', 'check', at('server.txt'), '--json']);
    const { outcome, reason } = json<DeepstreamCheck>();
    return { exitCode, outcome, reason };
  };

  it.each([
    [server(8), { exitCode: 0, outcome: 'loads', reason: 'model-served' }],
    [server(9), { exitCode: 1, outcome: 'fails', reason: 'model-batch' }],
    [server(9, 'fixed'), { exitCode: 0, outcome: 'loads', reason: 'model-served' }],
    [
      server(9).replace('model_repo { root: "repo" }', 'grpc { url: "localhost:8001" }'),
      { exitCode: 0, outcome: 'loads', reason: 'model-served' },
    ],
    [server(8, 'other'), { exitCode: 1, outcome: 'fails', reason: 'model-missing' }],
    ['infer_config { max_batch_size: 1 }\n', { exitCode: 1, outcome: 'fails', reason: 'model-not-named' }],
  ])('%j', async (text, expected) => {
    expect(await checkServer(text)).toEqual(expected);
  });
});

test.each([
  [['config.yml', 'property: [\n'], [], 'TF_SERVING_CONFIG'],
  [['server.txt', 'infer_config { max_batch: 1 }\n'], [], 'TF_SERVING_CONFIG'],
  [['plain.txt', '[property]\n'], ['--gpu', 'RTX 9999'], 'TF_USAGE'],
  [['plain.txt', '[property]\n'], ['--tensorrt', 'x'], 'TF_USAGE'],
  [['plain.txt', '[property]\n'], ['--image', 'x.png'], 'TF_USAGE'],
] as const)('%j %j ends with %s', async ([name, text], options, code) => {
  writeFileSync(at(name), text);
  expect(await codeOfLine(['deepstream', 'check', at(name), ...options])).toBe(code);
});

describe('the gate preset deepstream-check', () => {
  it.each([
    [{}, 0],
    [{ 'model-engine-file': undefined }, 0],
    [{ 'batch-size': 16 }, 1],
    [{ 'cluster-mode': 4 }, 0],
    [{ 'custom-lib-path': undefined }, 1],
  ])('%j ends with %i', async (changes, exitCode) => {
    const { result } = await check(changes);
    writeFileSync(at('check.json'), JSON.stringify(result));
    writeFileSync(at('policy.yaml'), 'schema: trtforge.gate-policy/1\nextends: deepstream-check\n');
    expect((await trtforge(['gate', at('policy.yaml'), at('check.json')])).exitCode).toBe(exitCode);
  });
});

test('each finding is documented', () => {
  const page = readFileSync(
    join(dirname(new URL(import.meta.url).pathname), '../../../../docs/deepstream-config.md'),
    'utf8',
  );
  expect(Object.keys(findingKinds).filter((code) => !page.includes(`\`${code}\``))).toEqual([]);
});

test('a folder stands for the configuration of nvinfer in it', async () => {
  const place = at('written');
  mkdirSync(place);
  expect(await codeOfLine(['deepstream', 'check', place])).toBe('TF_USAGE');
  writeFileSync(join(place, 'config_inferserver_primary_net.txt'), '');
  writeFileSync(
    join(place, 'config_infer_primary_net.txt'),
    '[property]\nonnx-file=../net.onnx\nbatch-size=1\n',
  );
  const { json } = await trtforge(['deepstream', 'check', place, '--json']);
  expect(json<DeepstreamCheck>()).toMatchObject({
    config: join(place, 'config_infer_primary_net.txt'),
    element: 'nvinfer',
  });
  writeFileSync(join(place, 'config_infer_secondary.txt'), '');
  expect(await codeOfLine(['deepstream', 'check', place])).toBe('TF_USAGE');
});
