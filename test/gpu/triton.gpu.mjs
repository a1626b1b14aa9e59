// Serves engines by Triton's own server and its TensorRT back end: exported repositories pass `triton check`, load, warm up and give their known answers over
// HTTP; states are those of our own closed loop; other weights and another GPU's entry are named.
// ANSWER_MODELS names a folder of models as known-answer.gpu.mjs has them, with `detector` and `encoder`; `tritonserver` is in the PATH, with
// ../backends/tensorrt/libtriton_tensorrt.so beside it that was compiled for the TensorRT here.
//
//   TENSORRT_HOME=/tmp/tensorrt ANSWER_MODELS=/tmp/sets PATH=/tmp/triton/bin:$PATH node test/gpu/triton.gpu.mjs
//
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here.
import assert from 'node:assert/strict';
import { cpSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sha256OfFile } from '../../dist/base/files/digest.js';
import { readNpz } from '../../dist/formats/tensor/npz.js';
import { float32Values } from '../../dist/formats/tensor/tensor.js';
import { openEngineSession } from '../../dist/index.js';
import { TritonClient } from '../../dist/products/triton/try/client.js';
import { findTriton, startTriton } from '../../dist/products/triton/try/server.js';
import { openChecks, programsIn } from './harness.mjs';

const { folder, gpu, toolchain, check, finish } = openChecks();
const { trtforge } = programsIn(folder);
const at = (name) => join(folder, name);
const setFile = (name, ending) => join(process.env.ANSWER_MODELS, name, `${name}${ending}`);
const build = (name, model, options) => {
  trtforge([
    'build',
    model,
    '--target',
    'tensorrt',
    '--known-answer',
    '-o',
    at(`${name}.engine`),
    ...options,
  ]);
  return at(`${name}.engine`);
};
const sm = `sm_${gpu.computeCapability}`;
const capability = sm.replace(/^sm_(\d+)(\d)$/, '$1.$2');
const shown = ({ outcome, server, models }) => ({
  outcome,
  server,
  models: models.map(({ name, ready, reason, request, sequences, knownAnswer }) => ({
    name,
    ready,
    reason,
    ms: request?.ms,
    sequences,
    knownAnswer,
  })),
});

const detectorOptions = ['--profile', 'images:1x3x256x256/4x3x256x256/8x3x256x256', '--precision', 'fp16'];
const encoderOptions = readFileSync(setFile('encoder', '.profile'), 'utf8').trim().split(/\s+/);

await check('engines are built', () => {
  build('detector', setFile('detector', '.onnx'), detectorOptions);
  build('encoder', setFile('encoder', '.onnx'), encoderOptions);
  build('other', setFile('detector', '.other.onnx'), detectorOptions);
  return {};
});

await check('they are exported, and the check finds nothing', () => {
  trtforge(['triton', 'export', 'detector.engine', '-o', 'repo', '--name', 'detector']);
  trtforge(['triton', 'export', 'encoder.engine', '-o', 'repo', '--name', 'encoder']);
  const found = trtforge(['triton', 'check', 'repo', '--gpu', sm, '--tensorrt', toolchain.version], {
    codes: [0, 1],
  });
  const wrong = found.findings.filter(({ severity }) => severity !== 'info');
  assert.deepEqual(wrong, []);
  return { container: found.container, encoder: readFileSync(at('repo/encoder/config.pbtxt'), 'utf8') };
});

await check("Triton's server runs them: ready, warm-up, answers, sequences, known answer", () => {
  const result = trtforge(['triton', 'try', 'repo'], { codes: [0, 1, 4] });
  assert.equal(result.server.answeredBy, 'tensorrt');
  assert.equal(result.outcome, 'pass', JSON.stringify(shown(result)));
  assert.equal(result.models.find(({ name }) => name === 'detector').knownAnswer.outcome, 'pass');
  assert.equal(result.models.find(({ name }) => name === 'encoder').sequences.outcome, 'pass');
  return shown(result);
});

