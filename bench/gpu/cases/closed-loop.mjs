import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { openEngineSession } from '../../../dist/engines/runtime/tensorrt/engine-session.js';
import { readContract } from '../../../dist/formats/contract/file.js';
import { benchEngine } from '../../../dist/quality/bench/bench-engine.js';
import { contractProfile, initializer, value, writeModel } from '../../../test/gpu/harness.mjs';
import { benchRequest } from '../bench-request.mjs';
import { figure, inTurns } from '../figures.mjs';
import { command } from '../machine.mjs';

const STEPS = 300;
const FLOAT = 1;

/** The streaming encoder of the examples at full size: 24 layers of 1024 and 25 MB of caches, chunks of 57 frames. */
function streamingEncoder({ work }) {
  const folder = join(work, 'streaming-encoder');
  const model = join(folder, 'encoder_streaming.onnx');
  if (!existsSync(model))
    command(['build/examples/models/main.js', 'streaming-encoder', '--size', 'full', '-o', folder], model);
  const { state, schedule, profiles, lengths } = readContract(
    join(folder, 'encoder_streaming.contract.json'),
  );
  const profile = contractProfile(profiles[0]);
  const shapes = Object.fromEntries(Object.entries(profile).map(([name, { opt }]) => [name, [...opt]]));
  shapes[schedule.tensor][schedule.axis] = schedule.rest;
  return {
    what: 'streaming encoder, FP32',
    model: () => model,
    profile,
    shapes,
    state: Object.fromEntries(state.map(({ input, output }) => [input, output])),
    fill: (inputs) => {
      inputs[schedule.tensor].fill(0.1);
      inputs[lengths.signal].fill(BigInt(schedule.rest));
    },
    limit: { atMost: 1.03 },
  };
}

/** As much state in steps so short that what a call costs beside the GPU's work is seen: no limit, a fact to know. */
function shortSteps({ work }) {
  const [rows, width, depth, state] = [16, 1024, 12, [1, 25, 262_144]];
  const layers = Array.from({ length: depth }, (_, layer) => layer);
  const weights = (layer) =>
    Float32Array.from({ length: width * width }, (_, index) => Math.sin(index * 0.7 + layer) / width);
  const node = (opType, input, output, attribute = []) => ({
    opType,
    name: output[0],
    input,
    output,
    attribute,
  });
  const out = (layer) => (layer === depth - 1 ? 'y' : `h${layer}`);
  return {
    what: '12 small layers, FP32',
    model: () =>
      writeModel(work, 'loop', {
        inputs: [value('x', FLOAT, [rows, width]), value('state', FLOAT, state)],
        outputs: [value('y', FLOAT, [rows, width]), value('state_out', FLOAT, state)],
        initializers: [
          initializer('decay', FLOAT, [], Float32Array.of(0.9)),
          ...layers.map((layer) => initializer(`w${layer}`, FLOAT, [width, width], weights(layer))),
        ],
        nodes: [
          ...layers.flatMap((layer) => [
            node('MatMul', [layer === 0 ? 'x' : out(layer - 1), `w${layer}`], [`m${layer}`]),
            node('Tanh', [`m${layer}`], [out(layer)]),
          ]),
          node('Mul', ['state', 'decay'], ['kept']),
          node('ReduceMean', ['y'], ['mean'], [{ name: 'keepdims', type: 2, i: 0n }]),
          node('Add', ['kept', 'mean'], ['state_out']),
        ],
      }),
    profile: null,
    shapes: null,
    state: { state: 'state_out' },
    fill: (inputs) => inputs.x.fill(0.1),
    limit: {},
  };
}

/** 300 steps with 25 MB of state kept on the GPU, against the sum of the steps' GPU times. */
export async function closedLoop(machine, tell, problem) {
  for (const make of [streamingEncoder, shortSteps]) {
    try {
      await oneLoop(machine, make(machine), tell, problem);
    } catch (error) {
      problem(`${make.name}: ${error.code ?? error.name}: ${error.message.split('\n')[0]}`);
    }
  }
}

async function oneLoop(machine, loop, tell, problem) {
  const { environment, toolchain } = machine;
  const recipe =
    loop.profile === null
      ? machine.recipe({}, { profiles: [] })
      : machine.recipe(loop.profile, { stronglyTyped: machine.major >= 11 });
  const plan = await machine.plan(loop.profile === null ? 'loop' : 'streaming-encoder', loop.model, recipe);
  const session = await openEngineSession(plan, { requirePassport: false, environment, toolchain });
  try {
    const state = session.state(loop.state, loop.shapes ?? undefined);
    const given = Object.fromEntries(
      Object.entries(loop.shapes ?? {}).filter(([name]) => !(name in loop.state)),
    );
    const step = await session.prepare(given, { state });
    loop.fill(step.inputs);
    const steps = async () => {
      await state.reset();
      const started = performance.now();
      for (let at = 0; at < STEPS; at++) step.runSync();
      return performance.now() - started;
    };
    await steps();
    const mode = { transfers: false, graph: true };
    const { loopMs, stepMs } = await inTurns(
      machine.rounds + 2,
      {
        loopMs: steps,
        stepMs: async () =>
          (await benchEngine(benchRequest(plan, loop.shapes, mode, 500), machine.context())).gpuMs.mean,
      },
      problem,
    );
    const how = step.cudaGraph ? 'graph' : `no graph: ${step.cudaGraphFallback}`;
    tell(
      figure(
        `${loop.what}: ${STEPS} steps with 25 MB of state on the GPU, sum of their GPU times (${how})`,
        'ms',
        loopMs,
        stepMs === null ? null : stepMs * STEPS,
        loop.limit,
      ),
    );
    step.close();
    state.close();
  } finally {
    await session.close();
  }
}
