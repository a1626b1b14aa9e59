import { expect, test } from 'vitest';
import { pack, unpack } from '../../../src/products/explore/page/packed.js';

test('objects come back as they were packed, values that repeat being there once', () => {
  const objects = Array.from({ length: 100 }, (_, index) => ({
    name: `n${index}`,
    type: index % 2 === 0 ? 'Conv' : null,
    inputs: [index, index + 1],
    ms: index === 7 ? null : index / 3,
    why: null,
  }));
  const packed = pack(objects);
  const again = unpack<(typeof objects)[number]>(JSON.parse(JSON.stringify(packed)));
  expect(again.map(({ name, type, inputs, ms, why }) => ({ name, type, inputs, ms, why }))).toEqual(objects);
  expect(packed.fields.type).toMatchObject({ few: ['Conv', null] });
  expect(packed.fields.why).toEqual({ few: [null], at: [] });
  expect(unpack(pack([]))).toEqual([]);
});
