import fc from 'fast-check';
import { expect, it } from 'vitest';
import { attribute as a, buildModel, GraphBuilder } from '../../../src/formats/onnx/builder.js';
import { inOrder } from '../../../src/formats/onnx/graph.js';

/** Node number n reads what the numbers say of the nodes before it, every third one out of a body. */
const graphs = fc.array(fc.array(fc.nat(30), { maxLength: 3 }), { minLength: 1, maxLength: 20 });

function nodesOf(reads: readonly (readonly number[])[]) {
  const g = new GraphBuilder('g');
  for (const [index, earlier] of reads.entries()) {
    const inputs = earlier.map((number) => (index === 0 ? 'x' : `v${number % index}`));
    if (index % 3 !== 2) g.node('Max', { name: `${index}`, inputs, outputs: [`v${index}`] });
    else {
      const body = new GraphBuilder('body');
      // Of the body's own, whatever the graph around it calls so.
      body.node('Max', { inputs: ['inner', ...inputs], outputs: ['own'] });
      body.node('Relu', { inputs: ['x'], outputs: ['inner'] });
      body.output('own', 'float32', null);
      g.node('If', { name: `${index}`, outputs: [`v${index}`], attributes: { then_branch: a.body(body) } });
    }
  }
  return buildModel(g).proto.graph?.node ?? [];
}

it('nodes in order stay as they are; shuffled ones come into an order of use, none lost', () => {
  fc.assert(
    fc.property(graphs, fc.infiniteStream(fc.nat()), (reads, random) => {
      const nodes = nodesOf(reads);
      expect(inOrder(nodes)).toEqual({ nodes, cycle: [] });
      const keys = new Map(nodes.map((node) => [node, random.next().value]));
      const shuffled = nodes.toSorted((one, other) => Number(keys.get(one)) - Number(keys.get(other)));
      const sorted = inOrder(shuffled);
      expect(sorted.cycle).toEqual([]);
      expect(new Set(sorted.nodes)).toEqual(new Set(nodes));
      expect(inOrder(sorted.nodes).nodes).toEqual(sorted.nodes);
      const places = new Map(sorted.nodes.map(({ name }, place) => [Number(name), place]));
      for (const [index, earlier] of reads.entries())
        for (const number of index === 0 ? [] : earlier)
          expect(places.get(number % index)).toBeLessThan(places.get(index) ?? -1);
    }),
    { numRuns: 200 },
  );
});

it('a cycle is named, and no node is lost', () => {
  const g = new GraphBuilder('g');
  g.node('Relu', { name: 'user', inputs: ['b'], outputs: ['c'] });
  g.node('Relu', { name: 'a', inputs: ['b'], outputs: ['a'] });
  g.node('Relu', { name: 'b', inputs: ['a'], outputs: ['b'] });
  const { nodes, cycle } = inOrder(buildModel(g).proto.graph?.node ?? []);
  expect(cycle.map(({ name }) => name).toSorted()).toEqual(['a', 'b']);
  expect(nodes.map(({ name }) => name).toSorted()).toEqual(['a', 'b', 'user']);
});

it('a hundred thousand nodes in the worst order are sorted at once', () => {
  const g = new GraphBuilder('g');
  for (let index = 100_000; index > 0; index--)
    g.node('Relu', { inputs: [`v${index - 1}`], outputs: [`v${index}`] });
  const nodes = buildModel(g).proto.graph?.node ?? [];
  expect(inOrder(nodes).nodes).toEqual(nodes.toReversed());
});
