import { describe, expect, test } from 'vitest';
import { inBlocks, type Unit } from '../../../../src/products/study/advise/units.js';

const unit = (name: string, weights: number): Unit => ({
  name,
  nodes: [name],
  op: 'MatMul',
  weights,
  macs: 10 * weights,
  tensors: [`${name}/x`],
});

/** Query, key, value and output are alike, so shorter runs of equal units repeat too. */
const layers = (count: number) =>
  Array.from({ length: count }, (_, layer) =>
    [4, 4, 4, 4, 16, 16].map((weights, index) => unit(`${layer}.${index}`, weights)),
  ).flat();

describe('units of a large model', () => {
  test('are its repeated blocks', () => {
    const blocks = inBlocks([unit('embed', 9), ...layers(12), unit('head', 7)], 64);
    expect(blocks).toHaveLength(14);
    expect(blocks[1]).toEqual({
      name: '0.0 … 0.5',
      nodes: ['0.0', '0.1', '0.2', '0.3', '0.4', '0.5'],
      op: 'MatMul',
      weights: 48,
      macs: 480,
      tensors: ['0.0/x', '0.1/x', '0.2/x', '0.3/x', '0.4/x', '0.5/x'],
    });
    expect(blocks.at(-1)?.nodes).toEqual(['head']);
  });

  test('have every node once, in the order of the graph', () => {
    const all = [...layers(5), unit('between', 3), ...layers(7), unit('a', 1), unit('b', 2)];
    expect(inBlocks(all, 4).flatMap(({ nodes }) => nodes)).toEqual(all.map(({ name }) => name));
  });

  test('stay nodes where they are few', () => {
    expect(inBlocks(layers(2), 64)).toEqual(layers(2));
  });
});
