import type { NativeCall, NativeEngine } from '../../../src/addon/native-engine.js';
import type { EngineAddon } from '../../../src/engines/runtime/tensorrt/load-engine.js';
import { buildModel, GraphBuilder } from '../../../src/formats/onnx/builder.js';
import { writeModel } from '../../../src/formats/onnx/write.js';
import { randomStream } from '../../../src/formats/tensor/random.js';
import { tensorFrom } from '../../../src/formats/tensor/tensor.js';
import { FakeAddon, type FakeSpec, range, tensor } from '../../fakes/addon.js';

const [INPUTS, OUTPUTS] = [12, 40];

const weightsOf = (seed: number) => {
  const stream = randomStream(seed, 'weights');
  return Float32Array.from({ length: INPUTS * OUTPUTS }, () => stream.normal());
};

/** y = tanh(x W), x [batch, 12]. */
export async function writeLayer(path: string, seed = 1): Promise<string> {
  const graph = new GraphBuilder('layer');
  const x = graph.input('x', 'float32', ['batch', INPUTS]);
  const w = graph.initializer('w', tensorFrom('float32', [INPUTS, OUTPUTS], weightsOf(seed)));
  const y = graph.output('y', 'float32', ['batch', OUTPUTS]);
  const product = graph.value('product', 'float32', ['batch', OUTPUTS]);
  graph.node('MatMul', { inputs: [x, w], outputs: [product] });
  graph.node('Tanh', { inputs: [product], outputs: [y] });
  await writeModel(buildModel(graph), path);
  return path;
}

/** One way in which an engine is wrong where it is loaded. */
export const faults = [
  'swapped row',
  'stale graph',
  'wrong profile',
  'race between contexts',
  'near-zero output',
  'other weights',
  'not a number',
  'rows that differ',
] as const;
export type EngineFault = (typeof faults)[number];

const PROFILE = { x: { min: [1, INPUTS], opt: [4, INPUTS], max: [16, INPUTS], values: false } };
export const profiles = [PROFILE];

const floats = (bytes: Uint8Array) => new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);

/** The layer as an engine whose numbers are off as those of FP16 are, and by a fault. */
export function layerEngine(fault: EngineFault | null): EngineAddon & { readonly fake: FakeAddon } {
  const weights = weightsOf(fault === 'other weights' ? 2 : 1);
  const spec: FakeSpec = {
    tensors: [
      tensor('x', 'input', [-1, INPUTS], { profiles: [range([1, INPUTS], [4, INPUTS], [16, INPUTS])] }),
      tensor('y', 'output', [-1, OUTPUTS]),
    ],
    outputShape: (_, shapes) => [shapes.get('x')?.shape[0] ?? 0, OUTPUTS],
    kernel: ({ x, y }) => {
      const [values, outputs] = [floats(x!), floats(y!)];
      const rows = values.length / INPUTS;
      for (let row = 0; row < rows; row++) {
        const from = fault === 'swapped row' && rows > 1 && row < 2 ? 1 - row : row;
        for (let column = 0; column < OUTPUTS; column++) {
          let sum = 0;
          for (let at = 0; at < INPUTS; at++)
            sum += values[from * INPUTS + at]! * weights[at * OUTPUTS + column]!;
          outputs[row * OUTPUTS + column] = Math.tanh(sum) * (1 + 5e-4 * Math.sin(37 * column + row));
        }
      }
      if (fault === 'near-zero output') for (let at = 0; at < outputs.length; at++) outputs[at]! *= 1e-4;
      if (fault === 'wrong profile' && rows === 16) outputs.fill(0.25, OUTPUTS * 8);
      if (fault === 'not a number') outputs[7] = Number.NaN;
      if (fault === 'rows that differ' && rows > 1 && isSameRow(values)) outputs.fill(0.5, OUTPUTS);
      if (fault === 'race between contexts' && fake.running > 1) outputs.fill(0, OUTPUTS / 2);
    },
  };
  const fake = new FakeAddon(spec);
  fake.runMs = fault === 'race between contexts' ? 2 : 0;
  const openEngine: EngineAddon['openEngine'] = (request) => {
    const job = fake.openEngine(request);
    return {
      ...job,
      done: job.done.then((engine) => (fault === 'stale graph' ? withStaleGraphs(engine) : engine)),
    };
  };
  return { gpus: fake.gpus, gpuState: fake.gpuState, measure: fake.measure, openEngine, fake };
}

const isSameRow = (values: Float32Array) =>
  values.subarray(0, INPUTS).every((value, at) => value === values[INPUTS + at]);

/** Graphs that give what their first run gave, whatever comes in. */
function withStaleGraphs(engine: NativeEngine): NativeEngine {
  const stale = (call: NativeCall): NativeCall => {
    let first: ArrayBuffer | undefined;
    return {
      ...call,
      run: (inputs, into) => {
        const job = call.run(inputs, into);
        const done = job.done.then(() => {
          const output = call.buffer('y');
          first ??= output.slice(0);
          new Uint8Array(output).set(new Uint8Array(first));
        });
        return { ...job, done };
      },
    };
  };
  return {
    ...engine,
    createContext: (request) => {
      const job = engine.createContext(request);
      const done = job.done.then((context) => ({
        ...context,
        prepare: (wanted: Parameters<typeof context.prepare>[0]) => {
          const made = context.prepare(wanted);
          return { ...made, done: made.done.then((call) => (wanted.graph ? stale(call) : call)) };
        },
      }));
      return { ...job, done };
    },
  };
}

