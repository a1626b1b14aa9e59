import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { attribute as a, GraphBuilder } from '../../../../src/formats/onnx/builder.js';
import { observeRanges } from '../../../../src/formats/precision/calibrate/observed-model.js';
import type { NamedTensors, Tensor } from '../../../../src/formats/tensor/tensor.js';
import { floats, run, written } from '../judge.js';

/** ONNX Runtime as a session, remembering what it was asked to run. */
function sessions() {
  const log = { opened: [] as string[], closed: 0, bytes: 0 };
  const open = async ({ path }: { readonly path: string }) => {
    log.opened.push(path);
    log.bytes = readFileSync(path).length;
    return {
      run: async (inputs: NamedTensors) => {
        const outputs = await run(path, Object.fromEntries(inputs));
        return new Map<string, Tensor>(
          [...outputs].map(([name, values]) => [name, floats([values.length], values)]),
        );
      },
      close: async () => {
        log.closed++;
      },
    };
  };
  return { open, log };
}

function graph(): GraphBuilder {
  const g = new GraphBuilder('g');
  g.input('x', 'float32', ['n']);
  g.initializer('ten', floats([], [10]));
  g.node('Mul', { name: 'mul', inputs: ['x', 'ten'], outputs: ['scaled'] });
  g.node('Exp', { name: 'exp', inputs: ['scaled'], outputs: ['huge'] });
  g.node('Cast', { name: 'whole', inputs: ['scaled'], outputs: ['integers'], attributes: { to: a.int(7) } });
  g.node('Log', { name: 'log', inputs: ['huge'], outputs: ['y'] });
  g.output('y', 'float32', ['n']);
  return g;
}

const sample = (...values: number[]) => new Map([['x', floats([values.length], values)]]);

it('gives the range of every float activation over all samples, zero included', async () => {
  const { open, log } = sessions();
  const ranges = await observeRanges(
    await written(graph()),
    () => [sample(1, 2), sample(-0.5), sample()],
    open,
  );
  expect(ranges.get('x')).toEqual({ min: -0.5, max: 2 });
  expect(ranges.get('scaled')).toEqual({ min: -5, max: 20 });
  expect(ranges.get('huge')?.max).toBeCloseTo(Math.exp(20), -3);
  expect([...ranges.keys()]).toEqual(['x', 'scaled', 'huge', 'y']);
  expect(log).toMatchObject({ closed: 1 });
});

it('sees infinities', async () => {
  const ranges = await observeRanges(await written(graph()), () => [sample(100)], sessions().open);
  expect(ranges.get('huge')?.max).toBe(Number.POSITIVE_INFINITY);
});

it('closes the session when a run fails', async () => {
  const { open, log } = sessions();
  const path = await written(graph());
  await expect(observeRanges(path, () => [new Map()], open)).rejects.toThrow();
  expect(log.closed).toBe(1);
});
