import { openOrtSession } from '../../../src/engines/runtime/onnxruntime/ort-session.js';
import type { Session } from '../../../src/engines/runtime/session.js';
import type { Contract } from '../../../src/formats/contract/contract.js';
import { fitToCapacity, nextState } from '../../../src/formats/contract/state.js';
import { attribute, type GraphBuilder } from '../../../src/formats/onnx/index.js';
import type { Reference, ReferenceChunk } from '../../../src/formats/reference/reference.js';
import { randomStream } from '../../../src/formats/tensor/random.js';
import { integerTensor, type NamedTensors, type Tensor } from '../../../src/formats/tensor/tensor.js';
import { contractFromModel } from '../../../src/products/streaming/contract/draft.js';
import { floats, ids, modelFile } from '../../engines/runtime/onnxruntime/models.js';

/** Positions that the cache holds. */
export const CAPACITY = 8;
/** Frames of the first chunk and of every later one. */
const SIZES = [5, 3] as const;

export interface TinyFaults {
  /** What the running sum grows by in every step, more than it should. */
  readonly drift?: number;
  /** How much the cached length grows in a step; 1 is right. */
  readonly step?: number;
  /** Written into the positions of the cache that nothing has filled yet. */
  readonly junk?: number;
  /** Added to the main output everywhere. */
  readonly bias?: number;
  /** The cache is not read. */
  readonly ignoresCache?: boolean;
  /** The cache comes out with its two middle axes exchanged. */
  readonly layerFirst?: boolean;
  /** The main output is NaN. */
  readonly isNaN?: boolean;
  /** What lengths are; `int32` is what TensorRT before 10 makes of int64. */
  readonly lengthType?: 'int64' | 'int32';
}

/**
 * A streaming model: `cache` [B, 2, 8, 3] takes the mean of each chunk as a new first position and comes out a position too long; `cache_len` grows by one
 * until it is full; `sum` adds up how far the means are from 1; the output is the signal with both added.
 */
export const tinyModel = (faults: TinyFaults = {}): Promise<string> =>
  modelFile((graph) => describe(graph, faults));

function describe(graph: GraphBuilder, faults: TinyFaults): void {
  const { drift = 0, step = 1, junk = 0, bias = 0, lengthType = 'int64' } = faults;
  graph.input('signal', 'float32', ['B', 2, 'T']);
  graph.input('length', lengthType, ['B']);
  graph.input('cache', 'float32', ['B', 2, CAPACITY, 3]);
  graph.input('cache_len', lengthType, ['B']);
  graph.input('sum', 'float32', ['B', 2, 1]);
  const constant = (name: string, tensor: Tensor) => graph.initializer(name, tensor);
  constant('one', integerTensor(lengthType, [1], [step]));
  constant('capacity', integerTensor(lengthType, [1], [CAPACITY]));
  // Signals are 1 on average: the sum wanders about zero.
  constant('usual', floats('float32', [], [1 - drift]));
  constant('bias', floats('float32', [], [faults.isNaN === true ? Number.NaN : bias]));
  constant('use', floats('float32', [], [faults.ignoresCache === true ? 0 : 1]));
  constant('widths', ids([4], [1, 1, 1, 3]));
  constant('column', ids([4], [0, 2, 1, 1]));
  const op = (type: string, inputs: readonly string[], output: string, attributes = {}) =>
    graph.node(type, { inputs, outputs: [output], attributes });

  op('ReduceMean', ['signal'], 'mean', { axes: attribute.ints([2]), keepdims: attribute.int(1) });
  op('Sub', ['mean', 'usual'], 'grown');
  op('Add', ['sum', 'grown'], 'sum_out');
  op('Reshape', ['mean', 'column'], 'point');
  op('Expand', ['point', 'widths'], 'position');
  op('Concat', ['position', 'cache'], 'longer', { axis: attribute.int(2) });
  if (junk === 0) op('Identity', ['longer'], 'filled');
  else junkBehind(graph, op, constant, junk);
  if (faults.layerFirst === true)
    op('Transpose', ['filled'], 'cache_out', { perm: attribute.ints([1, 0, 2, 3]) });
  else op('Identity', ['filled'], 'cache_out');
  op('Add', ['cache_len', 'one'], 'more');
  op('Min', ['more', 'capacity'], 'cache_len_out');
  op('ReduceMean', ['cache'], 'remembered', { axes: attribute.ints([2, 3]), keepdims: attribute.int(0) });
  constant('lasts', ids([3], [0, 2, 1]));
  op('Reshape', ['remembered', 'lasts'], 'memory');
  op('Mul', ['memory', 'use'], 'used');
  op('Add', ['signal', 'used'], 'with');
  op('Add', ['with', 'sum_out'], 'summed');
  op('Add', ['summed', 'bias'], 'output');
  op('Identity', ['length'], 'lengths');
  graph.output('output', 'float32', ['B', 2, 'T']);
  graph.output('lengths', lengthType, ['B']);
  graph.output('cache_out', 'float32', faults.layerFirst === true ? null : ['B', 2, 'C', 3]);
  graph.output('cache_len_out', lengthType, ['B']);
  graph.output('sum_out', 'float32', ['B', 2, 1]);
}

