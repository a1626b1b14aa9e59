// Builds engines with a known answer (FP32 with TF32, FP16, INT8) and lets them prove themselves: healthy ones pass, in time; a plan of other weights under the
// same passport fails, at load too; engines of others get an answer; a rebuilt one gives the same; the store is checked.
// ANSWER_MODELS names a folder of models: NAME/NAME.onnx, NAME.npz (samples), NAME.other.onnx (other weights) and NAME.profile (an option of build);
// ANSWER_ONLY, which of them (`resnet50` is generated), ANSWER_KEEP, where engines are kept.
//
//   TENSORRT_HOME=/tmp/tensorrt node test/gpu/known-answer.gpu.mjs
//
// Exit code 0 when every check passed, 1 when one failed, 3 when there is no GPU or no TensorRT here.
import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sha256OfFile } from '../../dist/base/files/digest.js';
import { writeNpz } from '../../dist/formats/tensor/npz.js';
import { tensorFrom } from '../../dist/formats/tensor/tensor.js';
import { openEngineSession } from '../../dist/index.js';
import { openChecks, programsIn, refused } from './harness.mjs';

const { folder, check, finish } = openChecks();
const { ran, trtforge } = programsIn(folder);
const only = process.env.ANSWER_ONLY?.split(',');

/** ResNet-50 in full, with samples of smooth noise. */
function resnet50() {
  for (const seed of [1, 2])
    ran('build/examples/models/main.js', [
      'resnet50',
      '--size',
      'full',
      '--seed',
      `${seed}`,
      '-o',
      `resnet50.${seed}.onnx`,
    ]);
  const pixels = Float32Array.from(
    { length: 8 * 3 * 224 * 224 },
    (_, at) => 2 * Math.sin(at * 0.7) * Math.cos(at / 97),
  );
  writeNpz(
    join(folder, 'resnet50.npz'),
    new Map([['input', tensorFrom('float32', [8, 3, 224, 224], pixels)]]),
  );
  return {
    name: 'resnet50',
    model: join(folder, 'resnet50.1.onnx'),
    other: join(folder, 'resnet50.2.onnx'),
    samples: join(folder, 'resnet50.npz'),
    options: ['--batch', '1/8/32'],
  };
}

const fromFolder = (name) => {
  const path = join(process.env.ANSWER_MODELS, name, name);
  const options = readFileSync(`${path}.profile`, 'utf8').trim().split(/\s+/);
  return { name, model: `${path}.onnx`, other: `${path}.other.onnx`, samples: `${path}.npz`, options };
};

const build = (model, name, options) => {
  const engine = join(folder, `${name}.engine`);
  trtforge(['build', model, '--target', 'tensorrt', '--known-answer', '-o', engine, ...options]);
  return engine;
};
const passportOf = (engine) => JSON.parse(readFileSync(`${engine}.passport.json`, 'utf8'));
const checked = (words, codes) => trtforge(['engine', 'check', ...words], { codes });
const shown = ({ outcome, reasons, checks, ms, next }) => ({
  outcome,
  reasons: reasons.slice(0, 3),
  ms: Math.round(ms),
  checks: checks.map(({ id, case: of, outcome: one, bitwise, ms: took }) =>
    [id, of, one, bitwise === null ? '' : bitwise ? 'bitwise' : 'not bitwise', `${took.toFixed(1)} ms`].join(
      ' ',
    ),
  ),
  next,
});
const measuredOf = ({ knownAnswer }) =>
  knownAnswer?.cases.flatMap(({ name, outputs }) =>
    outputs.map(({ name: output, limit, measured }) =>
      measured === null
        ? `${name} ${output}`
        : `${name} ${output} ${measured.rms.toPrecision(2)} of ${limit.rms.toPrecision(2)}, ${measured.max.toPrecision(2)} of ${limit.max.toPrecision(2)}`,
    ),
  );

