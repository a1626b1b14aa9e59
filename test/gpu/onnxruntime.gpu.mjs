// ONNX models on ONNX Runtime's CUDA and TensorRT providers on a real GPU: numbers beside the CPU's, TF32 off and on, placement and what falls back, caches, profiles,
// tensors that stay on the GPU, engines there and back (EPContext), and what is refused. One JSON line per check.
//
//   npm run build && npm run build:examples && npm run build:native
//   ORT_HOME=…/onnxruntime/capi node test/gpu/onnxruntime.gpu.mjs     (TensorRT 10, CUDA and cuDNN in LD_LIBRARY_PATH: docs/onnxruntime.md)
//
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here. What a provider is missing for is skipped by name.
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { toBinary } from '@bufbuild/protobuf';
import { openOrtSession } from '../../dist/engines/runtime/onnxruntime/ort-session.js';
import { buildModel, GraphBuilder } from '../../dist/formats/onnx/builder.js';
import { ModelProtoSchema } from '../../dist/formats/onnx/onnx_pb.js';
import { writeNpz } from '../../dist/formats/tensor/npz.js';
import { float32Values, tensorFrom } from '../../dist/formats/tensor/tensor.js';
import { openChecks, programsIn } from './harness.mjs';

const { folder, major, check, skip, finish } = openChecks();
const at = (name) => join(folder, name);
const { ran, trtforge } = programsIn(folder);
const CHUNKS = 40;
const streaming = at('encoder_streaming.onnx');
const resnet = at('resnet50.onnx');
/** Quick to build, for what does not depend on the size. */
const small = at('small.onnx');
/** The same numbers for a model, an engine and a model that wraps one: of the last two nothing shows that they take images. */
const random = (size) => [
  ...['--inputs', 'random', '--seed', '7', '--val-range', '[0,1]'],
  ...['--shapes', `input:4x3x${size}x${size}`],
];
const BATCH = random(224);
const SMALL_BATCH = random(64);
/** Every build by the provider but those about caches starts from what an earlier one timed. */
const timings = at('timings');
mkdirSync(timings);
const TIMINGS = { trt_timing_cache_enable: '1', trt_timing_cache_path: timings };
const option = (settings) =>
  Object.entries(settings).flatMap(([key, value]) => ['--provider-option', `${key}=${value}`]);
const floats = (shape, values) => tensorFrom('float32', shape, Float32Array.from(values));

function model(name, build) {
  const graph = new GraphBuilder(name);
  build(graph);
  writeFileSync(at(`${name}.onnx`), toBinary(ModelProtoSchema, buildModel(graph).proto));
  return at(`${name}.onnx`);
}
/** `Det` has no kernel on a GPU. */
const mixed = model('mixed', (graph) => {
  graph.input('x', 'float32', [2, 2]);
  graph.node('Relu', { name: 'first', inputs: ['x'], outputs: ['r'] });
  graph.node('Det', { name: 'det', inputs: ['r'], outputs: ['d'] });
  graph.node('Relu', { name: 'last', inputs: ['d'], outputs: ['y'] });
  graph.output('y', 'float32', []);
});
const adder = model('adder', (graph) => {
  graph.input('x', 'float32', [1, 1024]);
  graph.input('sum', 'float32', [1, 1024]);
  graph.node('Add', { name: 'add', inputs: ['x', 'sum'], outputs: ['next'] });
  graph.node('Neg', { name: 'neg', inputs: ['next'], outputs: ['y'] });
  graph.output('next', 'float32', [1, 1024]);
  graph.output('y', 'float32', [1, 1024]);
});

await check('doctor lists the libraries and what their providers lack', () => {
  const { onnxRuntime } = trtforge(['doctor'], { codes: [0, 3] });
  assert.ok(
    onnxRuntime.length > 0 && onnxRuntime.every(({ why }) => why === null),
    JSON.stringify(onnxRuntime),
  );
  return { onnxRuntime };
});

const providers = [];
for (const provider of ['cuda', 'tensorrt']) {
  try {
    await (await openOrtSession(adder, { provider })).close();
    providers.push(provider);
  } catch (error) {
    skip(`models on ONNX Runtime's provider ${provider}`, error.message);
  }
}
if (providers.length === 0) finish();

