// ONNX models on ONNX Runtime's CUDA provider on a real GPU, by the command line alone: numbers beside the CPU's, TF32 off and on, nodes that stay on the
// CPU, the closed loop, times, and what is refused. One JSON line per check.
//
//   npm run build && npm run build:examples && npm run build:native
//   node test/gpu/ort-cuda.gpu.mjs      (the provider's libraries beside onnxruntime-node, theirs in LD_LIBRARY_PATH: docs/running.md)
//
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here. Without the provider's libraries all is skipped.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { toBinary } from '@bufbuild/protobuf';
import { openOrtSession } from '../../dist/engines/runtime/onnxruntime/ort-session.js';
import { buildModel, GraphBuilder } from '../../dist/formats/onnx/builder.js';
import { ModelProtoSchema } from '../../dist/formats/onnx/onnx_pb.js';
import { openChecks, programsIn } from './harness.mjs';

const { folder, check, skip, finish } = openChecks();
const at = (name) => join(folder, name);
const CHUNKS = 40;
const streaming = at('encoder_streaming.onnx');
const resnet = at('resnet50.onnx');

const { ran, trtforge } = programsIn(folder);

/** One node of the CPU between two of the GPU: `Det` has no CUDA kernel. */
function mixedModel() {
  const graph = new GraphBuilder('mixed');
  graph.input('x', 'float32', [2, 2]);
  graph.node('Relu', { inputs: ['x'], outputs: ['r'] });
  graph.node('Det', { inputs: ['r'], outputs: ['d'] });
  graph.node('Relu', { inputs: ['d'], outputs: ['y'] });
  graph.output('y', 'float32', []);
  writeFileSync(at('mixed.onnx'), toBinary(ModelProtoSchema, buildModel(graph).proto));
  return at('mixed.onnx');
}

let missing;
try {
  const session = await openOrtSession(mixedModel(), { provider: 'cuda' });
  await session.close();
} catch (error) {
  missing = error.message;
}
if (missing !== undefined) {
  skip('models on ONNX Runtime CUDA', missing);
  finish();
}

await check('a streaming encoder with a recording of the CPU, and ResNet-50', () => {
  ran('build/examples/models/main.js', ['streaming-encoder', '--size', 'small', '-o', folder]);
  ran('build/examples/models/main.js', ['resnet50', '--size', 'full', '-o', resnet]);
  const contract = at('encoder_streaming.contract.json');
  const words = ['--contract', contract, '--chunks', `${CHUNKS}`, '--seed', '42', '-o', at('reference')];
  assert.equal(trtforge(['stream', 'record', streaming, ...words]).chunks, CHUNKS);
});

/** The closed loop on CUDA against the CPU's recording. */
function verify(more) {
  const result = trtforge(
    [
      ...['stream', 'verify', streaming, '--reference', at('reference')],
      ...['--contract', at('encoder_streaming.contract.json'), '--mode', 'closed-loop', '--provider', 'cuda'],
    ],
    { codes: [0, 1], ...more },
  );
  assert.equal(result.verdicts.contract, 'pass');
  return result;
}

await check('closed loop: CUDA agrees with the CPU in full float32, and only with TF32 off', () => {
  const exact = verify();
  assert.match(exact.candidateBackend, /\(CUDA, GPU 0\)$/);
  assert.deepEqual([exact.outcome, exact.verdicts.numeric], ['pass', 'pass']);
  assert.ok(exact.drift.max > 0, 'bit for bit what the CPU gives: was it the CPU?');
  const loose = verify({ env: { NVIDIA_TF32_OVERRIDE: '1' } });
  assert.match(loose.candidateBackend, /\(CUDA, GPU 0, TF32 allowed\)$/);
  assert.ok(loose.drift.max > 20 * exact.drift.max, `${loose.drift.max} beside ${exact.drift.max}`);
  const told = ({ drift, verdicts, warnings, explanations, profile }) => ({
    max: drift.max,
    mean: drift.mean,
    verdicts,
    warnings,
    explained: explanations?.map(({ id }) => id),
    profile,
  });
  return { exact: told(exact), tf32: told(loose) };
});

