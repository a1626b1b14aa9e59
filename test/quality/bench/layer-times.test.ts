import { expect, it } from 'vitest';
import { readLayers } from '../../../src/engines/layers/read-layers.js';
import { joinLayers } from '../../../src/quality/bench/times.js';

const layer = (Name: string, TacticName = 't') => ({
  Name,
  LayerType: 'CaskConvolution',
  Inputs: [],
  Outputs: [],
  TacticName,
  Metadata: `[ONNX Layer: node of ${Name}]`,
});
const { layers } = readLayers(
  JSON.stringify({
    Layers: [
      layer('conv', 'first'),
      layer('copy'),
      layer('conv', 'second'),
      layer('conv [profile 1]', 'other'),
    ],
    Bindings: [],
  }),
);
const time = (name: string, ms: number, runs = 10) => ({ name, ms, runs });

it('times meet what the inspector states of a layer, layers of one name in order, and shares add up to one', () => {
  const joined = joinLayers(
    [time('conv', 10), time('copy', 20), time('conv', 50), time('odd', 20)],
    layers,
    0,
  );
  expect(joined).toMatchObject({
    runs: 10,
    totalMs: 10,
    layers: [
      { index: 0, name: 'conv', tactic: 'first', onnxNodes: ['node of conv'], ms: 1, share: 0.1 },
      { index: 1, name: 'copy', ms: 2, share: 0.2 },
      { index: 2, name: 'conv', tactic: 'second', ms: 5, share: 0.5 },
      { index: null, name: 'odd', type: null, tactic: null, onnxNodes: [], ms: 2, share: 0.2 },
    ],
  });
});

it('layers of another profile are kept apart', () => {
  const joined = joinLayers([time('conv [profile 1]', 10)], layers, 1);
  expect(joined?.layers).toMatchObject([{ index: 3, name: 'conv', tactic: 'other', share: 1 }]);
});

it('without runs there are no times', () => {
  expect(joinLayers([], layers, 0)).toBeNull();
});
