import {
  CHUNK_FRAMES,
  DROP,
  DROP_EXTRA,
  PRE_ENCODE_FRAMES,
  RESULT_STEPS,
  SHIFT_FRAMES,
  type StreamingShape,
  timeContext,
} from './shapes.js';

/** Frames of the chunks that a profile takes. */
const frames = { min: CHUNK_FRAMES.first, opt: CHUNK_FRAMES.rest, max: CHUNK_FRAMES.rest };

/** What the encoder promises, as `trtforge.contract/1`: its bindings, what is fed back, the schedule of chunks, profiles for them, and promises to check after every step. */
export function streamingContract(name: string, shape: StreamingShape) {
  const { mels, layers, width, cacheSize } = shape;
  const channel = ['B', layers, cacheSize, width];
  const time = ['B', layers, width, timeContext(shape)];
  return {
    schema: 'trtforge.contract/1',
    name,
    inputs: [
      { name: 'audio_signal', dtype: 'float32', shape: ['B', mels, 'T'], role: 'signal' },
      { name: 'length', dtype: 'int64', shape: ['B'], role: 'length' },
      { name: 'cache_last_channel', dtype: 'float32', shape: channel, role: 'state' },
      { name: 'cache_last_time', dtype: 'float32', shape: time, role: 'state' },
      { name: 'cache_last_channel_len', dtype: 'int64', shape: ['B'], role: 'state-length' },
    ],
    outputs: [
      { name: 'encoder_output', dtype: 'float32', shape: ['B', width, RESULT_STEPS], role: 'result' },
      { name: 'encoded_lengths', dtype: 'int64', shape: ['B'], role: 'length' },
      { name: 'cache_last_channel_out', dtype: 'float32', shape: channel, role: 'state' },
      { name: 'cache_last_time_out', dtype: 'float32', shape: time, role: 'state' },
      { name: 'cache_last_channel_len_out', dtype: 'int64', shape: ['B'], role: 'state-length' },
    ],
    state: [
      {
        input: 'cache_last_channel',
        output: 'cache_last_channel_out',
        axis: 2,
        capacity: cacheSize,
        validLength: 'cache_last_channel_len_out',
      },
      { input: 'cache_last_time', output: 'cache_last_time_out' },
      { input: 'cache_last_channel_len', output: 'cache_last_channel_len_out' },
    ],
    lengths: {
      signal: 'length',
      result: 'encoded_lengths',
      stateIn: 'cache_last_channel_len',
      stateOut: 'cache_last_channel_len_out',
    },
    cacheLengthRule: { capacity: cacheSize, dropExtra: DROP_EXTRA, drop: DROP },
    schedule: {
      tensor: 'audio_signal',
      axis: 2,
      first: CHUNK_FRAMES.first,
      rest: CHUNK_FRAMES.rest,
      shift: SHIFT_FRAMES,
      preEncode: PRE_ENCODE_FRAMES,
    },
    profiles: [
      profile('stream', { min: 1, opt: 1, max: 1 }, shape),
      profile('batched', { min: 1, opt: 4, max: 8 }, shape),
    ],
    assertions: [
      {
        id: 'encoded-lengths',
        tensor: 'encoded_lengths',
        kind: 'equal',
        value: RESULT_STEPS,
        sentence: `Every chunk gives ${RESULT_STEPS} steps.`,
      },
      {
        id: 'encoder-output-steps',
        tensor: 'encoder_output',
        kind: 'dimension-equals',
        axis: -1,
        value: RESULT_STEPS,
        sentence: `The output has ${RESULT_STEPS} steps.`,
      },
      {
        id: 'cache-length-bounded',
        tensor: 'cache_last_channel_len_out',
        kind: 'bounded-by-capacity',
        capacity: cacheSize,
        sentence: `The cache holds 0 to ${cacheSize} steps.`,
      },
      {
        id: 'cache-length-grows',
        tensor: 'cache_last_channel_len_out',
        kind: 'monotonic',
        than: 'cache_last_channel_len',
        until: cacheSize,
        sentence: 'The cache never gets shorter.',
      },
    ],
  };
}

interface Range {
  readonly min: number;
  readonly opt: number;
  readonly max: number;
}

function profile(name: string, batch: Range, shape: StreamingShape) {
  const fixed = (size: number): Range => ({ min: size, opt: size, max: size });
  const { mels, layers, width, cacheSize } = shape;
  return {
    name,
    ranges: {
      audio_signal: [batch, fixed(mels), frames],
      length: [batch],
      cache_last_channel: [batch, fixed(layers), fixed(cacheSize), fixed(width)],
      cache_last_time: [batch, fixed(layers), fixed(width), fixed(timeContext(shape))],
      cache_last_channel_len: [batch],
    },
  };
}
