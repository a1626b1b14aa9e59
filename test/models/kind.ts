import { basename } from 'node:path';
import { buildModel, GraphBuilder, writeModel } from 'trtforge/onnx';
import { RandomStream } from '../../examples/models/random.js';
import type { Fault } from './faults.js';
import { type Variant, VariantNetwork } from './variant-network.js';

/** One input of one sample, in C order. */
export interface SampleTensor {
  readonly dtype: 'float32' | 'int64' | 'int32' | 'bool';
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}
export type Sample = ReadonlyMap<string, SampleTensor>;

/** A kind of network, small and from a seed, with what breaks it. */
export interface Kind {
  readonly name: string;
  readonly define: (network: VariantNetwork) => void;
  readonly faults: readonly Fault[];
  /** Inputs as its users would have them. */
  readonly sample: (stream: RandomStream) => Sample;
  /** How many samples its user has to judge by; default 16. */
  readonly samples?: number;
  /** Samples are pictures, which a file has as PNG, for this preparation (`--preprocess`). */
  readonly preprocess?: string;
  /** Whether positions of the axis after the batch are different things: boxes beside scores. */
  readonly channelsHaveScales?: boolean;
  /** The same weights before an operator orders the rows: effects are measured there, as a swap of rows is none. Its own are those of faults that it does not have. */
  readonly unordered?: Kind;
  /** Faults that drawn samples cannot show: noise has the background alone. */
  readonly unseenByNoise?: readonly string[];
  /** Nodes that whoever quantizes leaves as they are: a front end whose values no range of codes fits. */
  readonly uncoded?: readonly RegExp[];
  /** Twins of these names do not exist: it has codes already, or nothing to give codes to. */
  readonly without?: readonly string[];
}

const OPSET = 18;

/** Writes a kind of network as a variant of itself. Throws where an edit matches no weight. */
export async function writeVariant(
  path: string,
  kind: Kind,
  seed: number,
  variant: Variant = {},
): Promise<void> {
  const graph = new GraphBuilder(basename(path, '.onnx'));
  const network = new VariantNetwork(graph, seed, variant);
  kind.define(network);
  const [unmatched] = network.unmatched;
  if (unmatched !== undefined) throw new Error(`${kind.name}: no weight matches ${unmatched}.`);
  await writeModel(buildModel(graph, { opset: OPSET, producer: 'trtforge tests' }), path);
}

export const writeFault = (path: string, kind: Kind, seed: number, fault: Fault): Promise<void> =>
  writeVariant(path, kind, fault.otherSeed === true ? seed + 1000 : seed, fault);

/** Samples of a seed that no network is made from. */
export const samplesOf = (kind: Kind, seed: number, count: number): Sample[] =>
  Array.from({ length: count }, (_, index) =>
    kind.sample(new RandomStream(seed, `${kind.name}/sample ${index}`)),
  );

export function floats(shape: readonly number[], values: ArrayLike<number>): SampleTensor {
  return { dtype: 'float32', shape, bytes: new Uint8Array(Float32Array.from(values).buffer) };
}

export function longs(shape: readonly number[], values: readonly number[]): SampleTensor {
  return { dtype: 'int64', shape, bytes: new Uint8Array(BigInt64Array.from(values, BigInt).buffer) };
}

export const normals = (stream: RandomStream, count: number, deviation = 1, mean = 0): Float32Array => {
  const values = new Float32Array(count);
  stream.fillNormal(values, mean, deviation);
  return values;
};

/** A picture of 0 to 1: a ramp, some discs of other colours and a little noise; [1, channels, size, size]. */
export function picture(stream: RandomStream, channels: number, size: number): SampleTensor {
  const values = normals(stream, channels * size * size, 0.03);
  const [slope = 0, base = 0] = normals(stream, 2, 0.2);
  const discs = Array.from({ length: 5 }, () => ({
    x: stream.below(size),
    y: stream.below(size),
    r: 2 + stream.below(size / 4),
    colours: normals(stream, channels, 0.4),
  }));
  for (let c = 0, i = 0; c < channels; c++)
    for (let y = 0; y < size; y++)
      for (let x = 0; x < size; x++, i++) {
        values[i]! += 0.45 + base + slope * (x / size - 0.5);
        for (const disc of discs)
          if ((x - disc.x) ** 2 + (y - disc.y) ** 2 < disc.r ** 2) values[i]! += disc.colours[c]!;
        values[i] = Math.min(1, Math.max(0, values[i]!));
      }
  return floats([1, channels, size, size], values);
}

/** Some tones that come and go, and noise: [1, length]. */
export function sound(stream: RandomStream, length: number): SampleTensor {
  const values = normals(stream, length, 0.02);
  for (let tone = 0; tone < 4; tone++) {
    const [amplitude = 0, place = 0] = normals(stream, 2, 0.3);
    const period = 4 + stream.below(60);
    for (let i = 0; i < length; i++) {
      const envelope = Math.exp(-(((i / length - 0.5 - place) * 4) ** 2));
      values[i]! += amplitude * envelope * Math.sin((2 * Math.PI * i) / period);
    }
  }
  return floats([1, length], values);
}
