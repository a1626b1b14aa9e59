import { randomNumbers } from '../coco-data.js';
import { type BenchCase, type BenchContext, generate, load } from '../context.js';
import { median } from '../measure.js';
import type { Measurement } from '../result.js';

/** Samples of the small models, and of those in their real size, where what a call of the session costs by itself is little. */
const SAMPLES = { small: 64, full: 16 } as const;
type Size = keyof typeof SAMPLES;
const VALUES = 1 << 20;

/** Calibration beside plain runs of the same model over the same samples, and how fast magnitudes are counted. */
export const calibrate: BenchCase = {
  name: 'calibrate',
  run: async (context) => ({
    case: 'calibrate',
    title: `Calibration over ${SAMPLES.small} samples on ONNX Runtime, of models in their real size over ${SAMPLES.full}`,
    commands: ['calibrateTensors(…), its loop over samples', 'session.run(…) over the same samples'],
    measurements: [
      ...(await ratios(context, 'resnet50', 'small', () => picture(64))),
      ...(await ratios(context, 'transformer-encoder', 'small', () => text(64))),
      ...(await ratios(context, 'resnet50', 'full', () => picture(224))),
      ...(await ratios(context, 'transformer-encoder', 'full', () => text(128))),
      await counting(context),
    ],
    skipped: [],
  }),
};

const random = randomNumbers(1);
const normal = () => Math.sqrt(-2 * Math.log(random() + 1e-9)) * Math.cos(2 * Math.PI * random());
const floats = (shape: readonly number[]) => {
  const count = shape.reduce((product, size) => product * size, 1);
  const bytes = new Uint8Array(Float32Array.from({ length: count }, normal).buffer);
  return { dtype: 'float32' as const, shape, bytes };
};
const integers = (values: readonly number[]) => ({
  dtype: 'int64' as const,
  shape: [1, values.length],
  bytes: new Uint8Array(BigInt64Array.from(values, BigInt).buffer),
});

const picture = (side: number) => new Map([['input', floats([1, 3, side, side])]]);
const text = (tokens: number) =>
  new Map([
    ['input_ids', integers(Array.from({ length: tokens }, () => Math.floor(1000 * random())))],
    ['attention_mask', integers(Array.from({ length: tokens }, () => 1))],
  ]);

/** The inputs of every convolution and product that are no weights: what a conversion to INT8 asks for. */
async function tensorsOf(context: BenchContext, path: string): Promise<readonly string[]> {
  const { openModel } = await load(context, 'formats/onnx/model.js');
  const model = openModel(path);
  const { node, initializer } = model.proto.graph as {
    node: { opType: string; input: string[]; output: string[] }[];
    initializer: { name: string }[];
  };
  const constants = node.filter(({ opType }) => opType === 'Constant').flatMap(({ output }) => output);
  const stored = new Set([...initializer.map(({ name }) => name), ...constants]);
  const read = node
    .filter(({ opType }) => ['Conv', 'MatMul', 'Gemm'].includes(opType))
    .flatMap(({ input }) => input.slice(0, 2).filter((name) => !stored.has(name)));
  model.close();
  return [...new Set(read)];
}

async function ratios(
  context: BenchContext,
  name: string,
  size: Size,
  sample: () => ReadonlyMap<string, unknown>,
): Promise<Measurement[]> {
  const model = generate(context, name, size);
  const tensors = await tensorsOf(context, model);
  const samples = Array.from({ length: SAMPLES[size] }, sample);
  const { openOrtSession } = await load(context, 'engines/runtime/onnxruntime/ort-session.js');
  const { calibrateTensors } = await load(context, 'formats/precision/calibrate/calibrate.js');
  const plain = async () => {
    await using session = await openOrtSession(model);
    await session.run(samples[0]);
    const started = performance.now();
    for (const each of samples) await session.run(each);
    return performance.now() - started;
  };
  const calibrated = async (method: string) => {
    const at: number[] = [];
    const emit = ({ type }: { readonly type: string }) => type === 'progress' && at.push(performance.now());
    const open = ({ path, weightsFolder }: { path: string; weightsFolder: string }) =>
      openOrtSession(path, { weightsFolder });
    // The first sample warms up.
    const given = () => [samples[0], ...samples];
    await calibrateTensors(model, tensors, given, open, { method: { name: method }, emit });
    return at.at(-1)! - at[0]!;
  };
  const times = { plain: [] as number[], max: [] as number[], mse: [] as number[] };
  for (let run = 0; run < context.runs; run++) {
    times.plain.push(await plain());
    times.max.push(await calibrated('max'));
    times.mse.push(await calibrated('mse'));
  }
  return (['max', 'mse'] as const).map((method) => ({
    what: `${name} ${size}, ${tensors.length} tensors, ${method === 'max' ? 'extremes' : 'histograms'}`,
    unit: 'times plain',
    ours: median(times[method]) / median(times.plain),
    bar: { limit: 1.5, better: 'lower' },
  }));
}

/** In processor time of one core, other work on the machine not counted. */
async function counting(context: BenchContext): Promise<Measurement> {
  const { MagnitudeHistogram } = await load(context, 'formats/precision/calibrate/ranges.js');
  const values = Float32Array.from({ length: VALUES }, normal);
  const histogram = new MagnitudeHistogram();
  const rate = (times: number) => {
    const before = process.cpuUsage();
    for (let run = 0; run < times; run++) histogram.add(values);
    const { user, system } = process.cpuUsage(before);
    return (times * VALUES) / (user + system);
  };
  rate(20);
  return {
    what: 'values counted, one core',
    unit: 'M values/s',
    ours: median(Array.from({ length: context.runs }, () => rate(50))),
    bar: { limit: 200, better: 'higher' },
  };
}
