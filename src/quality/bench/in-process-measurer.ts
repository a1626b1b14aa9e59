import type { Gpu } from '../../addon/addon.js';
import { chosenGpu } from '../../addon/gpus.js';
import type {
  NativeContext,
  NativeEngine,
  NativeEngineTensor,
  NativeGpuState,
  NativeHostData,
} from '../../addon/native-engine.js';
import { closing } from '../../base/files/byte-source.js';
import { gatherInputs } from '../../engines/run/gather-inputs.js';
import {
  type EngineAddon,
  type LoadedEngine,
  loadEngine,
} from '../../engines/runtime/tensorrt/load-engine.js';
import { TrtforgeError } from '../../errors.js';
import type { EventListener } from '../../events.js';
import type { BenchedEngine, ColdStart, Measured, Measurer, RawLayers } from './measurer.js';
import { sourcesOf } from './options.js';
import { shapeCases, withFileShapes } from './shape-cases.js';

/** When the GPU is looked at while it is measured, as shares of the time it takes: seldom, since asking NVML holds the driver up. */
const LOOKS = [0.15, 0.5, 0.85];

/** A measurer in this process. */
export function inProcessMeasurer(
  addon: EngineAddon,
  emit: EventListener,
  environment: NodeJS.ProcessEnv = process.env,
): Measurer {
  let gpu: Gpu | undefined;
  let engine: LoadedEngine | undefined;
  const loaded = (): LoadedEngine => {
    if (engine === undefined) throw new TrtforgeError('TF_INTERNAL', 'No engine is open to be measured.');
    return engine;
  };
  const opened = (): NativeEngine => loaded().native;
  const state = () => (gpu === undefined ? null : addon.gpuState(gpu.uuid));
  const measurer: Measurer = {
    gpu: async (device) => {
      const list = addon.gpus();
      gpu = chosenGpu(list, device, 'Measuring an engine needs an NVIDIA GPU');
      return { gpu, driver: list.driverVersion, state: state(), pid: process.pid };
    },
    open: async (request) => {
      engine = await loadEngine(request.engine, {
        ...request,
        requirePassport: false,
        environment,
        emit,
        addon,
      });
      return benchedEngine(engine);
    },
    measure: (request) => measured(addon, opened(), state, request),
    layers: (request) => layerTimes(opened(), request),
    cold: (request) => coldStart(measurer, loaded, request),
    close: async () => {
      await engine?.close();
      engine = undefined;
    },
  };
  return measurer;
}

async function coldStart(
  measurer: Measurer,
  loaded: () => LoadedEngine,
  { shapes, inputs: fill, graph, ...opening }: Parameters<Measurer['cold']>[0],
): Promise<ColdStart> {
  // The first lap began with the process.
  let last = 0;
  const lap = (): number => {
    const since = last;
    last = performance.now();
    return last - since;
  };
  const start = lap();
  await measurer.gpu(opening.device);
  const gpuMs = lap();
  const { facts, inputs } = await measurer.open(opening);
  const openMs = lap();
  const { native, toolchain } = loaded();
  const { readMs: read, deserializeMs: deserialize, loadMs, hostMemory, tensors } = facts;
  const [shapeCase] = shapeCases(inputs, withFileShapes(inputs, { shapes, inputs: fill }));
  const data = inputData({ engine: opening.engine, inputs, fill, ...shapeCase });
  // A start does not include making inputs.
  lap();
  const context = await native.createContext({ profile: shapeCase.profile, profiling: false }).done;
  const contexts = lap();
  const request = { shapes: shapeCase.shapes, bindings: hostBindings(tensors) };
  const call = await context.prepare({ ...request, graph: false }).done;
  await call.run(data, []).done;
  const firstCall = lap();
  const isCaptured = graph && (await context.prepare({ ...request, graph }).done).graph;
  const capture = isCaptured ? lap() : null;
  const library = gpuMs + loadMs - read - deserialize;
  const total = start + gpuMs + openMs + contexts + firstCall;
  const { inference, plugins } = toolchain.libraries;
  return {
    ms: { start, check: openMs - loadMs, library, read, deserialize, contexts, firstCall, total, capture },
    hostMemory,
    libraries: [inference, ...(plugins === null ? [] : [plugins])],
  };
}

function benchedEngine({ plan, toolchain, native, bindings }: LoadedEngine): BenchedEngine {
  const product = toolchain.product === 'tensorrt' ? 'TensorRT' : 'TensorRT-RTX';
  return {
    facts: native.facts,
    inputs: bindings.inputs,
    backend: `${product} ${toolchain.version}`,
    fileBytes: plan.header.fileBytes,
    passport:
      plan.passport === null ? null : { name: plan.passport.name, identity: plan.passport.identity.digest },
  };
}

type LayerRequest = Parameters<Measurer['layers']>[0];

/** The same numbers that any other way of measuring feeds; values of shape tensors travel with the shapes. */
function inputData({ engine, inputs, fill, shapes, profile }: Omit<LayerRequest, 'runs'>): NativeHostData[] {
  const onDevice = inputs.filter((input) => !input.hostValues);
  const files = fill.files.filter(
    ({ name }) => !inputs.some((input) => input.hostValues && input.name === name),
  );
  return gatherInputs(onDevice, {
    file: engine,
    sources: sourcesOf({ ...fill, files }),
    seed: fill.seed,
    ranges: fill.ranges,
    shapes: new Map(
      shapes.flatMap(({ name, shape, values }) => (values === null ? [[name, shape] as const] : [])),
    ),
    profile,
  }).map(({ name, tensor }) => ({ name, data: tensor.bytes }));
}

async function measured(
  addon: EngineAddon,
  engine: NativeEngine,
  state: () => NativeGpuState | null,
  request: Parameters<Measurer['measure']>[0],
): Promise<Measured> {
  const { mode, profile, shapes } = request;
  const inputs = inputData(request);
  const during: NativeGpuState[] = [];
  const timers = LOOKS.map((share) =>
    setTimeout(
      () => {
        const now = state();
        if (now !== null) during.push(now);
      },
      mode.warmUpMs + share * mode.durationMs,
    ),
  );
  try {
    const measurement = await addon.measure(engine, { profile, shapes, inputs, ...mode }).done;
    return { measurement, during, after: state() };
  } finally {
    timers.forEach(clearTimeout);
  }
}

async function layerTimes(engine: NativeEngine, request: LayerRequest): Promise<RawLayers> {
  const context = await engine.createContext({ profile: request.profile, profiling: true }).done;
  try {
    await runOften(engine, context, request);
    return { inspector: await engine.layers().done, times: context.layerTimes() };
  } finally {
    await context.close().done;
  }
}

const hostBindings = (tensors: readonly NativeEngineTensor[]) =>
  tensors
    .filter(({ location }) => location === 'device')
    .map(({ name }) => ({ name, kind: 'host' as const }));

/** The library reports layer times of enqueued runs only, never of a graph's. */
async function runOften(engine: NativeEngine, context: NativeContext, request: LayerRequest): Promise<void> {
  const { shapes, runs } = request;
  const bindings = hostBindings(engine.facts.tensors);
  await closing(await context.prepare({ shapes, bindings, graph: false }).done, async (call) => {
    const inputs: readonly NativeHostData[] = inputData(request);
    for (let run = 0; run < runs; run++) await call.run(inputs, []).done;
  });
}
