import { beforeAll, expect, it } from 'vitest';
import { resnet50, resnetShapes } from '../../../examples/models/resnet50.js';
import { transformerEncoder, transformerShapes } from '../../../examples/models/transformer-encoder.js';
import { writeNetwork } from '../../../examples/models/write-network.js';
import { buildAddon } from '../../../scripts/build-native.mjs';
import { buildPlan } from '../../../src/engines/builder/build-supervised.js';
import { layerPrecisions } from '../../../src/engines/builder/layer-precisions.js';
import type { ProfileRange } from '../../../src/engines/identity/recipe.js';
import { readPlanHeader } from '../../../src/engines/plan/header.js';
import { readPlanProgram } from '../../../src/engines/plan/program.js';
import { ignoreEvents } from '../../../src/events.js';
import { GraphBuilder } from '../../../src/formats/onnx/builder.js';
import { factsOfModel } from '../../../src/formats/onnx/inspect.js';
import { openModel } from '../../../src/formats/onnx/model.js';
import type { FormatId } from '../../../src/formats/precision/formats/index.js';
import { integerTensor } from '../../../src/formats/tensor/tensor.js';
import { converted, type Feeds, freshPath, noise, written } from '../../formats/precision/judge.js';
import { calibrationOn } from '../../formats/precision/quantize/calibration.js';
import { rtxToolchain } from '../../native/rtx-toolchain.js';
import { describeWith } from '../../support/needs.js';
import { resolvedBuild } from '../../support/sample-engine.js';

const BATCH = 8;
const LENGTH = 64;
const { imageSize } = resnetShapes.small;

const images: Feeds = { input: noise([BATCH, 3, imageSize, imageSize], 1, 5) };
const texts: Feeds = {
  input_ids: integerTensor(
    'int64',
    [BATCH, LENGTH],
    Array.from({ length: BATCH * LENGTH }, (_, index) => (index * 37) % 5000),
  ),
  attention_mask: integerTensor('int64', [BATCH, LENGTH], new Array(BATCH * LENGTH).fill(1)),
};

/** Of the small ResNet, what FP8 leaves out: 16 channels or fewer. */
const withFewChannels = [
  'conv1',
  ...['0.conv1', '0.conv2', '0.conv3', '0.downsample.0', '1.conv1', '1.conv2', '1.conv3'].map(
    (name) => `layer1.${name}`,
  ),
  'fc',
];

/** `fixed`: the profile has one shape; else up to the samples' own. */
const profile = (feeds: Feeds, fixed: boolean): Record<string, ProfileRange> =>
  Object.fromEntries(
    Object.entries(feeds).map(([name, { shape }]) => {
      const min = fixed ? [...shape] : [1, ...shape.slice(1)];
      return [name, { min, opt: [...shape], max: [...shape], values: false }];
    }),
  );