await check('a streaming encoder with a recording of the CPU, and ResNet-50 with outputs of the CPU', () => {
  ran('build/examples/models/main.js', ['streaming-encoder', '--size', 'small', '-o', folder]);
  ran('build/examples/models/main.js', ['resnet50', '--size', 'full', '-o', resnet]);
  ran('build/examples/models/main.js', ['resnet50', '--size', 'small', '-o', small]);
  const contract = at('encoder_streaming.contract.json');
  const words = ['--contract', contract, '--chunks', `${CHUNKS}`, '--seed', '42', '-o', at('reference')];
  assert.equal(trtforge(['stream', 'record', streaming, ...words]).chunks, CHUNKS);
  trtforge(['run', resnet, ...BATCH, '-o', at('cpu.npz')]);
  trtforge(['run', small, ...SMALL_BATCH, '-o', at('small-cpu.npz')]);
});

/** Runs a model on a provider; gives the result and the greatest difference of its output from the CPU's. */
function runOn(provider, subject, inputs, expected, settings) {
  const { onnxRuntime, backend, times } = trtforge([
    ...['run', subject, ...inputs, '--provider', provider, ...option(settings), '-o', at('out.npz')],
  ]);
  return { max: difference('out.npz', expected), onnxRuntime, backend, times };
}
const resnetOn = (provider, settings = {}, subject = resnet) =>
  runOn(
    provider,
    subject,
    BATCH,
    'cpu.npz',
    provider === 'tensorrt' ? { ...TIMINGS, ...settings } : settings,
  );
const smallOn = (settings, subject = small) =>
  runOn('tensorrt', subject, SMALL_BATCH, 'small-cpu.npz', { ...TIMINGS, ...settings });

function difference(found, expected) {
  const { outputs } = trtforge(['compare', at(found), at(expected)], { codes: [0, 1, 4] });
  return outputs[0].statistics.find(({ name }) => name === 'max').amount;
}