await check('a sequence has the outputs of our own closed loop', async () => {
  const environment = process.env;
  const server = await startTriton(await findTriton(environment), at('repo'), { environment });
  const client = new TritonClient(server.url);
  const config = await client.config('encoder');
  const states = config.sequence_batching.state;
  const session = await openEngineSession(at('encoder.engine'), {
    toolchain: process.env.TENSORRT_HOME,
  });
  const samples = readNpz(setFile('encoder', '.npz'));
  const rowOf = ({ dtype, shape, bytes }, at) => {
    const width = bytes.length / shape[0];
    return { dtype, shape: [1, ...shape.slice(1)], bytes: bytes.subarray(at * width, (at + 1) * width) };
  };
  const zero = ({ name }) => {
    const { dtype, shape } = session.inputs.find((input) => input.name === name);
    const sizes = shape.map((size) => (typeof size === 'number' && size >= 0 ? size : 1));
    const { bytes } = rowOf(samples.get(name), 0);
    return [name, { dtype, shape: sizes, bytes: new Uint8Array(bytes.length) }];
  };
  let state = new Map(states.map(({ input_name: name }) => zero({ name })));
  const largest = [];
  const steps = Math.min(4, samples.get(config.input[0].name).shape[0]);
  for (let step = 0; step < steps; step++) {
    const inputs = new Map(config.input.map(({ name }) => [name, rowOf(samples.get(name), step)]));
    const own = await session.run(new Map([...inputs, ...state]));
    // A tensor of rows alone has an axis more in Triton.
    const sent = new Map(
      config.input.map(({ name, reshape }) => {
        const tensor = inputs.get(name);
        return [name, reshape === undefined ? tensor : { ...tensor, shape: [1, 1] }];
      }),
    );
    const served = await client.infer('encoder', sent, {
      id: 1,
      start: step === 0,
      end: step === steps - 1,
    });
    for (const { name } of config.output) {
      const [a, b] = [float32Values(own.get(name)), float32Values(served.get(name))];
      assert.equal(a.length, b.length);
      const scale = Math.max(...a.map(Math.abs));
      largest.push(Math.max(...a.map((value, at) => Math.abs(value - b[at]))) / (scale || 1));
    }
    state = new Map(states.map(({ input_name, output_name }) => [input_name, own.get(output_name)]));
  }
  await session.close();
  await server[Symbol.asyncDispose]();
  assert.ok(Math.max(...largest) < 1e-3, largest.join());
  return { steps, largest: Math.max(...largest) };
});

await check('other weights under the same passport load, and fail by the known answer', () => {
  cpSync(at('repo'), at('wrong'), { recursive: true });
  const version = join(at('wrong'), 'detector', '1');
  const plan = readdirSync(version).find((name) => !name.endsWith('.json'));
  const passport = JSON.parse(readFileSync(join(version, `${plan}.passport.json`), 'utf8'));
  cpSync(at('other.engine'), join(version, plan));
  passport.plan = {
    ...passport.plan,
    sha256: sha256OfFile(at('other.engine')),
    bytes: statSync(at('other.engine')).size,
  };
  writeFileSync(join(version, `${plan}.passport.json`), JSON.stringify(passport));
  const result = trtforge(['triton', 'try', 'wrong'], { codes: [0, 1, 4] });
  const detector = result.models.find(({ name }) => name === 'detector');
  assert.equal(detector.knownAnswer?.outcome, 'fail', JSON.stringify(shown(result)));
  return { reasons: detector.knownAnswer.reasons.slice(0, 2) };
});

await check('a warm-up of a model with states fails its load, and the check names it', () => {
  cpSync(at('repo'), at('warm'), { recursive: true });
  const path = at('warm/encoder/config.pbtxt');
  const input = (name, type, dims) =>
    `inputs { key: "${name}" value { data_type: ${type} dims: [ ${dims} ] zero_data: true } }`;
  const inputs = [
    input('audio_signal', 'TYPE_FP32', '80, 64'),
    input('length', 'TYPE_INT64', '1'),
    input('cache_last_channel_len', 'TYPE_INT64', '1'),
  ];
  const warmup = `model_warmup { name: "zeros" batch_size: 1 ${inputs.join(' ')} }\n`;
  writeFileSync(path, `${readFileSync(path, 'utf8')}${warmup}`);
  const found = trtforge(['triton', 'check', 'warm'], { codes: [1] });
  assert.ok(found.findings.some(({ code }) => code === 'warmup-with-states'));
  const result = trtforge(['triton', 'try', 'warm'], { codes: [0, 1, 3, 4] });
  const encoder = result.models?.find(({ name }) => name === 'encoder');
  assert.notEqual(encoder?.ready, true);
  return { reason: encoder?.reason, error: result.error };
});

await check("without this GPU's entry it does not load, and the check names it", () => {
  cpSync(at('repo'), at('elsewhere'), { recursive: true });
  const path = at('elsewhere/detector/config.pbtxt');
  const key = capability === '8.9' ? '8.6' : '8.9';
  writeFileSync(path, readFileSync(path, 'utf8').replaceAll(`key: "${capability}"`, `key: "${key}"`));
  const found = trtforge(['triton', 'check', 'elsewhere', '--gpu', sm], { codes: [1] });
  const result = trtforge(['triton', 'try', 'elsewhere'], { codes: [1] });
  const detector = result.models.find(({ name }) => name === 'detector');
  assert.equal(detector.ready, false);
  return { codes: found.findings.map(({ code }) => code), reason: detector.reason };
});

finish();
