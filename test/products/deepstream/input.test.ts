import { describe, expect, test } from 'vitest';
import type { ModelFacts, ValueFacts } from '../../../src/formats/onnx/model-facts.js';
import { shapesAt, streamsInputs } from '../../../src/products/deepstream/input.js';
import type { StreamsRequest } from '../../../src/products/deepstream/options.js';
import { refusal } from '../../support/refusal.js';

const model = (...inputs: [string, ValueFacts['shape']][]): Pick<ModelFacts, 'file' | 'inputs'> => ({
  file: 'net.onnx',
  inputs: inputs.map(([name, shape]) => ({ name, dtype: 'float32', shape })),
});
const one = (size: number) => ({ min: size, opt: size, max: size });
const dims = (facts: Pick<ModelFacts, 'file' | 'inputs'>, wishes: StreamsRequest['input'], batch: number) =>
  Object.fromEntries(shapesAt(streamsInputs(facts, wishes), batch).map(({ name, dims }) => [name, dims]));

describe('the image input', () => {
  test.each<
    [string, Pick<ModelFacts, 'file' | 'inputs'>, StreamsRequest['input'], Record<string, readonly number[]>]
  >([
    ['a named batch', model(['images', ['batch', 3, 640, 480]]), {}, { images: [8, 3, 640, 480] }],
    ['an unnamed batch', model(['x', [null, 3, 224, 224]]), {}, { x: [8, 3, 224, 224] }],
    ['a batch of 0, as some exporters write open ones', model(['x', [0, 3, 8, 8]]), {}, { x: [8, 3, 8, 8] }],
    ['a grey picture', model(['x', ['N', 1, 28, 28]]), {}, { x: [8, 1, 28, 28] }],
    ['open height and width', model(['x', ['N', 3, 'h', 'w']]), { height: 5, width: 6 }, { x: [8, 3, 5, 6] }],
    [
      'dimensions by their names, of other inputs too',
      model(['x', ['N', 3, 'h', 'w']], ['mask', ['N', 'h']]),
      { dims: { h: one(5), w: one(6) } },
      { x: [8, 3, 5, 6], mask: [8, 5] },
    ],
    ['only the width open', model(['x', ['N', 3, 32, null]]), { width: 64 }, { x: [8, 3, 32, 64] }],
    ['open channels', model(['x', ['N', 'c', 16, 16]]), {}, { x: [8, 3, 16, 16] }],
    ['NHWC', model(['x', ['N', 224, 192, 3]]), {}, { x: [8, 224, 192, 3] }],
    ['NHWC with open size', model(['x', ['N', null, null, 3]]), { height: 7, width: 9 }, { x: [8, 7, 9, 3] }],
    ['no picture at all', model(['x', ['N', 64]]), {}, { x: [8, 64] }],
    [
      'a second input that follows the batch',
      model(['images', ['N', 3, 640, 640]], ['orig_target_sizes', ['N', 2]]),
      {},
      { images: [8, 3, 640, 640], orig_target_sizes: [8, 2] },
    ],
    [
      'a second input of fixed shape, and one that is a number',
      model(['images', ['N', 3, 8, 8]], ['anchors', [100, 4]], ['threshold', []]),
      {},
      { images: [8, 3, 8, 8], anchors: [100, 4], threshold: [] },
    ],
    [
      'the one of two pictures that is named',
      model(['left', ['N', 3, 8, 8]], ['right', ['N', 3, 8, 8]]),
      { input: 'right' },
      { right: [8, 3, 8, 8], left: [8, 3, 8, 8] },
    ],
  ])('%s', (_what, facts, wishes, expected) => {
    expect(dims(facts, wishes, 8)).toEqual(expected);
  });

  test.each<[string, NonNullable<StreamsRequest['input']['dims']>]>([
    ['a name that no dimension has', { height: one(640) }],
    ['a range', { h: { min: 320, opt: 640, max: 640 } }],
    ['the batch', { N: one(8) }],
  ])('rejects %s', (_what, dims) => {
    const image = model(['x', ['N', 3, 'h', 32]]);
    expect(refusal(() => streamsInputs(image, { dims })).code).toBe('TF_PROFILE_INVALID');
  });

  test('height, width and layout are reported', () => {
    expect(streamsInputs(model(['x', ['N', 224, 192, 3]]), {})).toMatchObject({
      image: 'x',
      layout: 'NHWC',
      channels: 3,
      height: 224,
      width: 192,
      notes: [expect.stringContaining('NHWC')],
    });
    expect(streamsInputs(model(['x', ['N', 3, 20, 30]]), {})).toMatchObject({
      height: 20,
      width: 30,
      notes: [],
    });
    expect(streamsInputs(model(['x', ['N', 64]]), {})).toMatchObject({
      layout: 'other',
      height: null,
      width: null,
    });
  });
});

describe('what cannot be sized is rejected by name', () => {
  test.each<[string, Pick<ModelFacts, 'file' | 'inputs'>, StreamsRequest['input'], string, RegExp]>([
    ['a fixed batch', model(['x', [1, 3, 8, 8]]), {}, 'TF_PROFILE_INVALID', /"x" .* batch at 1/],
    ['open height', model(['x', ['N', 3, 'h', 8]]), {}, 'TF_PROFILE_MISSING', /"x" .* height open/],
    ['open width', model(['x', ['N', 3, 8, null]]), { height: 8 }, 'TF_PROFILE_MISSING', /width open/],
    [
      'another height than the model has',
      model(['x', ['N', 3, 8, 8]]),
      { height: 9 },
      'TF_PROFILE_INVALID',
      /8, not 9/,
    ],
    [
      'two pictures',
      model(['a', ['N', 3, 8, 8]], ['b', ['N', 3, 8, 8]]),
      {},
      'TF_PROFILE_INVALID',
      /a, b.* more than one/,
    ],
    [
      'several inputs and no picture',
      model(['a', ['N', 8]], ['b', ['N', 8]]),
      {},
      'TF_PROFILE_INVALID',
      /none of them/,
    ],
    ['no input', model(), {}, 'TF_PROFILE_INVALID', /0 inputs/],
    [
      'an input that is not there',
      model(['a', ['N', 8]]),
      { input: 'b' },
      'TF_PROFILE_INVALID',
      /no input "b"/,
    ],
    ['no declared shape', model(['a', null]), {}, 'TF_PROFILE_INVALID', /declares no dimensions/],
    [
      'a sequence of open length',
      model(['ids', ['N', 'length']]),
      {},
      'TF_PROFILE_INVALID',
      /"ids" .* more than its first/,
    ],
    [
      'a second input of open length',
      model(['x', ['N', 3, 8, 8]], ['boxes', ['N', 'count', 4]]),
      {},
      'TF_PROFILE_INVALID',
      /"boxes" .* only "x"/,
    ],
    [
      'a height for what is no picture',
      model(['a', ['N', 8]]),
      { height: 8 },
      'TF_PROFILE_INVALID',
      /no height and width/,
    ],
  ])('%s', (_what, facts, wishes, code, message) => {
    const error = refusal(() => streamsInputs(facts, wishes));
    expect(error.code).toBe(code);
    expect(error.message).toMatch(message);
  });
});