for (const provider of providers) {
  const own = provider === 'cuda' ? 'CUDAExecutionProvider' : 'TensorrtExecutionProvider';

  await check(`${provider}: every node of ResNet-50 is there, and TF32 is off until it is allowed`, () => {
    const exact = resnetOn(provider);
    assert.deepEqual(exact.onnxRuntime.placement.fallback, []);
    assert.deepEqual(
      exact.onnxRuntime.placement.providers.map((each) => each.provider),
      [own],
    );
    assert.equal(exact.onnxRuntime.tf32, false);
    assert.ok(exact.max > 0, 'bit for bit what the CPU gives: was it the CPU?');
    const loose = resnetOn(provider, { use_tf32: '1' });
    assert.match(loose.backend, /TF32 allowed/);
    assert.ok(loose.max > 5 * exact.max, `${loose.max} beside ${exact.max}`);
    const { placement, ...library } = exact.onnxRuntime;
    return { exact: exact.max, tf32: loose.max, backend: exact.backend, library, nodes: placement.providers };
  });

  await check(`${provider}: the ranges of a calibration are those of the CPU`, () => {
    const rangesOn = (words, name) => {
      const cache = at(`${name}.json`);
      const files = ['-o', at('calibrated.onnx'), '--calibration-cache', cache];
      trtforge(['convert', small, '--precision', 'int8', '--calibration', samples, ...files, ...words]);
      return JSON.parse(readFileSync(cache, 'utf8')).ranges;
    };
    const samples = at('calibration.npz');
    const values = Float32Array.from({ length: 8 * 3 * 64 * 64 }, (_, i) => Math.sin(i * 12.9898));
    writeNpz(samples, new Map([['input', floats([8, 3, 64, 64], values)]]));
    const cpu = rangesOn([], 'cpu-ranges');
    const gpu = rangesOn(['--provider', provider], `${provider}-ranges`);
    assert.deepEqual(Object.keys(gpu), Object.keys(cpu));
    const off = Object.keys(cpu).map((name) => Math.abs(gpu[name].max / cpu[name].max - 1));
    const worst = Math.max(...off);
    assert.ok(worst > 0 && worst < 0.01, `${worst}`);
    return { tensors: off.length, worst };
  });

  await check(`${provider}: the closed loop of a streaming encoder agrees with the CPU`, () => {
    const words = ['--reference', at('reference'), '--contract', at('encoder_streaming.contract.json')];
    const result = trtforge(
      [
        'stream',
        'verify',
        streaming,
        ...words,
        '--mode',
        'closed-loop',
        '--provider',
        provider,
        '--allow-fallback',
      ],
      { codes: [0, 1] },
    );
    assert.equal(result.verdicts.contract, 'pass');
    assert.equal(result.verdicts.numeric, 'pass');
    return { drift: result.drift.max, warnings: result.warnings, backend: result.candidateBackend };
  });

  await check(
    `${provider}: a node that it does not take is an error by name, and a record where it is allowed`,
    async () => {
      const refusal = await openOrtSession(mixed, { provider }).then(
        (session) => session.close().then(() => assert.fail('it was opened')),
        (error) => error,
      );
      assert.equal(refusal.code, 'TF_PROVIDER_FALLBACK', refusal.message);
      assert.match(refusal.message, /\(Det\)/);
      const session = await openOrtSession(mixed, { provider, allowFallback: true });
      const outputs = await session.run(new Map([['x', floats([2, 2], [1, 2, 3, 5])]]));
      assert.deepEqual([...float32Values(outputs.get('y'))], [0]);
      const { placement } = await session.facts();
      await session.close();
      assert.ok(placement.fallback.some(({ operator }) => operator === 'Det'));
      return { message: refusal.message, placement };
    },
  );

  await check(`${provider}: state stays on the GPU from run to run`, async () => {
    const session = await openOrtSession(adder, { provider });
    const x = floats(
      [1, 1024],
      Array.from({ length: 1024 }, (_, at) => at),
    );
    const zeros = floats([1, 1024], new Array(1024).fill(0));
    const state = { sum: 'next' };
    for (let step = 1; step <= 5; step++) {
      const inputs = new Map(
        step === 1
          ? [
              ['x', x],
              ['sum', zeros],
            ]
          : [['x', x]],
      );
      const outputs = await session.run(inputs, { state });
      assert.deepEqual([...outputs.keys()], ['y']);
      assert.equal(float32Values(outputs.get('y'))[3], -3 * step);
    }
    await session.close();
  });

  await check(`${provider}: bench without transfers is faster, and faster than the CPU`, () => {
    const bench = (...words) =>
      trtforge(['bench', 'model', resnet, '--shapes', 'input:4x3x224x224', '--duration', '2', ...words]);
    const cpu = bench();
    const copied = bench('--provider', provider);
    const resident = bench('--provider', provider, '--no-data-transfers');
    const [cpuMs, copiedMs, residentMs] = [cpu, copied, resident].map(({ endToEndMs }) => endToEndMs.median);
    assert.ok(residentMs < copiedMs && copiedMs < cpuMs, `${residentMs}, ${copiedMs}, ${cpuMs}`);
    return { cpuMs, copiedMs, residentMs };
  });

  await check(`${provider}: a GPU that is not there and a value that it rejects are errors`, () => {
    const refused = (words, code, env) => {
      const answer = trtforge(['run', adder, '--inputs', 'random', '--provider', provider, ...words], {
        codes: [2, 3],
        env,
      });
      assert.equal(answer.error.code, code, answer.error.message);
      return answer.error.message;
    };
    const key = provider === 'cuda' ? 'gpu_mem_limit' : 'trt_max_workspace_size';
    return {
      device9: refused(['--device', '9'], 'TF_GPU_UNAVAILABLE'),
      hidden: refused([], 'TF_GPU_UNAVAILABLE', { CUDA_VISIBLE_DEVICES: '' }),
      value: refused(option({ [key]: 'much' }), 'TF_USAGE'),
    };
  });

  await check(`${provider}: 16-bit types are computed as they are, and cross`, () => {
    const half = at('resnet50.fp16.onnx');
    trtforge(['convert', resnet, '--precision', 'fp16', '-o', half]);
    const { max } = resnetOn(provider, {}, half);
    assert.ok(max > 0 && max < 0.5, `${max}`);
    return { max };
  });
}