type Op = (type: string, inputs: readonly string[], output: string) => string;

/** Adds `junk` where the cache was and is zero: positions that nothing has filled. */
function junkBehind(
  _graph: GraphBuilder,
  op: Op,
  constant: (name: string, tensor: Tensor) => string,
  junk: number,
): void {
  constant('nothing', floats('float32', [], [0]));
  constant('junk', floats('float32', [], [junk]));
  op('Equal', ['longer', 'nothing'], 'empty');
  op('Where', ['empty', 'junk', 'longer'], 'filled');
}

/** The signal of a chunk: 0.5 to 1.5. */
function chunkInputs(chunk: number, batch = 1): NamedTensors {
  const stream = randomStream(7, `chunk ${chunk}`);
  const frames = chunk === 0 ? SIZES[0] : SIZES[1];
  const signal = Array.from({ length: batch * 2 * frames }, () => 0.5 + stream.uniform());
  return new Map([
    ['signal', floats('float32', [batch, 2, frames], signal)],
    ['length', ids([batch], Array(batch).fill(frames))],
  ]);
}

const zeroState = (): NamedTensors =>
  new Map([
    ['cache', floats('float32', [1, 2, CAPACITY, 3], Array(2 * CAPACITY * 3).fill(0))],
    ['cache_len', ids([1], [0])],
    ['sum', floats('float32', [1, 2, 1], [0, 0])],
  ]);

export const contractOfSession = (session: Pick<Session, 'inputs' | 'outputs'>): Contract =>
  contractFromModel('tiny', session);

/** Records what the model gives, its own state fed back, state outputs as they were fed back. */
export async function recordTiny(chunks: number, path?: string): Promise<readonly ReferenceChunk[]> {
  const session = await openOrtSession(path ?? (await tinyModel()), { threads: 1 });
  try {
    const contract = contractOfSession(session);
    const recorded: ReferenceChunk[] = [];
    let state = zeroState();
    for (let index = 0; index < chunks; index++) {
      const inputs = new Map([...chunkInputs(index), ...state]);
      const raw = await session.run(inputs);
      const outputs = new Map(
        [...raw].map(([name, tensor]) => {
          const pair = contract.state.find(({ output }) => output === name);
          return [name, pair === undefined ? tensor : fitToCapacity(pair, tensor)] as const;
        }),
      );
      recorded.push({ index, inputs, outputs, meta: { ...EMPTY_META, line: index + 1 } });
      state = nextState(contract, raw);
    }
    return recorded;
  } finally {
    await session.close();
  }
}

const EMPTY_META: ReferenceChunk['meta'] = {
  line: 1,
  chunkLength: null,
  encodedLength: null,
  stateLength: null,
  stateLengthRaw: null,
  stepMs: null,
  recorded: {},
};

/** Recorded chunks as a reference. */
export function referenceOf(chunks: readonly ReferenceChunk[]): Reference {
  const bindings = (tensors: NamedTensors | undefined) =>
    [...(tensors ?? [])].map(([name, { dtype, shape }]) => ({ name, dtype, shape }));
  return {
    header: {
      path: 'memory',
      bytes: 0,
      provenance: null,
      inputs: bindings(chunks[0]?.inputs),
      outputs: bindings(chunks[0]?.outputs),
    },
    chunks: async function* ({ limit = chunks.length } = {}) {
      yield* chunks.slice(0, limit);
    },
    close: () => {},
    [Symbol.dispose]: () => {},
  };
}
