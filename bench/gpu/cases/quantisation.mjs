import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openOrtSession } from '../../../dist/engines/runtime/onnxruntime/ort-session.js';
import { openEngineSession } from '../../../dist/engines/runtime/tensorrt/engine-session.js';
import { readNpz } from '../../../dist/formats/tensor/npz.js';
import { float32Values } from '../../../dist/formats/tensor/tensor.js';
import { benchCompare } from '../../../dist/quality/bench/compare.js';
import { benchRequest } from '../bench-request.mjs';
import { figure } from '../figures.mjs';
import { evaluated } from './feed.mjs';

const implicit = fileURLToPath(new URL('../implicit_int8.py', import.meta.url));
const MODE = { transfers: false, graph: true };

/**
 * The models that `npm run bench -- --only quantisation` leaves in build/bench-quantisation (QUANTISED names another folder): latency at batch 1 of each
 * beside TensorRT's own implicit INT8 of the FP32 model, calibrated with the same samples, and the accuracy of both as engines.
 */
export async function quantisation(machine, tell, problem) {
  const folder = process.env.QUANTISED ?? join(machine.root, 'build', 'bench-quantisation');
  const list = join(folder, 'models.json');
  if (!existsSync(list)) {
    problem(
      `${list} does not exist: run npm run bench -- --only quantisation, or name the folder in QUANTISED`,
    );
    return;
  }
  // Paths are those of the machine that made them.
  const at = (path) => (existsSync(path) ? path : join(folder, path.split('bench-quantisation/').at(-1)));
  for (const subject of JSON.parse(readFileSync(list, 'utf8'))) {
    const name = subject.title.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
    let peer = null;
    for (const algorithm of ['entropy', 'minmax']) {
      try {
        const plan = implicitPlan(
          machine,
          `${name}.implicit-${algorithm}`,
          at(subject.model),
          at(subject.samples),
          algorithm,
        );
        peer ??= plan;
        tell(
          figure(
            `${subject.title}, implicit INT8 (${algorithm}): ${await accuracy(machine, subject, plan, at)}`,
            '',
            null,
            null,
          ),
        );
      } catch (error) {
        problem(`${subject.title}, implicit INT8 (${algorithm}): ${error.message.split('\n')[0]}`);
      }
    }
    for (const row of subject.rows) {
      try {
        const plan = await typedPlan(
          machine,
          `${name}.${row.name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}`,
          at(row.file),
          subject.profile,
        );
        const what = `${subject.title}, ${row.name}: ${await accuracy(machine, subject, plan, at)}`;
        const limit = row.name.startsWith('INT8, trtforge') ? { atMost: 1.05 } : {};
        tell(
          peer === null
            ? figure(what, 'ms', null, null)
            : await beside(machine, what, plan, peer, subject.profile, limit),
        );
      } catch (error) {
        problem(
          `${subject.title}, ${row.name}: ${error.code ?? error.name}: ${error.message.split('\n')[0]}`,
        );
      }
    }
  }
}

function implicitPlan(machine, name, model, samples, algorithm) {
  const plan = join(machine.work, `${name}.engine`);
  if (existsSync(plan)) return plan;
  const { status, stderr, error } = spawnSync(
    process.env.PYTHON || 'python3',
    [implicit, model, plan, samples, algorithm],
    { env: machine.environment, encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(error?.message ?? stderr.trim().split('\n').at(-1));
  return plan;
}

const typedPlan = (machine, name, model, profile) =>
  machine.plan(
    name,
    () => model,
    machine.recipe(
      Object.fromEntries(
        Object.entries(profile).map(([input, dims]) => [
          input,
          { min: dims, opt: dims, max: dims, values: false },
        ]),
      ),
    ),
    null,
  );

/** Median GPU time in turns; `peer` is the implicit engine. */
async function beside(machine, what, plan, peer, profile, limit) {
  const request = (engine) => benchRequest(engine, profile, MODE, 2000);
  const { candidate, reference } = await benchCompare(
    { candidate: request(plan), reference: request(peer), rounds: machine.rounds, failAbove: undefined },
    machine.context(),
  );
  return figure(what, 'ms', candidate.gpuMs.median, reference.gpuMs.median, limit);
}

/** `mAP 0.70` of a detector, else the signal-to-noise ratio of the first output against FP32 on ONNX Runtime. */
async function accuracy(machine, { model, unseen, scenes }, plan, at) {
  if (scenes !== undefined) {
    const answer = evaluated(machine, plan, at(scenes));
    return `mAP ${answer.metrics.mAP_50_95.toFixed(4)}`;
  }
  const samples = rowsOf(readNpz(at(unseen)));
  const expected = await outputs(await openOrtSession(at(model)), samples);
  const { environment, toolchain } = machine;
  const found = await outputs(
    await openEngineSession(plan, { requirePassport: false, environment, toolchain }),
    samples,
  );
  let [signal, noise] = [0, 0];
  for (const [place, sample] of samples.entries()) {
    const mask = sample.get('attention_mask');
    const words = mask && new BigInt64Array(mask.bytes.buffer, mask.bytes.byteOffset, mask.bytes.length / 8);
    const [truth, got] = [expected[place], found[place]];
    for (let value = 0; value < truth.length; value++) {
      if (words?.[Math.floor((value * words.length) / truth.length)] === 0n) continue;
      signal += truth[value] ** 2;
      noise += (got[value] - truth[value]) ** 2;
    }
  }
  return `SQNR ${(10 * Math.log10(signal / noise)).toFixed(2)} dB`;
}

function rowsOf(arrays) {
  const count = [...arrays.values()][0].shape[0];
  return Array.from(
    { length: count },
    (_, row) =>
      new Map(
        [...arrays].map(([name, { dtype, shape, bytes }]) => {
          const size = bytes.length / count;
          return [
            name,
            { dtype, shape: [1, ...shape.slice(1)], bytes: bytes.slice(row * size, (row + 1) * size) },
          ];
        }),
      ),
  );
}

/** The first output for each sample; closes the session. */
async function outputs(session, samples) {
  try {
    const [{ name }] = session.outputs;
    const values = [];
    for (const sample of samples)
      values.push(Float32Array.from(float32Values((await session.run(sample)).get(name))));
    return values;
  } finally {
    await session.close();
  }
}
