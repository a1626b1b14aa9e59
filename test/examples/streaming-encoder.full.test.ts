import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { convertModel } from 'trtforge';
import { GraphBuilder } from 'trtforge/onnx';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { modelFamilies } from '../../examples/models/catalogue.js';
import { Network } from '../../examples/models/network.js';
import { RandomStream } from '../../examples/models/random.js';
import { streamingEncoder } from '../../examples/models/streaming-encoder/encoder.js';
import { type StreamingShape, streamingShapes } from '../../examples/models/streaming-encoder/shapes.js';
import { writeNetwork } from '../../examples/models/write-network.js';
import { openOrtSession } from '../../src/engines/runtime/onnxruntime/ort-session.js';
import type { Session } from '../../src/engines/runtime/session.js';
import type { Contract } from '../../src/formats/contract/contract.js';
import { readContract } from '../../src/formats/contract/file.js';
import { nextState } from '../../src/formats/contract/state.js';
import {
  float32Values,
  floatTensor,
  integerTensor,
  type NamedTensors,
  numbersOf,
  type Tensor,
} from '../../src/formats/tensor/tensor.js';
import { checkOwnNumbers } from '../../src/products/streaming/check/own-numbers.js';
import { checkAssertions, type Step } from '../../src/products/streaming/contract/assertions.js';
import { simulateLengths } from '../../src/products/streaming/contract/cache-length.js';
import { describeWith } from '../support/needs.js';

const CHUNKS = 300;
const tiny = streamingShapes.tiny;

let folder: string;
let model: string;
let contract: Contract;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'trtforge-streaming-'));
  const files = await modelFamilies['streaming-encoder']!.write('tiny', folder, { seed: 1, external: false });
  model = files[0]!;
  contract = readContract(files[1]!);
});
afterAll(() => rmSync(folder, { recursive: true }));

const noise = (name: string, shape: readonly number[]): Tensor => {
  const values = new Float32Array(shape.reduce((product, size) => product * size, 1));
  new RandomStream(5, name).fillNormal(values, 0, 1);
  return floatTensor('float32', shape, values);
};
const lengths = (...values: readonly number[]) => integerTensor('int64', [values.length], values);

const emptyState = ({ layers, cacheSize, width }: StreamingShape = tiny): NamedTensors =>
  new Map([
    [
      'cache_last_channel',
      floatTensor('float32', [1, layers, cacheSize, width], new Float32Array(layers * cacheSize * width)),
    ],
    ['cache_last_time', floatTensor('float32', [1, layers, width, 4], new Float32Array(layers * width * 4))],
    ['cache_last_channel_len', lengths(0)],
  ]);

const chunkOf = (index: number): NamedTensors => {
  const frames = index === 0 ? 41 : 57;
  return new Map([
    ['audio_signal', noise(`chunk ${index}`, [1, tiny.mels, frames])],
    ['length', lengths(frames)],
  ]);
};

/** Runs a stream, its state fed back; gives each step. */
async function stream(session: Session, chunks: number, start = emptyState()): Promise<Step[]> {
  const steps: Step[] = [];
  let state = start;
  for (let chunk = 0; chunk < chunks; chunk++) {
    const inputs = new Map([...chunkOf(chunk), ...state]);
    const outputs = await session.run(inputs);
    steps.push({ chunk, inputs, outputs });
    state = nextState(contract, outputs);
  }
  return steps;
}

const output = (step: Step | undefined, name = 'encoder_output') => float32Values(step!.outputs.get(name)!);
const largest = (a: Float32Array, b: Float32Array) =>
  a.reduce((most, value, at) => Math.max(most, Math.abs(value - b[at]!)), 0);

describe('the streaming encoder', () => {
  it('has the published sizes: 24 layers of 1024, 0.6 G parameters', () => {
    const network = new Network(new GraphBuilder('full'), 1);
    streamingEncoder(network, streamingShapes.full);
    expect(network.parameters).toBeGreaterThan(600e6);
    expect(network.parameters).toBeLessThan(640e6);
  });

  it('comes with a contract that agrees with its own cache-length rule', () => {
    expect(contract).toMatchObject({ schema: 'trtforge.contract/1', name: 'streaming-encoder-tiny' });
    expect(contract.schedule).toMatchObject({ first: 41, rest: 57 });
    expect(checkOwnNumbers(contract)).toEqual([]);
  });
});