/** As TensorRT 8.6 does: a second context with a profile is refused. */
export const lendingOnce = (addon: EngineAddon): EngineAddon => ({
  ...addon,
  openEngine: (...request) => {
    const job = addon.openEngine(...request);
    const done = job.done.then((engine) => {
      let contexts = 0;
      return {
        ...engine,
        createContext: (...asked: Parameters<NativeEngine['createContext']>) => {
          const made = engine.createContext(...asked);
          if (++contexts === 1) return made;
          const why = 'Profile 0 has been chosen by another IExecutionContext.';
          return { ...made, done: made.done.then(() => Promise.reject(new Error(why))) };
        },
      } as NativeEngine;
    });
    return { ...job, done };
  },
});

const [FEATURES, PLACES, SIZE] = [8, 2100, 640];
const CHANNELS = 22;
const BOXES = 4;

export const detectorShape = [1, CHANNELS, PLACES];
export const detectorProfiles = [
  { features: { min: [1, FEATURES], opt: [1, FEATURES], max: [1, FEATURES], values: false } },
];

/** Weights of the 22 channels; every class has a bias of its own, so that some are rare. */
const detectorWeights = (() => {
  const stream = randomStream(3, 'detector');
  const weights = Float32Array.from({ length: FEATURES * CHANNELS * PLACES }, () => 0.4 * stream.normal());
  const biases = Float32Array.from({ length: CHANNELS }, (_, at) => (at < BOXES ? 0 : -2 - 1.5 * (at % 7)));
  return { weights, biases };
})();

/** Four boxes' channels in pixels of 0 to 640 beside the scores of 18 classes, in one output [1, 22, 2100]. */
export async function writeDetector(path: string): Promise<string> {
  const { weights, biases } = detectorWeights;
  const graph = new GraphBuilder('detector');
  const x = graph.input('features', 'float32', ['batch', FEATURES]);
  const constant = (name: string, shape: readonly number[], values: Float32Array) =>
    graph.initializer(name, tensorFrom('float32', shape, values));
  const flat = graph.value('flat', 'float32', ['batch', CHANNELS * PLACES]);
  const logits = graph.value('logits', 'float32', detectorShape);
  const moved = graph.value('moved', 'float32', detectorShape);
  const shares = graph.value('shares', 'float32', detectorShape);
  const y = graph.output('output0', 'float32', detectorShape);
  const w = constant('w', [FEATURES, CHANNELS * PLACES], weights);
  graph.node('MatMul', { inputs: [x, w], outputs: [flat] });
  const shape = tensorFrom('int64', [3], BigInt64Array.from(detectorShape, BigInt));
  graph.node('Reshape', { inputs: [flat, graph.initializer('shape', shape)], outputs: [logits] });
  graph.node('Add', { inputs: [logits, constant('bias', [1, CHANNELS, 1], biases)], outputs: [moved] });
  graph.node('Sigmoid', { inputs: [moved], outputs: [shares] });
  const scales = Float32Array.from({ length: CHANNELS }, (_, at) => (at < BOXES ? SIZE : 1));
  graph.node('Mul', { inputs: [shares, constant('scales', [1, CHANNELS, 1], scales)], outputs: [y] });
  await writeModel(buildModel(graph), path);
  return path;
}

/** What the detector gives to these features, off as FP16 is. */
export function detections(features: Float32Array): Float32Array {
  const { weights, biases } = detectorWeights;
  const output = new Float32Array(CHANNELS * PLACES);
  for (let at = 0; at < output.length; at++) {
    let logit = biases[Math.floor(at / PLACES)]!;
    for (let feature = 0; feature < FEATURES; feature++)
      logit += features[feature]! * weights[feature * output.length + at]!;
    logit *= 1 + 5e-4 * Math.sin(37 * at);
    output[at] = (at < BOXES * PLACES ? SIZE : 1) / (1 + Math.exp(-logit));
  }
  return output;
}

const channel = (output: Float32Array, at: number) => output.subarray(at * PLACES, (at + 1) * PLACES);

/** What goes wrong with scores alone; all of it is less than one pixel of a box. */
export const detectorFaults: Readonly<Record<string, (output: Float32Array) => void>> = {
  'scores that are 0': (output) => void output.fill(0, BOXES * PLACES),
  'scores x 0.7': (output) => {
    for (let at = BOXES * PLACES; at < output.length; at++) output[at]! *= 0.7;
  },
  'one class that is 0': (output) => void channel(output, 15).fill(0),
  'two classes of one size that are swapped': (output) => {
    const first = channel(output, 8).slice();
    channel(output, 8).set(channel(output, 15));
    channel(output, 15).set(first);
  },
  'classes that are turned by one': (output) =>
    void output.copyWithin((BOXES + 1) * PLACES, BOXES * PLACES, (CHANNELS - 1) * PLACES),
};

/** No drawn input shows it: its scores are below 0.001. */
export const rareClassZeroed = (output: Float32Array) => void channel(output, 6).fill(0);

/** The detector as an engine, with or without a fault. */
export function detectorEngine(change: (output: Float32Array) => void = () => {}): FakeAddon {
  return new FakeAddon({
    tensors: [
      tensor('features', 'input', [-1, FEATURES], {
        profiles: [range([1, FEATURES], [1, FEATURES], [1, FEATURES])],
      }),
      tensor('output0', 'output', detectorShape),
    ],
    outputShape: () => detectorShape,
    kernel: ({ features, output0 }) => {
      const output = detections(floats(features!));
      change(output);
      floats(output0!).set(output);
    },
  });
}