if (providers.includes('tensorrt')) {
  const cache = at('cache-of-the-provider');
  mkdirSync(cache);
  const caches = {
    trt_engine_cache_enable: '1',
    trt_engine_cache_path: cache,
    trt_timing_cache_enable: '1',
    trt_timing_cache_path: cache,
  };
  await check(
    'tensorrt: engine cache and timing cache are written, and the second session builds nothing',
    () => {
      const first = smallOn(caches);
      const files = readdirSync(cache);
      assert.ok(
        files.some((name) => name.endsWith('.engine')) && files.some((name) => name.endsWith('.timing')),
        files.join(),
      );
      const written = files.map((name) => statSync(join(cache, name)).mtimeMs);
      const second = smallOn(caches);
      const engines = files.filter((name) => name.endsWith('.engine'));
      assert.deepEqual(
        readdirSync(cache).filter((name) => name.endsWith('.engine')),
        engines,
      );
      // An engine for open dimensions is built in the first run.
      const [built, found] = [first, second].map(({ times }) => times.openMs + times.first);
      assert.ok(found < built / 2, `${found} ms after ${built} ms`);
      assert.equal(second.max, first.max);
      return { files, builtMs: built, foundMs: found, written: written.length };
    },
  );

  await check('tensorrt: precision flags and profile shapes arrive', () => {
    const shapes = (batch) => `input:${batch}x3x64x64`;
    const { max, onnxRuntime } = smallOn({
      trt_fp16_enable: '1',
      trt_profile_min_shapes: shapes(1),
      trt_profile_opt_shapes: shapes(4),
      trt_profile_max_shapes: shapes(8),
    });
    assert.ok(max > 1e-4 && max < 0.5, `${max}`);
    return { max, options: onnxRuntime.providerOptions };
  });

  for (const mode of ['0', '1'])
    await check(
      `tensorrt: its EPContext model (embed mode ${mode}) is read, and the plan in it runs on TensorRT`,
      () => {
        const context = at(`context${mode}`);
        mkdirSync(context);
        const file = join(context, 'resnet_ctx.onnx');
        smallOn({
          trt_dump_ep_context_model: '1',
          trt_ep_context_file_path: file,
          trt_ep_context_embed_mode: mode,
          ...(mode === '0' ? { trt_engine_cache_enable: '1', trt_engine_cache_path: '.' } : {}),
        });
        const facts = trtforge(['engine', 'inspect', file]).engines[0];
        assert.equal(facts.product, 'tensorrt');
        const again = smallOn({}, file);
        let plan = facts.file;
        if (mode === '1') {
          plan = join(context, 'model.plan');
          trtforge(['engine', 'strip-header', file, '-o', plan]);
        }
        trtforge(['run', plan, ...SMALL_BATCH, '-o', at('plan.npz')]);
        const max = difference('plan.npz', 'small-cpu.npz');
        assert.ok(max < 0.05, `${max}`);
        return { version: facts.version, planBytes: facts.planBytes, onRuntime: again.max, onTensorrt: max };
      },
    );

  if (major === 10)
    await check(
      'tensorrt: an engine of trtforge runs there, with the numbers that it has on TensorRT',
      () => {
        const built = trtforge(['build', small, '--batch', '1/4/8', '-o', at('small.engine')]);
        const exported = trtforge(['cache', 'export', at('exported'), '--as', 'onnxruntime']);
        const plan = exported.engines[0].path;
        const wrapped = plan.replace(/\.[^.]+$/, '.onnx');
        const there = smallOn({}, wrapped);
        trtforge(['run', built.engine, ...SMALL_BATCH, '-o', at('here.npz')]);
        const max = difference('out.npz', 'here.npz');
        assert.ok(max <= 1e-6, `${max}`);
        return { differenceFromTensorrt: max, openMs: there.times.openMs, wrapped };
      },
    );
  else
    skip(
      'tensorrt: an engine of trtforge runs there',
      'the provider loads TensorRT 10, and the toolchain here is another',
    );
}

finish();
