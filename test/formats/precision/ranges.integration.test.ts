import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { floatFormatNamed } from '../../../src/formats/precision/formats/index.js';
import { writeNpz } from '../../../src/formats/tensor/npz.js';
import { roundedAfterEveryNode } from './half-arithmetic.js';
import { converted, type Feeds, floats, run, written } from './judge.js';
import { rangeGraphs } from './range-graphs.js';

/** RANGE_GRAPHS is where test/gpu/ranges.gpu.mjs finds what it runs. */
function keepForGpu(name: string, model: string, feed: Feeds, reference: readonly number[]): void {
  const folder = process.env.RANGE_GRAPHS;
  if (folder === undefined) return;
  mkdirSync(folder, { recursive: true });
  const file = name.replaceAll(/[^a-z0-9]+/g, '-');
  copyFileSync(model, join(folder, `${file}.onnx`));
  writeNpz(
    join(folder, `${file}.npz`),
    new Map([...Object.entries(feed), ['y', floats([reference.length], reference)]]),
  );
}

describe.each(['fp16', 'bf16'] as const)('%s, rounded after every operator', (precision) => {
  test.each(rangeGraphs)(
    '$name: finite where FP32 is, and as near',
    async ({ name, graph, feeds, bound, opset }) => {
      const input = await written(graph(), opset === undefined ? {} : { opset });
      const { output } = await converted(input, { precision });
      const rounded = await roundedAfterEveryNode(output);
      for (const feed of feeds) {
        const reference = (await run(input, feed)).get('y')!;
        if (precision === 'fp16' && feed === feeds[0] && opset === undefined)
          keepForGpu(name, output, feed, reference);
        const actual = (await run(rounded, feed)).get('y')!;
        const lost = reference.filter(
          (value, index) => Number.isFinite(value) && !Number.isFinite(actual[index]),
        );
        expect(lost, 'values that are finite in FP32 alone').toEqual([]);
        const finite = reference.filter(Number.isFinite);
        const scale = Math.sqrt(finite.reduce((sum, value) => sum + value * value, 0) / finite.length);
        const errors = reference
          .map((value, index) => Math.abs(value - actual[index]!))
          .filter(Number.isFinite)
          .sort((one, other) => one - other);
        const p99 = errors[Math.floor(0.99 * (errors.length - 1))]!;
        expect(p99 / scale).toBeLessThan(bound ?? 4 * floatFormatNamed(precision)!.tolerance.bound);
      }
    },
  );
});
