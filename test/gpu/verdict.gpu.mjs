// Forges the ResNet-50 shape and the two example networks as they are, in FP16 and in INT8, and holds that healthy engines pass, engines of other weights
// fail, and FP32 is judged as TF32 unless it is off. VERDICT_MODELS names a folder of further models: NAME.onnx, its samples NAME.npz, NAME.other.onnx
// (other weights) and NAME.profile (an option of forge).
//
//   TENSORRT_HOME=/tmp/tensorrt node test/gpu/verdict.gpu.mjs
//
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeNpz } from '../../dist/formats/tensor/npz.js';
import { tensorFrom } from '../../dist/formats/tensor/tensor.js';
import { openChecks, programsIn } from './harness.mjs';

const { folder, check, finish } = openChecks();
const { ran, trtforge } = programsIn(folder);

/** What deserves a verdict: a model, another one of the same shapes, samples, and what else its build needs. */
function generated() {
  for (const seed of [1, 2])
    ran('build/examples/models/main.js', [
      'resnet50',
      '--size',
      'small',
      '--seed',
      `${seed}`,
      '-o',
      `resnet50.${seed}.onnx`,
    ]);
  const pixels = Float32Array.from(
    { length: 8 * 3 * 64 * 64 },
    (_, at) => 2 * Math.sin(at * 0.7) * Math.cos(at / 97),
  );
  writeNpz(join(folder, 'resnet50.npz'), new Map([['input', tensorFrom('float32', [8, 3, 64, 64], pixels)]]));
  return {
    name: 'resnet50',
    model: 'resnet50.1.onnx',
    other: 'resnet50.2.onnx',
    samples: 'resnet50.npz',
    options: ['--profile', 'input:1x3x64x64'],
  };
}

function fromFolder(path) {
  if (path === undefined) return [];
  const names = readdirSync(path)
    .filter((file) => file.endsWith('.npz'))
    .map((file) => file.slice(0, -4));
  return names.map((name) => ({
    name,
    model: join(path, `${name}.onnx`),
    other: join(path, `${name}.other.onnx`),
    samples: join(path, `${name}.npz`),
    options: readFileSync(join(path, `${name}.profile`), 'utf8')
      .trim()
      .split(/\s+/),
  }));
}

const forged = (name, model, options) =>
  trtforge(['forge', model, '--target', 'tensorrt', '--skip', 'bench', '--run-root', name, ...options], {
    codes: [0, 1, 4],
  });

const shown = ({ verdict, verification, engineVerification }) => ({
  outcome: verdict.outcome,
  reasons: verdict.reasons.slice(0, 3),
  model: verification?.outcome ?? null,
  engine: engineVerification?.outcome ?? null,
  precision: engineVerification?.precision ?? null,
  checks: (engineVerification ?? verification)?.outputs.flatMap(({ name, checks }) =>
    checks.map(
      ({ statistic, measured, limit }) =>
        `${name} ${statistic} ${Number(measured).toPrecision(3)} of ${limit.toPrecision(3)}`,
    ),
  ),
});

for (const { name, model, other, samples, options } of [
  generated(),
  ...fromFolder(process.env.VERDICT_MODELS),
]) {
  const ways = [
    ['as it is', 'tf32', ['--inputs', samples]],
    ['fp16', 'fp16', ['--precision', 'fp16', '--inputs', samples]],
    ['int8', 'int8', ['--precision', 'int8', '--calibration', samples]],
  ];
  for (const [way, precision, more] of ways) {
    let engine;
    await check(`${name} ${way}: a healthy engine passes`, () => {
      const result = forged(`${name}-${precision}`, model, [...options, ...more]);
      engine = result.engine;
      const facts = shown(result);
      assert.equal(facts.outcome, 'pass', JSON.stringify(facts));
      assert.equal(facts.precision, precision);
      return facts;
    });
    if (engine !== undefined && (existsSync(join(folder, other)) || existsSync(other)))
      await check(`${name} ${way}: it fails beside other weights`, () => {
        const { outcome } = trtforge(['verify', engine, '--against', other, '--inputs', samples], {
          codes: [1],
        });
        assert.equal(outcome, 'fail');
        return { outcome };
      });
  }
}

await check('with TF32 off the bound of FP32 holds', () => {
  const result = forged('off', 'resnet50.1.onnx', [
    '--profile',
    'input:1x3x64x64',
    '--builder-config',
    'flags=no-tf32',
  ]);
  const facts = shown(result);
  assert.equal(facts.outcome, 'pass', JSON.stringify(facts));
  assert.equal(facts.precision, 'fp32');
  return facts;
});

finish();