const names = only ?? ['resnet50'];
for (const name of names) {
  const { model, other, samples, options } = name === 'resnet50' ? resnet50() : fromFolder(name);
  const ways = {
    tf32: [],
    fp16: ['--precision', 'fp16'],
    int8: ['--precision', 'int8', '--calibration', samples],
  };
  for (const [way, more] of Object.entries(ways)) {
    let engine;
    await check(`${name} ${way}: the build records an answer, and the engine gives it`, () => {
      engine = build(model, `${name}-${way}`, [...options, ...more]);
      const passport = passportOf(engine);
      const { knownAnswer } = passport;
      assert.ok(knownAnswer, 'the passport has no known answer');
      assert.ok(JSON.stringify(knownAnswer).length <= 20_500);
      const result = checked([engine], [0, 1, 4]);
      const { cases, left, rows, state, precision } = knownAnswer;
      const facts = {
        ...shown(result),
        measured: measuredOf(passport),
        left,
        rows,
        states: Object.keys(state).length,
        precision,
      };
      assert.equal(result.outcome, 'pass', JSON.stringify(facts));
      assert.equal(result.answer, 'passport');
      return { ...facts, cases: cases.map((each) => each.name), bytes: JSON.stringify(knownAnswer).length };
    });
    if (engine === undefined) continue;
    if (process.env.ANSWER_KEEP) {
      mkdirSync(process.env.ANSWER_KEEP, { recursive: true });
      for (const end of ['', '.passport.json'])
        if (statSync(`${engine}${end}`).size < 12e6)
          copyFileSync(`${engine}${end}`, join(process.env.ANSWER_KEEP, `${name}-${way}.engine${end}`));
    }
    if (way !== 'fp16') continue;
    await check(
      `${name} ${way}: other weights under the same passport fail, and are refused at load`,
      async () => {
        const wrong = build(other, `${name}-other`, [...options, ...more]);
        const passport = passportOf(engine);
        passport.plan = { ...passport.plan, sha256: sha256OfFile(wrong), bytes: statSync(wrong).size };
        writeFileSync(`${wrong}.passport.json`, JSON.stringify(passport));
        const result = checked([wrong], [1]);
        assert.equal(result.outcome, 'fail');
        const environment = { ...process.env, XDG_CACHE_HOME: join(folder, 'cache') };
        const attempt = openEngineSession(wrong, {
          check: 'refuse',
          environment,
          toolchain: process.env.TENSORRT_HOME,
        });
        await refused('TF_ENGINE_WRONG_ANSWER', /known answer/, attempt);
        const { error } = trtforge(['run', wrong, '--inputs', 'random', '--check', 'refuse'], { codes: [1] });
        assert.equal(error.code, 'TF_ENGINE_WRONG_ANSWER');
        return { ...shown(result), message: error.message };
      },
    );
    await check(`${name} ${way}: an engine without passport gets an answer beside it`, () => {
      const bare = join(folder, `${name}-bare.plan`);
      copyFileSync(engine, bare);
      assert.equal(checked([bare], [4]).answer, null);
      const recorded = checked([bare, '--record', '--against', model, '--precision', 'fp16'], [0]);
      const again = checked([bare], [0]);
      assert.equal(again.answer, 'file');
      rmSync(bare);
      return { recorded: shown(recorded), again: shown(again) };
    });
    await check(`${name} ${way}: a session proves its engine once`, async () => {
      const environment = { ...process.env, XDG_CACHE_HOME: join(folder, 'cache-of-session') };
      const times = [];
      for (const mode of ['off', 'refuse', 'refuse']) {
        const started = performance.now();
        const session = await openEngineSession(engine, {
          check: mode,
          environment,
          toolchain: process.env.TENSORRT_HOME,
        });
        times.push(Math.round(performance.now() - started));
        await session.close();
      }
      return { off: times[0], first: times[1], again: times[2] };
    });
    if (name === names[0])
      await check(`${name} ${way}: built again it gives the same`, () => {
        const result = checked([engine, '--rebuild', '--against', model], [0]);
        assert.equal(result.checks.at(-1).id, 'rebuild');
        return shown(result);
      });
  }
}

await check('doctor names what was not checked, and cache check checks it', () => {
  const before = trtforge(['doctor'], { codes: [0, 3] }).store.unchecked;
  const first = trtforge(['cache', 'check'], { codes: [0] });
  const second = trtforge(['cache', 'check'], { codes: [0] });
  assert.ok(first.engines.length > 0);
  assert.ok(second.engines.every(({ isKnown, outcome }) => isKnown || outcome === null));
  const after = trtforge(['doctor'], { codes: [0, 3] }).store.unchecked;
  assert.deepEqual(after, []);
  return {
    before: before.length,
    first: first.engines.map(({ name, outcome, isKnown }) => `${name} ${outcome} ${isKnown}`),
  };
});

finish();
