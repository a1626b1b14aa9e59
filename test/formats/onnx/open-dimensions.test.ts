import { describe, expect, test } from 'vitest';
import { isPlaceholder, openDimensions } from '../../../src/formats/onnx/open-dimensions.js';

type Shape = readonly (number | string | null)[] | null;
const input = (name: string, shape: Shape, dtype = 'float32') => ({ name, dtype, shape });
const ids = (name: string, shape: Shape) => input(name, shape, 'int64');

/** `input axis` to the first size that is tried for it. */
const guess = (...inputs: readonly ReturnType<typeof input>[]) =>
  Object.fromEntries(
    openDimensions(inputs).flatMap(({ places, tries }) =>
      places.map((place) => [`${place.input} ${place.axis}`, tries[0]]),
    ),
  );

describe('what an open dimension counts', () => {
  test.each<[string, ReturnType<typeof input>[], Record<string, number>]>([
    ['a first axis is the batch', [input('x', [null, 7])], { 'x 0': 1 }],
    ['names decide', [input('x', ['N', 'T', 'seq_len'])], { 'x 0': 1, 'x 1': 128, 'x 2': 16 }],
    ['sides of an image', [input('x', ['b', 3, null, null])], { 'x 0': 1, 'x 2': 224, 'x 3': 224 }],
    ['channels last', [input('x', [null, 'h', 'w', 3], 'uint8')], { 'x 0': 1, 'x 1': 224, 'x 2': 224 }],
    ['seven channels are no image', [input('x', [1, 7, null, 9])], { 'x 2': 8 }],
    ['sound by its name', [input('waveform', [null, 1, null])], { 'waveform 0': 1, 'waveform 2': 16_000 }],
    ['one signal without a batch', [input('audio', [null])], { 'audio 0': 16_000 }],
    ['a number of samples first is the batch', [input('x', ['num_samples', 4])], { 'x 0': 1 }],
    ['tokens', [ids('ids', ['batch', 'sequence'])], { 'ids 0': 1, 'ids 1': 16 }],
    [
      'several names on first axes are no batch',
      [input('atoms', ['num_atoms', 3]), input('bonds', ['num_bonds', 2])],
      { 'atoms 0': 8, 'bonds 0': 8 },
    ],
    [
      'but names that only count are',
      [input('a', ['unk__1', 3]), input('b', ['p2o.DynamicDimension.0', 2])],
      { 'a 0': 1, 'b 0': 1 },
    ],
    ['nor is a name that stands on later axes too', [input('x', ['m', 'm'])], { 'x 0': 8, 'x 1': 8 }],
    [
      'a state has the batch of the inputs',
      [input('state', [2, null, 4]), input('x', [5, null])],
      { 'state 1': 5, 'x 1': 8 },
    ],
  ])('%s', (_what, inputs, expected) => {
    expect(guess(...inputs)).toEqual(expected);
  });

  test('a dimension has every place of its name, and a state shares that of the batch', () => {
    const inputs = [input('x', ['frames', 3]), input('y', [2, 'frames']), input('h', [1, null, 8])];
    expect(openDimensions(inputs).map(({ symbol, places }) => [symbol, places.length])).toEqual([
      ['frames', 3],
    ]);
  });

  test('an input without a rank, or with no open dimension, has none', () => {
    expect(openDimensions([input('x', null), input('y', [1, 2])])).toEqual([]);
  });

  test.each(['?', '*', 'None', '-1', 'unk__12', 'unknown'])('«%s» names nothing', (symbol) => {
    expect(isPlaceholder(symbol)).toBe(true);
    expect(openDimensions([input('x', [1, symbol, symbol])])).toHaveLength(2);
  });
});
