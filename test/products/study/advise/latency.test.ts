import { describe, expect, test } from 'vitest';
import { layerDifferences, undoSlow } from '../../../../src/products/study/advise/latency.js';
import type { EngineTimes } from '../../../../src/products/study/advise/options.js';
import type { Unit } from '../../../../src/products/study/advise/units.js';

const unit = (name: string): Unit => ({
  name,
  nodes: [name],
  op: 'Conv',
  weights: 1,
  macs: 1,
  tensors: [`${name}.in`],
});
const units = ['a', 'b', 'c'].map(unit);

type Layer = readonly [name: string, ms: number, ...onnxNodes: string[]];

function times(...layers: readonly Layer[]): EngineTimes {
  const totalMs = layers.reduce((sum, [, ms]) => sum + ms, 0);
  return {
    medianMs: totalMs,
    layers: {
      runs: 20,
      totalMs,
      layers: layers.map(([name, ms, ...onnxNodes]) => ({
        ...{ index: null, name, type: null, precision: null, tactic: null, onnxNodes, ms },
        share: totalMs === 0 ? 0 : ms / totalMs,
      })),
    },
  };
}

/** An engine whose units take so long with codes, and so long without, and a conversion for each border between them. */
function engine(low: Readonly<Record<string, number>>, high: Readonly<Record<string, number>>, border = 0) {
  const built: string[] = [];
  const time = async (chosen: readonly Unit[]) => {
    const isLow = (name: string) => chosen.some((each) => each.name === name);
    built.push(chosen.map(({ name }) => name).join());
    const borders = ['a', 'b', 'c'].filter((name, at, all) => at > 0 && isLow(name) !== isLow(all[at - 1]!));
    return times(
      ...['a', 'b', 'c'].map((name): Layer => [`conv ${name}`, isLow(name) ? low[name]! : high[name]!, name]),
      ...borders.map((name): Layer => [`Reformat ${name}`, border]),
    );
  };
  return { time, built };
}

const keeps = async () => true;

describe('what is not at least 1.02 times as fast', () => {
  test('is undone unit by unit where the engine gets faster', async () => {
    const { time } = engine({ a: 1, b: 2.5, c: 1 }, { a: 2, b: 2, c: 2 }, 0.1);
    const found = await undoSlow(units, time, keeps);
    expect(found.units.map(({ name }) => name)).toEqual(['a', 'c']);
    expect(found).toMatchObject({ isSlower: false, undone: [{ unit: 'b', ms: { before: 2, after: 2.5 } }] });
    expect(found.speedup).toBeCloseTo(6 / 4.2);
    expect(found.slower.map(({ unit: name }) => name)).toEqual(['b']);
  });

  test('stays where undoing it costs more in conversions', async () => {
    const { time } = engine({ a: 1, b: 2.1, c: 1 }, { a: 2, b: 2, c: 2 }, 0.5);
    const found = await undoSlow(units, time, keeps);
    expect(found.units).toEqual(units);
    expect(found.undone).toEqual([]);
  });

  test('is everything where the whole is slower, with the layers that cause it', async () => {
    const { time } = engine({ a: 3, b: 2.5, c: 2.5 }, { a: 2, b: 2, c: 2 });
    const found = await undoSlow(units, time, keeps);
    expect(found).toMatchObject({ units: [], isSlower: true, speedup: 1 });
    expect(found.slower[0]).toEqual({ unit: 'a', ms: { before: 2, after: 3 }, layers: ['conv a'] });
    expect(found.undone.map(({ unit: name }) => name)).toEqual(['a', 'b', 'c']);
  });

  test('stays where less of it would not keep the budget', async () => {
    const { time } = engine({ a: 1, b: 2.5, c: 1 }, { a: 2, b: 2, c: 2 });
    expect((await undoSlow(units, time, async () => false)).units).toEqual(units);
  });
});

test('layers count for the units of their nodes and pairs; conversions of none stand apart', () => {
  const before = times(['conv', 4, 'a', 'b'], ['relu', 9, 'other']);
  const after = times(
    ['conv', 2, 'a', 'b', 'a.in_quantized_QuantizeLinear'],
    ['quantize', 1, 'b.in_quantized_QuantizeLinear'],
    ['quantize more', 0.5, 'z_quantized_QuantizeLinear'],
    ['Reformatting CopyNode', 0.25],
  );
  expect(layerDifferences(before.layers, after.layers, units.slice(0, 2))).toEqual([
    { unit: 'a', ms: { before: 2, after: 1 }, layers: ['conv'] },
    { unit: 'b', ms: { before: 2, after: 2 }, layers: ['conv', 'quantize'] },
    { unit: null, ms: { before: 0, after: 0.75 }, layers: ['quantize more', 'Reformatting CopyNode'] },
  ]);
});
