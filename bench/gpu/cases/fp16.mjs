import { openOrtSession } from '../../../dist/engines/runtime/onnxruntime/ort-session.js';
import { openEngineSession } from '../../../dist/engines/runtime/tensorrt/engine-session.js';
import { randomStream, randomTensor } from '../../../dist/formats/tensor/random.js';
import { float32Values } from '../../../dist/formats/tensor/tensor.js';
import { benchCompare } from '../../../dist/quality/bench/compare.js';
import { atBatch, benchRequest } from '../bench-request.mjs';
import { figure, median } from '../figures.mjs';
import { models } from '../machine.mjs';

/** Engines of each side: which kernels a builder takes differs from build to build, and with them the time. */
const BUILDS = { resnet50: 4, encoder: 1 };

/** How far a kernel's rounding takes one input differs from the next by several percent; together they tell. A CPU computes them in seconds. */
const COMPARED_BATCH = 32;

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
  const plans = { typed: [], weak: [] };
  for (let build = 0; build < BUILDS[name]; build++)
    for (const [side, [model, recipe]] of Object.entries(sides))
      plans[side].push(await machine.plan(`${name}.${side}.${build}`, model, recipe, null));
  const truth = await reference32(machine, name, profile);
  const [ours, peer] = [[], []];
  for (const plan of plans.typed) ours.push(await distance(machine, plan, truth));
  for (const plan of plans.weak) peer.push(await distance(machine, plan, truth));
  const spread = [...ours, ...peer].map((each) => each.toExponential(3)).join(', ');
  const what = `${name}: distance to FP32 (L2 of the difference over L2), typed by convert, weakly typed (${spread})`;
  tell(figure(what, '', median(ours), median(peer), { atMost: 1 }));
  for (const batch of batches) tell(await againstEachOther(machine, { name, batch, profile, ...plans }));
}

/** The first typed engine against the first weakly typed one, the second against the second and so on; the figure is the median of the pairs. */
async function againstEachOther(machine, { name, batch, profile, typed, weak }) {
  const mode = { transfers: false, graph: true };
  const request = (plan) => benchRequest(plan, atBatch(profile, batch), mode, 2000);
  const pairs = [];
  for (const [build, candidate] of typed.entries())
    pairs.push(
      await benchCompare(
        { candidate: request(candidate), reference: request(weak[build]), rounds: 4, failAbove: undefined },
        machine.context(),
      ),
    );
  const ratios = pairs.map(({ ratios: { gpuMs } }) => gpuMs.ratio);
  const ratio = median(ratios);
  const spread = [Math.min(...ratios), Math.max(...ratios)].map((each) => each.toFixed(4)).join(' to ');
  const what = `${name}, batch ${batch}: typed FP16 by convert, weakly typed FP16 (${pairs.length} pairs of builds, ${spread})`;
  const msOf = (side) => median(pairs.map((pair) => pair[side].gpuMs.median));
  return {
    ...figure(what, 'ms', msOf('candidate'), msOf('reference'), { atMost: 1.02 }),
    ratio,
    met: ratio <= 1.02,
  };
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