/** Runs a model on seeded inputs in a batch of 4; gives the outputs' file and what was said. */
function run(model, provider, name, env = {}) {
  const file = at(`${name}.npz`);
  const { stderr } = ran(
    'dist/main.js',
    [
      ...['run', model, '--inputs', 'random', '--seed', '7', '--shapes', 'input:4x3x224x224'],
      ...['--provider', provider, '-o', file],
    ],
    { env },
  );
  return { file, warnings: stderr.split('\n').filter((line) => /nodes ran on the CPU/.test(line)) };
}
/** The greatest difference of the only output from the CPU's. */
function maxBeside(file) {
  const { outputs } = trtforge(['compare', file, at('cpu.npz')], { codes: [0, 1, 4] });
  return outputs[0].statistics.find(({ name }) => name === 'max').amount;
}

await check('run: ResNet-50 beside the CPU, TF32 off as it comes and on as asked', () => {
  run(resnet, 'cpu', 'cpu');
  const { file, warnings } = run(resnet, 'cuda', 'cuda');
  const exact = maxBeside(file);
  const tf32 = maxBeside(run(resnet, 'cuda', 'tf32', { NVIDIA_TF32_OVERRIDE: '1' }).file);
  assert.ok(tf32 > 20 * exact, `${tf32} beside ${exact}`);
  return { exact, tf32, warnings };
});

await check('bench: faster than the CPU, and it says where nodes ran', () => {
  const bench = (provider) =>
    trtforge([
      ...['bench', 'model', resnet, '--shapes', 'input:4x3x224x224', '--duration', '2'],
      ...['--provider', provider],
    ]);
  const [cpu, cuda] = [bench('cpu'), bench('cuda')];
  assert.match(cuda.backend, /\(CUDA, GPU 0\)$/);
  assert.ok(cuda.qps > cpu.qps, `${cuda.qps} beside ${cpu.qps}`);
  return { cpuMs: cpu.endToEndMs.median, cudaMs: cuda.endToEndMs.median, warnings: cuda.warnings };
});

await check('a node without a CUDA kernel runs on the CPU and is told', async () => {
  const session = await openOrtSession(mixedModel(), { provider: 'cuda' });
  const bytes = new Uint8Array(new Float32Array([1, 2, 3, 5]).buffer);
  await session.run(new Map([['x', { dtype: 'float32', shape: [2, 2], bytes }]]));
  const placement = await session.placement();
  await session.close();
  assert.deepEqual(placement, { onGpu: 2, onCpu: 1, cpuOperators: ['Det'] });
});

await check('a GPU that is not there is an error, never the CPU', () => {
  const refused = (words, env) => {
    const { stderr } = ran(
      'dist/main.js',
      ['run', mixedModel(), '--inputs', 'random', '--provider', 'cuda', ...words, '-o', at('no.npz')],
      { codes: [3], env },
    );
    const [said] = /ONNX Runtime cannot use GPU .*$/m.exec(stderr) ?? [stderr];
    assert.match(said, /^ONNX Runtime cannot use GPU \d: CUDA failure 10\d: [a-zA-Z- ]+\.$/);
    return said;
  };
  return { device9: refused(['--device', '9']), hidden: refused([], { CUDA_VISIBLE_DEVICES: '' }) };
});

await check('half precision is computed as it is, not in float32 and rounded', () => {
  const half = at('resnet50.fp16.onnx');
  trtforge(['convert', resnet, '--precision', 'fp16', '-o', half]);
  const [rounded, cuda] = ['cpu', 'cuda'].map((provider) =>
    maxBeside(run(half, provider, `fp16-${provider}`).file),
  );
  assert.ok(cuda > 0 && cuda < 100 * rounded, `${cuda} beside ${rounded}`);
  return { rounded, cuda };
});

finish();