describeWith('onnxruntime', 'the streaming encoder on ONNX Runtime', () => {
  let session: Session;
  beforeAll(async () => {
    session = await openOrtSession(model);
  });
  afterAll(() => session.close());

  it(`stays finite and bounded over ${CHUNKS} chunks, keeps every promise, and its lengths follow the cache-length rule`, async () => {
    const steps = await stream(session, CHUNKS);
    const broken = steps.flatMap((step, at) => checkAssertions(contract, step, steps[at - 1]));
    expect(broken).toEqual([]);
    const largestOf = (step: Step, name: string) =>
      float32Values(step.outputs.get(name)!).reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    for (const step of steps) {
      for (const name of ['encoder_output', 'cache_last_channel_out', 'cache_last_time_out'])
        expect(largestOf(step, name)).toBeLessThan(50);
      expect(largestOf(step, 'encoder_output')).toBeGreaterThan(0.5);
    }
    const frames = steps.map(({ inputs }) => Number(numbersOf(inputs.get('length')!)[0]));
    expect(steps.map(({ outputs }) => numbersOf(outputs.get('cache_last_channel_len_out')!)[0])).toEqual(
      simulateLengths(contract.cacheLengthRule!, frames).map(({ stateOut }) => stateOut),
    );
  });

  it('gets the fill of the caches', async () => {
    const [, second] = await stream(session, 2);
    const alone = await session.run(new Map([...chunkOf(1), ...emptyState()]));
    expect(largest(output(second), float32Values(alone.get('encoder_output')!))).toBeGreaterThan(0.01);
  });

  it('never reads beyond the valid length of a cache', async () => {
    const [first] = await stream(session, 1);
    const state = nextState(contract, first!.outputs);
    const channel = state.get('cache_last_channel')!;
    const junk = float32Values(channel).map((value, at) =>
      Math.floor(at / tiny.width) % tiny.cacheSize === 0 ? value : 1e3,
    );
    const soiled = new Map([...state, ['cache_last_channel', floatTensor('float32', channel.shape, junk)]]);
    const clean = await session.run(new Map([...chunkOf(1), ...state]));
    const dirty = await session.run(new Map([...chunkOf(1), ...soiled]));
    for (const name of ['encoder_output', 'cache_last_channel_out'])
      expect(largest(float32Values(dirty.get(name)!), float32Values(clean.get(name)!))).toBe(0);
  });

  it('gives the same with room for more steps, until the smaller cache is full', async () => {
    const roomy = { ...tiny, cacheSize: 2 * tiny.cacheSize };
    const [path] = await writeNetwork(
      join(folder, 'roomy.onnx'),
      (network) => streamingEncoder(network, roomy),
      { seed: 1, external: false },
    );
    const other = await openOrtSession(path!);
    try {
      const small = await stream(session, 8);
      const state = contract.state.map((pair) => ({
        ...pair,
        capacity: pair.capacity === null ? null : roomy.cacheSize,
      }));
      let next = emptyState(roomy);
      for (const [at, step] of small.entries()) {
        const outputs = await other.run(new Map([...chunkOf(at), ...next]));
        next = nextState({ inputs: contract.inputs, state }, outputs);
        const difference = largest(float32Values(outputs.get('encoder_output')!), output(step));
        // 1, 4, 7, 10, 13 and 16 steps fit into both; what the eighth chunk looks back at does not.
        if (at <= 6) expect(difference).toBeLessThan(1e-4);
        else expect(difference).toBeGreaterThan(1e-3);
      }
    } finally {
      await other.close();
    }
  });

  it('keeps the streams of a batch apart, however full their caches are', async () => {
    const steps = await stream(session, 3);
    const late = nextState(contract, steps[2]!.outputs);
    const early = emptyState();
    const both = (a: NamedTensors, b: NamedTensors, name: string): Tensor => {
      const [first, second] = [a.get(name)!, b.get(name)!];
      return { ...first, shape: first.shape.with(0, 2), bytes: Buffer.concat([first.bytes, second.bytes]) };
    };
    const inputs = (state: NamedTensors, chunk: number) => new Map([...chunkOf(chunk), ...state]);
    const [x, y] = [inputs(late, 3), inputs(early, 4)];
    const together = await session.run(new Map([...x.keys()].map((name) => [name, both(x, y, name)])));
    const apart = [await session.run(x), await session.run(y)];
    const size = tiny.width * 3;
    const values = float32Values(together.get('encoder_output')!);
    for (const [at, outputs] of apart.entries())
      expect(
        largest(values.slice(at * size, (at + 1) * size), float32Values(outputs.get('encoder_output')!)),
      ).toBeLessThan(1e-4);
    expect(numbersOf(together.get('cache_last_channel_len_out')!)).toEqual(Float64Array.of(10, 3));
  });

  it('becomes a typed FP16 model whose stream stays close', async () => {
    const path = join(folder, 'fp16.onnx');
    await convertModel(model, path, { precision: 'fp16' });
    const converted = await openOrtSession(path);
    try {
      const [exact, rounded] = [await stream(session, 40), await stream(converted, 40)];
      for (const [at, step] of exact.entries())
        expect(largest(output(step), output(rounded[at]))).toBeLessThan(0.05);
    } finally {
      await converted.close();
    }
  });
});