describeWith('toolchain', 'the layers of quantized networks in plans of tensorrt-rtx', (libraries) => {
  const resnet = freshPath();
  const encoder = freshPath();
  beforeAll(async () => {
    await buildAddon({ say: () => {} });
    await writeNetwork(resnet, (network) => resnet50(network, resnetShapes.small), {
      seed: 1,
      external: false,
    });
    await writeNetwork(encoder, (network) => transformerEncoder(network, transformerShapes.small), {
      seed: 1,
      external: false,
    });
  });

  async function precisionsOf(model: string, feeds: Feeds, precision: FormatId, sm: number, fixed: boolean) {
    const { output, result } = await converted(model, {
      precision,
      calibration: calibrationOn([feeds]),
    });
    expect(factsOfModel(output).findings.filter(({ severity }) => severity !== 'info')).toEqual([]);
    const planPath = freshPath('.plan');
    const build = resolvedBuild(output, {
      toolchain: rtxToolchain(libraries),
      computeCapabilities: [sm],
      recipe: { profiles: [profile(feeds, fixed)] },
    });
    await buildPlan(build, { modelPath: output, planPath }, { emit: ignoreEvents });
    const quantized = openModel(output);
    const precisions = layerPrecisions(
      readPlanProgram(readPlanHeader(planPath))!,
      quantized.proto,
      result.quantization?.nodes,
    );
    quantized.close();
    if (precisions === null) throw new Error('no program');
    return precisions;
  }

  it.each([
    ['int8', 80, 'int8', ['conv1', 'fc']],
    ['int8', 89, 'int8', ['conv1', 'fc']],
    ['int8', 120, 'int8', ['conv1', 'fc']],
    ['fp8', 89, 'float8_e4m3fn', withFewChannels],
    ['fp8', 120, 'float8_e4m3fn', withFewChannels],
  ] as const)(
    'ResNet in %s for sm_%i: all that the placement quantizes',
    async (precision, sm, type, left) => {
      const { operators, floating, conversions } = await precisionsOf(resnet, images, precision, sm, false);
      const convolutions = left.length - 1;
      expect(operators).toEqual([
        { op: 'Conv', nodes: 29, types: { [type]: 29 - convolutions, float16: convolutions } },
        { op: 'Gemm', nodes: 1, types: { float16: 1 } },
      ]);
      expect(floating.map(({ node }) => node).sort()).toEqual([...left].sort());
      expect(floating.every(({ requested }) => requested === null)).toBe(true);
      // What the first convolution writes in FP16 is quantized once; its three channels are filled up. With one scale, bias and Relu are in the
      // convolution, and its result is quantized behind it; with a scale per channel one kernel does all of it.
      expect(conversions).toEqual({ quantize: precision === 'fp8' ? 13 : 1, dequantize: 0, move: 1 });
    },
  );

  it.each([
    ['int8', 80, 'int8'],
    ['int8', 89, 'int8'],
    ['int8', 120, 'int8'],
    ['fp8', 89, 'float8_e4m3fn'],
    ['fp8', 120, 'float8_e4m3fn'],
  ] as const)(
    'the encoder in %s for sm_%i: all products with weights, attention in 16 bits',
    async (precision, sm, type) => {
      const { operators, floating, attentions, conversions } = await precisionsOf(
        encoder,
        texts,
        precision,
        sm,
        false,
      );
      expect(operators).toEqual([{ op: 'MatMul', nodes: 32, types: { [type]: 24, float16: 8 } }]);
      expect(floating.every(({ requested, node }) => requested === null && /scores|mixed/.test(node))).toBe(
        true,
      );
      expect(attentions.quantized).toBe(0);
      // The attention writes INT8, whose heads are put side by side.
      expect(conversions).toEqual({ quantize: 0, dequantize: 0, move: precision === 'int8' ? 4 : 0 });
    },
  );

  it('the encoder in int4: products dequantize inside their own kernels', async () => {
    const { operators, floating, conversions } = await precisionsOf(encoder, texts, 'int4', 89, false);
    expect(operators).toEqual([{ op: 'MatMul', nodes: 32, types: { float16: 32 } }]);
    expect(floating.filter(({ finding }) => finding !== null)).toEqual([]);
    expect(conversions.dequantize).toBe(0);
  });

  it.each([
    ['MatMul', 64],
    ['MatMul', 128],
    ['Gemm', 64],
    ['Gemm', 128],
  ])('a %s in int4 over %i terms, as many as a block may have, does too', async (op, terms) => {
    const g = new GraphBuilder('product');
    g.input('x', 'float32', ['n', terms]);
    g.initializer('w', noise([terms, 64], 0.3, 2));
    g.node(op, { name: 'product', inputs: ['x', 'w'], outputs: ['a'] });
    g.node('Neg', { name: 'negative', inputs: ['a'], outputs: ['y'] });
    g.output('y', 'float32', ['n', 64]);
    const feeds = { x: noise([64, terms], 1, 3) };
    const { conversions } = await precisionsOf(await written(g), feeds, 'int4', 89, true);
    expect(conversions.dequantize).toBe(0);
  });
});
