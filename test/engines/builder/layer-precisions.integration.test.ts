import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { buildAddon } from '../../../scripts/build-native.mjs';
import { buildPlan } from '../../../src/engines/builder/build-supervised.js';
import { layerPrecisions } from '../../../src/engines/builder/layer-precisions.js';
import { readPlanHeader } from '../../../src/engines/plan/header.js';
import { readPlanProgram } from '../../../src/engines/plan/program.js';
import { ignoreEvents } from '../../../src/events.js';
import { writeModel } from '../../../src/formats/onnx/index.js';
import { scratchFolder } from '../../formats/onnx/support/models.js';
import {
  attention,
  convolution,
  perChannel,
  product,
  type QuantizedNet,
} from '../../formats/onnx/support/quantized.js';
import { rtxToolchain } from '../../native/rtx-toolchain.js';
import { describeWith } from '../../support/needs.js';
import { resolvedBuild } from '../../support/sample-engine.js';

const folder = scratchFolder();

describeWith('toolchain', 'what tensorrt-rtx computes quantized operations in', (libraries) => {
  beforeAll(async () => {
    await buildAddon({ say: () => {} });
  });

  async function precisionsOf(name: string, net: QuantizedNet, computeCapabilities = [89]) {
    const modelPath = join(folder, `${name.replace(/\W/g, '-')}.onnx`);
    const planPath = `${modelPath}.plan`;
    await writeModel(net.model(), modelPath);
    const build = resolvedBuild(modelPath, { toolchain: rtxToolchain(libraries), computeCapabilities });
    await buildPlan(build, { modelPath, planPath }, { emit: ignoreEvents });
    const precisions = layerPrecisions(readPlanProgram(readPlanHeader(planPath))!, net.model().proto);
    if (precisions === null) throw new Error('no program');
    return precisions;
  }

  it.each([
    ['a convolution', convolution(), { int8: 1 }, null, 0],
    ['one behind what moves values', convolution({ between: 'Identity' }), { int8: 1 }, null, 0],
    [
      'FP8',
      convolution({ activations: { dtype: 'float8_e4m3fn' }, weights: { dtype: 'float8_e4m3fn' } }),
      { float8_e4m3fn: 1 },
      null,
      0,
    ],
    [
      'input channels',
      convolution({ weights: { scales: perChannel(64), axis: 1 } }),
      { float32: 1 },
      'quantized-weight-axis',
      2,
    ],
    [
      'channels of activations',
      convolution({ activations: { scales: perChannel(64), axis: 1 } }),
      { float32: 1 },
      'quantized-activation-channels',
      2,
    ],
    ['weights alone', convolution({ activations: null }), { float32: 1 }, 'quantized-one-operand', 1],
    ['a pair before Relu', convolution({ between: 'Relu' }), { float32: 1 }, 'quantized-one-operand', 1],
    [
      'ConvTranspose',
      convolution({ opType: 'ConvTranspose' }),
      { float32: 1 },
      'quantized-conv-transpose',
      2,
    ],
    ['a product', product({}, { scales: perChannel(128), axis: 1 }), { int8: 1 }, null, 0],
    [
      'the axis of the sum',
      product({}, { scales: perChannel(256), axis: 0 }),
      { float32: 1 },
      'quantized-weight-axis',
      0,
    ],
  ] as const)('%s', async (name, net, types, finding, dequantize) => {
    const { operators, floating, conversions } = await precisionsOf(name, net);
    expect(operators.map((each) => each.types)).toEqual([types]);
    expect(floating.map((each) => each.finding)).toEqual(finding === null ? [] : [finding]);
    expect(conversions.dequantize).toBe(dequantize);
  });

  it.each([
    [['q', 'k', 'v', 'probabilities', 'result'], 64, 64, 1],
    [['q', 'k', 'v', 'probabilities', 'result'], 16, 64, 1],
    [['q', 'k', 'v', 'probabilities', 'result'], 48, 64, 0],
    [['q', 'k', 'v', 'probabilities', 'result'], 64, 1024, 0],
    [['q', 'k', 'v', 'probabilities'], 64, 64, 0],
    [['q', 'k', 'v', 'scores', 'probabilities', 'result'], 64, 64, 0],
    [['q', 'k', 'v', 'result'], 64, 64, 0],
  ])(
    'INT8 attention with pairs on %j, heads of %i over %i positions',
    async (pairs, head, positions, fused) => {
      const net = attention(pairs, 'int8', 2, head, positions);
      const { attentions } = await precisionsOf(`${pairs.join('-')}-${head}-${positions}`, net);
      expect(attentions).toMatchObject({ quantized: 1, fused });
      expect(attentions.reasons).toHaveLength(1 - fused);
    },
  );

  it('a convolution on compute capability 7.5', async () => {
    const { floating } = await precisionsOf('old', convolution(), [75]);
    expect(floating).toMatchObject([{ requested: 'int8', computes: 'float32', finding: null }]);
  });
});
