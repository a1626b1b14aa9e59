import { benchEngine } from '../../../dist/bench/bench-engine.js';
import { openEngineSession } from '../../../dist/runtime/engine-session.js';
import { initializer, value, writeModel } from '../../../test/gpu/harness.mjs';
import { benchRequest } from '../bench-request.mjs';
import { figure, inTurns } from '../figures.mjs';

const STEPS = 300;
/** 25 MB of float32. */
const STATE = [1, 25, 262_144];
const WIDTH = 1024;
const ROWS = 16;
/** So many layers that a step takes the GPU some 60 microseconds, as a streaming encoder's does. */
const DEPTH = 12;
const FLOAT = 1;

/** x through layers to y; the state decays and takes a little of y in. */
function writeLoop(folder) {
  const layers = Array.from({ length: DEPTH }, (_, layer) => layer);
  const weights = (layer) =>
    Float32Array.from({ length: WIDTH * WIDTH }, (_, index) => Math.sin(index * 0.7 + layer) / WIDTH);
  const constant = (name, number) => initializer(name, FLOAT, [], Float32Array.of(number));
  const node = (opType, input, output, attribute = []) => ({
    opType,
    name: output[0],
    input,
    output,
    attribute,
  });
  const out = (layer) => (layer === DEPTH - 1 ? 'y' : `h${layer}`);
  return writeModel(folder, 'loop', {
    inputs: [value('x', FLOAT, [ROWS, WIDTH]), value('state', FLOAT, STATE)],
    outputs: [value('y', FLOAT, [ROWS, WIDTH]), value('state_out', FLOAT, STATE)],
    initializers: [
      constant('decay', 0.9),
      ...layers.map((layer) => initializer(`w${layer}`, FLOAT, [WIDTH, WIDTH], weights(layer))),
    ],
    nodes: [
      ...layers.flatMap((layer) => [
        node('MatMul', [layer === 0 ? 'x' : out(layer - 1), `w${layer}`], [`m${layer}`]),
        node('Tanh', [`m${layer}`], [out(layer)]),
      ]),
      node('Mul', ['state', 'decay'], ['kept']),
      { ...node('ReduceMean', ['y'], ['mean']), attribute: [{ name: 'keepdims', type: 2, i: 0n }] },
      node('Add', ['kept', 'mean'], ['state_out']),
    ],
  });
}

/** 300 steps with 25 MB of state kept on the GPU, against the sum of the steps' GPU times. */
export async function closedLoop(machine, tell, problem) {
  const { work, environment, toolchain } = machine;
  const plan = await machine.plan('loop', () => writeLoop(work), machine.recipe({}, { profiles: [] }));
  const session = await openEngineSession(plan, { requirePassport: false, environment, toolchain });
  try {
    const state = session.state({ state: 'state_out' });
    const step = await session.prepare({}, { state });
    step.inputs.x.fill(0.1);
    const loop = async () => {
      await state.reset();
      const started = performance.now();
      for (let at = 0; at < STEPS; at++) step.runSync();
      return performance.now() - started;
    };
    await loop();
    const mode = { transfers: false, graph: true };
    const { loopMs, stepMs } = await inTurns(
      machine.rounds + 2,
      {
        loopMs: loop,
        stepMs: async () =>
          (await benchEngine(benchRequest(plan, null, mode, 500), machine.context())).gpuMs.mean,
      },
      problem,
    );
    const megabytes = (STATE.reduce((a, b) => a * b) * 4) / 1e6;
    tell(
      figure(
        `${STEPS} steps with ${megabytes.toFixed(1)} MB of state on the GPU, sum of their GPU times (${step.cudaGraph ? 'graph' : `no graph: ${step.cudaGraphRefusal}`})`,
        'ms',
        loopMs,
        stepMs === null ? null : stepMs * STEPS,
        { atMost: 1.03 },
      ),
    );
    step.close();
    state.close();
  } finally {
    await session.close();
  }
}
