import { join } from 'node:path';
import { benchAgainst } from '../../../dist/bench/against.js';
import { openEngineSession } from '../../../dist/runtime/engine-session.js';
import { openOrtSession } from '../../../dist/runtime/ort-session.js';
import { randomStream, randomTensor } from '../../../dist/tensor/random.js';
import { float32Values } from '../../../dist/tensor/values.js';
import { atBatch, benchRequest } from '../bench-request.mjs';
import { figure, median } from '../figures.mjs';
import { models } from '../machine.mjs';

/**
 * Engines of each side. Which kernels a builder takes differs from build to build, and with them time and rounding; so engines are built in pairs that
 * share their timings, each side first in turns: what is left between the two of a pair is what types and casts make of the network.
 */
const PAIRS = { resnet50: 6, encoder: 1 };

/** A batch that a CPU computes in a moment. */
const COMPARED_BATCH = 2;

/** FP16 by trtforge's conversion against TensorRT's own weakly typed FP16 of the same FP32 model: time, and closeness to FP32. */
export async function fp16(machine, tell, problem) {
  if (machine.major !== 10) {
    problem(`TensorRT ${machine.toolchain.version} has not both typed and weakly typed networks`);
    return;
  }
  for (const name of Object.keys(models)) {
    try {
      await oneModel(machine, name, tell);
    } catch (error) {
      problem(`${name}: ${error.code ?? error.name}: ${error.message.split('\n')[0]}`);
    }
  }
}

async function oneModel(machine, name, tell) {
  const { profile, batches } = models[name];
  const sides = {
    typed: [() => machine.converted(name), machine.recipe(profile)],
    weak: [() => machine.model(name), machine.recipe(profile, { stronglyTyped: false, precision: 'fp16' })],
  };
  const pairs = [];
  for (let pair = 0; pair < PAIRS[name]; pair++) {
    const plans = {};
    const order = pair % 2 === 0 ? ['typed', 'weak'] : ['weak', 'typed'];
    for (const side of order)
      plans[side] = await machine.plan(
        `${name}.${side}.${pair}`,
        ...sides[side],
        join(machine.work, `${name}.fp16.${pair}.cache`),
      );
    pairs.push(plans);
  }
  const truth = await reference32(machine, name, profile);
  const distances = [];
  for (const { typed, weak } of pairs) {
    const [ours, peer] = [await distance(machine, typed, truth), await distance(machine, weak, truth)];
    distances.push({ ours, peer, ratio: ours / peer });
  }
  const spread = distances
    .map(({ ours, peer }) => `${ours.toExponential(3)}/${peer.toExponential(3)}`)
    .join(', ');
  const what = `${name}: distance to FP32 (L2 of the difference over L2), typed by convert, weakly typed (${spread})`;
  tell(figureOfPairs(what, '', distances, 1));
  for (const batch of batches) tell(await againstEachOther(machine, { name, batch, profile, pairs }));
}

/** Medians of both sides, and of the pairs' ratios. */
function figureOfPairs(what, unit, pairs, atMost) {
  const of = (key) => median(pairs.map((pair) => pair[key]));
  const ratio = of('ratio');
  return { ...figure(what, unit, of('ours'), of('peer'), { atMost }), ratio, met: ratio <= atMost };
}

/** The engines of each pair in turns in one run. */
async function againstEachOther(machine, { name, batch, profile, pairs }) {
  const mode = { transfers: false, graph: true };
  const request = (plan) => benchRequest(plan, atBatch(profile, batch), mode, 2000);
  const times = [];
  for (const { typed, weak } of pairs) {
    const { candidate, reference, ratios } = await benchAgainst(
      { candidate: request(typed), reference: request(weak), rounds: 4, failAbove: undefined },
      machine.context(),
    );
    const { ratio } = ratios.gpuMs;
    times.push({ ours: candidate.gpuMs.median, peer: reference.gpuMs.median, ratio });
  }
  const found = times.map(({ ratio }) => ratio);
  const spread = [Math.min(...found), Math.max(...found)].map((each) => each.toFixed(4)).join(' to ');
  const what = `${name}, batch ${batch}: typed FP16 by convert, weakly typed FP16 (${pairs.length} pairs of builds, ${spread})`;
  return figureOfPairs(what, 'ms', times, 1.02);
}

/** Seeded inputs and what FP32 on ONNX Runtime gives for them. */
async function reference32(machine, name, profile) {
  const session = await openOrtSession(machine.model(name));
  try {
    const shapes = atBatch(profile, COMPARED_BATCH);
    const inputs = new Map(
      session.inputs.map((input) => {
        const spread = input.dtype.startsWith('int')
          ? { kind: 'uniform', low: 1, high: /mask/.test(input.name) ? 1 : 9 }
          : { kind: 'uniform', low: 0, high: 1 };
        return [
          input.name,
          randomTensor(input.dtype, shapes[input.name], spread, randomStream(1, input.name)),
        ];
      }),
    );
    return { inputs, outputs: await session.run(inputs) };
  } finally {
    await session.close();
  }
}

/** The worst output's L2 norm of the difference, relative to FP32's. */
async function distance(machine, plan, { inputs, outputs }) {
  const { environment, toolchain } = machine;
  const session = await openEngineSession(plan, { requirePassport: false, environment, toolchain });
  try {
    const found = await session.run(inputs);
    return Math.max(
      ...[...outputs].map(([name, expected]) => {
        const [truth, got] = [float32Values(expected), float32Values(found.get(name))];
        let [difference, size] = [0, 0];
        for (let at = 0; at < truth.length; at++) {
          difference += (got[at] - truth[at]) ** 2;
          size += truth[at] ** 2;
        }
        return Math.sqrt(difference / size);
      }),
    );
  } finally {
    await session.close();
  }
}
