import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { faultText, schemaFault } from '../../../src/base/text/schema-error.js';

const schema = z.strictObject({
  name: z.string(),
  sizes: z.array(z.strictObject({ bytes: z.number() })),
  place: z.union([z.string(), z.strictObject({ path: z.string(), line: z.number() })]),
  kind: z.enum(['plan', 'model']).default('plan'),
  version: z.literal(1).default(1),
  mode: z.union([z.literal('fast'), z.literal('slow')], { error: 'is neither fast nor slow' }),
});
const whole = { name: 'a', sizes: [], place: 'here', mode: 'fast' };
const errorOf = (value: unknown): z.ZodError => {
  const { error } = schema.safeParse(value);
  if (error === undefined) throw new Error('a fault was expected');
  return error;
};

describe('what a schema finds wrong with a document', () => {
  test.each([
    ['a field that is missing', { ...whole, name: undefined }, '"name": it is missing'],
    [
      'a type, deep inside',
      { ...whole, sizes: [{ bytes: 1 }, { bytes: '2' }] },
      '"sizes.1.bytes": a number is expected here, not text',
    ],
    ['a word that is not in the list', { ...whole, kind: 'x' }, '"kind": "plan" or "model" is expected here'],
    ['another value than the only one', { ...whole, version: 2 }, '"version": 1 is expected here'],
    ['the whole', [], '`name: value` entries is expected here, not a list'],
    ['a key that is not known', { ...whole, nmae: 'b' }, '"nmae" is not a known key'],
    [
      'the branch of a choice that was meant',
      { ...whole, place: { path: 'x', line: '3' } },
      '"place.line": a number is expected here, not text',
    ],
    [
      'a choice that has words of its own',
      { ...whole, mode: 'middling' },
      '"mode": is neither fast nor slow',
    ],
  ])('%s', (_, value, text) => {
    expect(faultText(errorOf(value))).toBe(text);
  });

  test('a misspelt key comes before the field that is missing because of it', () => {
    const { name, ...rest } = whole;
    expect(schemaFault(errorOf({ ...rest, nmae: name }))).toEqual({
      place: [],
      unknownKey: 'nmae',
      why: '"nmae" is not a known key',
    });
  });

  test('is reported in one line of bounded length, however long the names of the document', () => {
    expect(faultText(errorOf({ ...whole, ['x'.repeat(1000)]: 1 }))).toHaveLength(400);
  });
});
