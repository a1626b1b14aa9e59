import { describe, expect, test } from 'vitest';
import * as is from '../../../src/base/options/kinds.js';
import {
  parseNamedFile,
  parseShapes,
  parseTolerance,
  parseValueRange,
  pattern,
} from '../../../src/base/options/readers.js';
import { parseSize } from '../../../src/base/text/quantity.js';
import { TrtforgeError } from '../../../src/errors.js';

const codeOf = (action: () => unknown): string | undefined => {
  try {
    action();
  } catch (error) {
    if (error instanceof TrtforgeError) return error.code;
    throw error;
  }
  return undefined;
};

describe('shapes', () => {
  test.each([
    ['x:1x3x224x224', [{ name: 'x', dims: [1, 3, 224, 224] }]],
    ['x:[1, 3,224,224]', [{ name: 'x', dims: [1, 3, 224, 224] }]],
    [
      'x:1X8,y:[2,4]',
      [
        { name: 'x', dims: [1, 8] },
        { name: 'y', dims: [2, 4] },
      ],
    ],
    ['length:1', [{ name: 'length', dims: [1] }]],
    ['s:scalar', [{ name: 's', dims: [] }]],
    ['onnx::Cast:0:1x2', [{ name: 'onnx::Cast:0', dims: [1, 2] }]],
    ["'a,b':3", [{ name: 'a,b', dims: [3] }]],
    ['x:0x4', [{ name: 'x', dims: [0, 4] }]],
  ])('%s', (text, expected) => {
    expect(parseShapes(text)).toEqual(expected);
  });

  test.each(['x', 'x:', ':1x2', 'x:1x-2', 'x:1x2.5', 'x:axb', 'x:[1,2', 'x:99999999999999999999'])(
    '"%s" is rejected',
    (text) => {
      expect(codeOf(() => parseShapes(text))).toBe('TF_SHAPE_INVALID');
    },
  );
});

describe('sizes', () => {
  test.each([
    ['4G', 4 * 2 ** 30],
    ['4GiB', 4 * 2 ** 30],
    ['4Gi', 4 * 2 ** 30],
    ['4gb', 4 * 2 ** 30],
    ['4096M', 2 ** 32],
    ['32768MiB', 2 ** 35],
    ['512k', 2 ** 19],
    ['1048576B', 2 ** 20],
    ['1.5G', 1.5 * 2 ** 30],
    ['64', 64 * 2 ** 20],
  ])('%s is %d bytes', (text, bytes) => {
    expect(parseSize(text)).toBe(bytes);
  });

  test.each(['', 'G', '4X', '4Gx', '-4G', '4 Gigs', '0', '1e3M', '0x10M'])('"%s" is rejected', (text) => {
    expect(codeOf(() => parseSize(text))).toBe('TF_SIZE_INVALID');
  });
});

describe('numbers, tolerances, ranges, files', () => {
  test('a tolerance is for all outputs or for one', () => {
    expect(parseTolerance('1e-3')).toEqual({ name: null, value: 1e-3 });
    expect(parseTolerance('out:0:5e-4')).toEqual({ name: 'out:0', value: 5e-4 });
    for (const bad of ['', 'out:', ':1e-3', 'out:-1', 'Infinity', 'nan'])
      expect(codeOf(() => parseTolerance(bad))).toBe('TF_USAGE');
  });

  test('a range of values is for all inputs or for one', () => {
    expect(parseValueRange('[0,1]')).toEqual({ name: null, low: 0, high: 1 });
    expect(parseValueRange('x:[-1.5, 2]')).toEqual({ name: 'x', low: -1.5, high: 2 });
    for (const bad of ['x', '[1,0]', '[a,b]', 'x:[1]'])
      expect(codeOf(() => parseValueRange(bad))).toBe('TF_USAGE');
  });

  test('an input file is name=@path', () => {
    expect(parseNamedFile('x=@a/b=c.npy')).toEqual({ name: 'x', path: 'a/b=c.npy' });
    for (const bad of ['x', '=@a', 'x=@', '@a']) expect(codeOf(() => parseNamedFile(bad))).toBe('TF_USAGE');
  });

  test('whole numbers and numbers hold their bounds', () => {
    expect(is.whole(0, 5).parse('5')).toBe(5);
    expect(is.decimal(0, 1).parse('.5')).toBe(0.5);
    for (const bad of ['6', '-1', '2.5', 'x', '', '0x2'])
      expect(codeOf(() => is.whole(0, 5).parse(bad))).toBe('TF_USAGE');
    expect(() => is.whole(0, 5).parse('9')).toThrow('"9" is not a whole number from 0 to 5.');
  });

  test('a bad regular expression is bad usage', () => {
    expect(pattern('^a.*b$').test('axb')).toBe(true);
    expect(codeOf(() => pattern('('))).toBe('TF_USAGE');
  });
});
