import fc from 'fast-check';
import { expect, test } from 'vitest';
import { pythonJson, pythonJsonText, replaceBare } from '../../../src/base/files/json.js';

test('reads what JSON.parse reads, whatever the spaces', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), fc.constantFrom(undefined, 1, '\t'), (value, space) => {
      const text = JSON.stringify(value, null, space);
      expect(pythonJson(text)).toEqual(JSON.parse(text));
      // A number that JSON lacks takes the other way.
      expect(pythonJson(`[NaN, ${text}]`)).toEqual([Number.NaN, JSON.parse(text)]);
    }),
  );
});

test("reads Python's numbers, and nothing else that is not JSON", () => {
  expect(pythonJson('{"a": [NaN, Infinity, -Infinity, 1e3], "b": "NaN \\\\\\" -Infinity"}')).toEqual({
    a: [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1000],
    b: 'NaN \\" -Infinity',
  });
  for (const text of ['', 'NaNs', '--Infinity', '[NaN', '["a]', "{'a': 1}", '[01]'])
    expect(() => pythonJson(text)).toThrow(SyntaxError);
});

test('replaces outside of strings only', () => {
  fc.assert(
    fc.property(fc.array(fc.string()), (texts) => {
      const text = texts.map((each) => `1,${JSON.stringify(each)}`).join(',');
      const twos = texts.map((each) => `2,${JSON.stringify(each)}`).join(',');
      expect(replaceBare(text, /1/g, () => '2')).toBe(twos);
    }),
  );
});

test('writes numbers that JSON lacks as Python reads them', () => {
  const value = { a: Number.NaN, b: [Number.NEGATIVE_INFINITY, -0], c: 'x', d: null };
  const text = pythonJsonText(value);
  expect(text).toBe('{"a":NaN,"b":[-Infinity,-0.0],"c":"x","d":null}');
  expect(pythonJson(text)).toEqual(value);
});
