import { attribute, type GraphBuilder } from '../../../src/formats/onnx/index.js';
import { floats, ids, modelFile } from '../../engines/runtime/onnxruntime/models.js';

/** What can be wrong with it. */
export interface EncoderFaults {
  /** `cache_drop_size` that the export was made with. */
  readonly drop?: number;
}

/**
 * The model of test/fixtures/contracts/batch-first: the interface of a cache-aware encoder, its lengths by the same law, its caches a running mixture of
 * what came in.
 */
export const encoderModel = ({ drop = 3 }: EncoderFaults = {}): Promise<string> =>
  modelFile((graph) => describe(graph, drop));

function describe(graph: GraphBuilder, drop: number): void {
  graph.input('audio_signal', 'float32', ['B', 8, 'T']);
  graph.input('length', 'int64', ['B']);
  graph.input('cache_last_channel', 'float32', ['B', 2, 16, 8]);
  graph.input('cache_last_time', 'float32', ['B', 2, 8, 4]);
  graph.input('cache_last_channel_len', 'int64', ['B']);
  const numbers = { one: 1, two: 2, three: 3, capacity: 16, dropped: 2 + drop, first: 0, axis: 2 };
  for (const [name, value] of Object.entries(numbers)) graph.initializer(name, ids([1], [value]));
  graph.initializer('from', ids([1], [-3]));
  graph.initializer('to', ids([1], [1 << 30]));
  graph.initializer('half', floats('float32', [], [0.5]));
  graph.initializer('inner', ids([2], [1, 2]));
  const op = (type: string, inputs: string[], output: string, attributes = {}) =>
    graph.node(type, { inputs, outputs: [output], attributes });

  // Three stages of stride 2, in integers.
  let steps = 'length';
  for (const stage of [1, 2, 3]) {
    op('Sub', [steps, 'one'], `less${stage}`);
    op('Div', [`less${stage}`, 'two'], `halved${stage}`);
    op('Add', [`halved${stage}`, 'one'], `steps${stage}`);
    steps = `steps${stage}`;
  }
  op('Add', ['cache_last_channel_len', steps], 'more');
  op('Sub', ['more', 'dropped'], 'kept');
  op('Min', ['kept', 'capacity'], 'cache_last_channel_len_out');
  op('Sub', ['length', 'length'], 'none');
  op('Add', ['none', 'three'], 'encoded_lengths');

  op('Slice', ['audio_signal', 'from', 'to', 'axis'], 'last');
  op('ReduceMean', ['cache_last_channel'], 'memory', {
    axes: attribute.ints([1, 2]),
    keepdims: attribute.int(0),
  });
  op('Unsqueeze', ['memory', 'axis'], 'column');
  op('Add', ['last', 'column'], 'encoder_output');
  op('ReduceMean', ['audio_signal'], 'mean', { axes: attribute.ints([2]), keepdims: attribute.int(0) });
  op('Unsqueeze', ['mean', 'inner'], 'row');
  op('Mul', ['cache_last_channel', 'half'], 'faded');
  op('Add', ['faded', 'row'], 'cache_last_channel_out');
  op('Identity', ['cache_last_time'], 'cache_last_time_out');
  graph.output('encoder_output', 'float32', ['B', 8, 'T_out']);
  graph.output('encoded_lengths', 'int64', ['B']);
  graph.output('cache_last_channel_out', 'float32', ['B', 2, 'C_out', 8]);
  graph.output('cache_last_time_out', 'float32', ['B', 2, 8, 'K_out']);
  graph.output('cache_last_channel_len_out', 'int64', ['B']);
}
