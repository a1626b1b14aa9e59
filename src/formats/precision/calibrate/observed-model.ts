import { realpathSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { closing } from '../../../base/files/byte-source.js';
import { removeIfAllowed } from '../../../base/files/files.js';
import { leaves, makeScratch } from '../../../base/files/folders.js';
import { TrtforgeError } from '../../../errors.js';
import type { WorkContext } from '../../../events.js';
import { editModel, type OnnxModel } from '../../onnx/model.js';
import {
  AttributeProto_AttributeType,
  AttributeProtoSchema,
  NodeProtoSchema,
  type TensorProto,
  TensorProtoSchema,
  ValueInfoProtoSchema,
} from '../../onnx/onnx_pb.js';
import { EXTERNAL_THRESHOLD, writeModel } from '../../onnx/write.js';
import { dtypes } from '../../tensor/dtype.js';
import { float32Values, type NamedTensors, type Tensor } from '../../tensor/tensor.js';
import { isFloat32, isStored, readFlow, type Value } from '../flow.js';
import { normalise } from '../normalise.js';
import type { PluginTypes } from '../plugin-types.js';
import { type Histogram, MagnitudeHistogram } from './histogram.js';
import { type ChannelMoments, ChannelSums, type Extremes, extremesOf, type ValueRange } from './ranges.js';

/** The output of a copy that reduces inside: smallest and largest value of each activation in turn, zero included. */
const EXTREMES = 'trtforge/extremes';

/** The file of a copy that refers to the weights where the model has them: its external data is not beside it. */
export interface ObservedFile {
  readonly path: string;
  readonly weightsFolder: string;
}

/** A copy of a model that shows its activations. */
export interface ObservedModel extends ObservedFile {
  /** The activations, in the order in which the copy has them: pairs of elements of the vector, or outputs. */
  readonly names: readonly string[];
  /** The outputs of the copy. */
  readonly outputs: readonly string[];
}

/**
 * Writes a copy of a model, without its weights, into a temporary folder for as long as `use` takes. Its outputs are the extremes of every float activation of its graph
 * (`EXTREMES`), reduced inside so that memory stays that of a run, or exactly the activations named. The bodies of If, Loop and Scan are not
 * looked into. Throws TF_CALIBRATION_INVALID for a name that is not a float activation of the graph, and what opening and writing models throw.
 */
export async function withObservedModel<T>(
  modelPath: string,
  which: 'extremes' | readonly string[],
  use: (observed: ObservedModel) => Promise<T>,
  { signal, pluginTypes }: { readonly signal?: AbortSignal; readonly pluginTypes?: PluginTypes | undefined },
): Promise<T> {
  const folder = makeScratch('calibration');
  try {
    const path = join(folder, 'observed.onnx');
    const observed = await editModel(modelPath, async (model) => {
      const shown =
        which === 'extremes' ? showExtremes(model, pluginTypes) : showValues(model, pluginTypes, which);
      const { references, weightsFolder } = referencesOf(model);
      await writeModel(model, path, { references, externalData: 'never', signal });
      return { ...shown, path, weightsFolder };
    });
    return await use(observed);
  } finally {
    removeIfAllowed(folder);
  }
}

/** The graph as the conversion has it, so that names are the same, and its float activations. */
function activationsOf(model: OnnxModel, pluginTypes: PluginTypes | undefined) {
  normalise(model.proto, pluginTypes);
  const { root } = readFlow(model.proto);
  const activations = [...root.values.values()].filter((value) => isFloat32(value) && !isStored(value));
  return { graph: root.graph, activations };
}

/**
 * The weights of the graph that ONNX Runtime can map from where they are, by real paths within the folder that all of them are in: ONNX Runtime 1.30 rejects
 * paths and links that leave it. Offsets in a model file are seldom multiples of the element; results are the same bits. Shapes are inferred before external
 * data is read, so constants of them are written.
 */
function referencesOf(model: OnnxModel) {
  const places = new Map(
    model.proto.graph?.initializer.flatMap((tensor) => {
      const { where, byteLength } = model.weight(tensor);
      const isShape = tensor.dataType === dtypes.int64.onnx && tensor.dims.length <= 1;
      const isFar = where.kind === 'embedded' || where.kind === 'external';
      return isFar && !isShape && byteLength >= EXTERNAL_THRESHOLD ? [[tensor, where] as const] : [];
    }),
  );
  const paths = new Set(Array.from(places.values(), ({ path }) => path));
  const real = new Map(Array.from(paths, (path) => [path, realpathSync(path)]));
  let weightsFolder = dirname(realpathSync(model.path));
  for (const path of real.values())
    while (leaves(weightsFolder, path)) weightsFolder = dirname(weightsFolder);
  const references = new Map(
    [...places].map(([tensor, { path, offset }]): [TensorProto, { location: string; offset: number }] => [
      tensor,
      { location: relative(weightsFolder, real.get(path)!), offset },
    ]),
  );
  return { references, weightsFolder };
}

type Shown = Pick<ObservedModel, 'names' | 'outputs'>;

function showValues(model: OnnxModel, plugins: PluginTypes | undefined, names: readonly string[]): Shown {
  const { graph, activations } = activationsOf(model, plugins);
  const known = new Map(activations.map((value) => [value.name, value]));
  const outputs = names.map((name, index) => {
    const value = known.get(name);
    if (value === undefined)
      throw new TrtforgeError(
        'TF_CALIBRATION_INVALID',
        `${model.path} cannot be calibrated: its graph has no float32 activation "${name}".`,
        {
          remedy: `It has ${activations
            .map(({ name: other }) => other)
            .slice(0, 5)
            .join(', ')}.`,
        },
      );
    // An input of the graph is not an output of it.
    if (value.origin !== 'input') return name;
    graph.node.push(node('Identity', [name], part(index, 'value')));
    return part(index, 'value');
  });
  graph.output = outputs.map(floatOutput);
  return { names, outputs };
}

function showExtremes(model: OnnxModel, plugins: PluginTypes | undefined): Shown {
  const { graph, activations } = activationsOf(model, plugins);
  graph.initializer.push(flatShape(), zero());
  graph.node.push(...activations.flatMap(reductions));
  // One vector: ONNX Runtime orders nodes by outputs, and would keep every activation until the second.
  const inputs = activations.flatMap((_, index) => [part(index, 'min'), part(index, 'max')]);
  graph.node.push(node('Concat', inputs, EXTREMES, { axis: 0n }));
  const outputs = [EXTREMES];
  graph.output = outputs.map(floatOutput);
  return { names: activations.map(({ name }) => name), outputs };
}

const floatOutput = (name: string) =>
  create(ValueInfoProtoSchema, { name, type: { value: { case: 'tensorType', value: { elemType: 1 } } } });

const part = (index: number, what: string): string => `trtforge/${index}/${what}`;

/** A zero is put in front, because the largest of no values at all is an error. */
function reductions(value: Value, index: number) {
  return [
    node('Reshape', [value.name, flatShape().name], part(index, 'flat')),
    node('Concat', [zero().name, part(index, 'flat')], part(index, 'all'), { axis: 0n }),
    node('ReduceMin', [part(index, 'all')], part(index, 'min'), { keepdims: 1n }),
    node('ReduceMax', [part(index, 'all')], part(index, 'max'), { keepdims: 1n }),
  ];
}

const node = (opType: string, input: string[], output: string, attributes: Record<string, bigint> = {}) =>
  create(NodeProtoSchema, {
    opType,
    name: output,
    input,
    output: [output],
    attribute: Object.entries(attributes).map(([name, i]) =>
      create(AttributeProtoSchema, { name, type: AttributeProto_AttributeType.INT, i }),
    ),
  });

const flatShape = () =>
  create(TensorProtoSchema, {
    name: 'trtforge/flat',
    dims: [1n],
    dataType: 7,
    rawData: new Uint8Array(BigInt64Array.of(-1n).buffer),
  });

const zero = () =>
  create(TensorProtoSchema, { name: 'trtforge/zero', dims: [1n], dataType: 1, rawData: new Uint8Array(4) });

/** The data kept of the outputs of a run besides their extremes. */
export interface Observing {
  readonly histograms: boolean;
  /** The outputs whose channels are summed up, with the axis of the channels. */
  readonly channels: ReadonlyMap<string, number>;
}

/** Of the outputs by name, over all samples. */
export interface Observed {
  readonly histograms: ReadonlyMap<string, Histogram>;
  readonly channels: ReadonlyMap<string, ChannelMoments>;
}

/** Keeps what the outputs of runs were, in the process that has them. */
export class OutputObserver {
  readonly #histograms = new Map<string, MagnitudeHistogram>();
  readonly #channels = new Map<string, ChannelSums>();

  add(name: string, tensor: Tensor, { histograms, channels }: Observing): Extremes {
    const values = float32Values(tensor, name);
    const axis = channels.get(name);
    if (axis !== undefined)
      kept(this.#channels, name, () => new ChannelSums()).add(values, tensor.shape, axis);
    return histograms
      ? kept(this.#histograms, name, () => new MagnitudeHistogram()).add(values)
      : extremesOf(values);
  }

  result(): Observed {
    return { histograms: results(this.#histograms), channels: results(this.#channels) };
  }
}

function kept<T>(map: Map<string, T>, name: string, make: () => T): T {
  const known = map.get(name) ?? make();
  map.set(name, known);
  return known;
}

const results = <R>(map: ReadonlyMap<string, { result(): R }>): ReadonlyMap<string, R> =>
  new Map([...map].map(([name, each]) => [name, each.result()]));

/** Runs a model file; the runtime's sessions fit. */
interface RunningSession {
  run(inputs: NamedTensors, options?: { readonly signal?: AbortSignal }): Promise<NamedTensors>;
  close(): Promise<void>;
}

/** Samples of a model's inputs, for a session that runs it. */
export type SamplesFor<S> = (session: S) => AsyncIterable<NamedTensors> | Iterable<NamedTensors>;

export interface ObserveContext extends WorkContext {
  /** What is declared of the plug-ins of the model: what reads them has types by it. */
  readonly pluginTypes?: PluginTypes | undefined;
  /** Number of samples, where it is known, for progress. */
  readonly total?: number;
}

/**
 * Runs the FP32 model on every sample and gives the range of each activation of its graph (not of the bodies of If, Loop and Scan), zero included.
 * The ranges are computed inside the model, so nothing but a small vector comes out of it. Throws what opening, writing and running a model throw.
 */
export function observeRanges<S extends RunningSession>(
  modelPath: string,
  samples: SamplesFor<S>,
  openSession: (model: ObservedFile) => Promise<S>,
  { emit, total, ...context }: ObserveContext = {},
): Promise<ReadonlyMap<string, ValueRange>> {
  return withObservedModel(
    modelPath,
    'extremes',
    async ({ names, ...file }) => {
      if (names.length === 0) return new Map();
      return closing(await openSession(file), async (session) => {
        const ranges = names.map(() => ({ min: 0, max: 0 }));
        let done = 0;
        for await (const sample of samples(session)) {
          const outputs = await session.run(sample, { signal: context.signal });
          widen(ranges, outputs.get(EXTREMES));
          emit?.({ type: 'progress', phase: 'calibrate', done: ++done, total });
        }
        return new Map(names.map((name, index) => [name, ranges[index] ?? { min: 0, max: 0 }]));
      });
    },
    context,
  );
}

/** NaN sticks, so that a rule sees it. */
function widen(ranges: { min: number; max: number }[], extremes: Tensor | undefined): void {
  const values = extremes === undefined ? [] : float32Values(extremes);
  for (const [index, range] of ranges.entries()) {
    range.min = Math.min(range.min, values[2 * index] ?? Number.NaN);
    range.max = Math.max(range.max, values[2 * index + 1] ?? Number.NaN);
  }
}
