import { describe, expect, it } from 'vitest';
import { parseProtobufText, printProtobufText } from '../../../src/formats/serving/protobuf-text.js';

const parse = (text: string) => parseProtobufText('inference.ModelConfig', text, 'config.pbtxt');

describe('configurations in protobuf text', () => {
  it('are read with the names of the file', () => {
    const text = `name: "enc"\tmax_batch_size: 8 # tabs and comments
      input [ { name: "x" data_type: TYPE_FP32 dims: [ 128, -1 ] } ]
      cc_model_filenames [ { key: "8.9" value: "sm_89.plan" } ]
      sequence_batching { max_sequence_idle_microseconds: 5000000 state [ { input_name: "z" output_name: "z_next" initial_state { dims: [ 2 ] zero_data: true } } ] }`;
    expect(parse(text)).toEqual({
      name: 'enc',
      max_batch_size: 8,
      input: [{ name: 'x', data_type: 'TYPE_FP32', dims: [128, -1] }],
      cc_model_filenames: { '8.9': 'sm_89.plan' },
      sequence_batching: {
        max_sequence_idle_microseconds: 5000000,
        state: [{ input_name: 'z', output_name: 'z_next', initial_state: [{ dims: [2], zero_data: true }] }],
      },
    });
  });

  it('are written so that they are read as they were', () => {
    const message = {
      infer_config: {
        max_batch_size: 4,
        backend: { triton: { model_name: 'd "1"', version: -1, model_repo: { root: ['../repo'] } } },
      },
    };
    const file = 'nvdsinferserver.config.PluginControl';
    expect(parseProtobufText(file, printProtobufText(file, message), 'x')).toEqual(message);
  });

  it.each([
    ['an unknown field', 'name: "a"\n\nnam: "x"\nmax_batch_size: 1', 3],
    ['another type', 'name: "a"\nmax_batch_size: "8"', 2],
    ['an unknown value', 'input [\n {\n data_type: TYPE_FP99 } ]', 3],
    ['text that ends early', 'name: "a"\ninput [ {', 2],
  ])('names the line of %s', (_, text, line) => {
    expect(() => parse(text)).toThrow(
      expect.objectContaining({
        code: 'TF_SERVING_CONFIG',
        message: expect.stringContaining(`line ${line}:`),
      }),
    );
  });
});
