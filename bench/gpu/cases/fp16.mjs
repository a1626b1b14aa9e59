import { benchAgainst } from '../../../dist/bench/against.js';
import { openEngineSession } from '../../../dist/runtime/engine-session.js';
import { openOrtSession } from '../../../dist/runtime/ort-session.js';
import { randomStream, randomTensor } from '../../../dist/tensor/random.js';
import { float32Values } from '../../../dist/tensor/values.js';
import { atBatch, benchRequest } from '../bench-request.mjs';
import { figure } from '../figures.mjs';
import { models } from '../machine.mjs';

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
  const typed = await machine.typedPlan(name);
  const weak = await machine.plan(
    `${name}.weak`,
    () => machine.model(name),
    machine.recipe(profile, { stronglyTyped: false, precision: 'fp16' }),
  );
  const mode = { transfers: false, graph: true };
  for (const batch of batches) {
    const request = (plan) => benchRequest(plan, atBatch(profile, batch), mode, 3000);
    const { candidate, reference, ratios } = await benchAgainst(
      { candidate: request(typed), reference: request(weak), rounds: 6, failAbove: undefined },
      machine.context(),
    );
    const { ratio, low, high } = ratios.gpuMs;
    const what = `${name}, batch ${batch}: typed FP16 by convert, weakly typed FP16 (95 % between ${low.toFixed(4)} and ${high.toFixed(4)})`;
    tell({
      ...figure(what, 'ms', candidate.gpuMs.median, reference.gpuMs.median, { atMost: 1.02 }),
      ratio,
      met: ratio <= 1.02,
    });
  }
  const truth = await reference32(machine, name, profile);
  const [ours, peer] = [await distance(machine, typed, truth), await distance(machine, weak, truth)];
  tell(
    figure(
      `${name}: distance to FP32 (L2 of the difference over L2), typed by convert, weakly typed`,
      '',
      ours,
      peer,
      { atMost: 1 },
    ),
  );
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
