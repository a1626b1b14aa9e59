import { InferenceSession } from 'onnxruntime-node';
import { describe, expect, it } from 'vitest';
import { calibrationOf } from '../../../src/engines/calibration/calibration.js';
import { GraphBuilder } from '../../../src/formats/onnx/builder.js';
import { inferDtypes } from '../../../src/formats/onnx/dtype-inference.js';
import { openModel } from '../../../src/formats/onnx/model.js';
import { conversionOptionsOf, conversionRecipe } from '../../../src/formats/precision/options.js';
import { parsePluginTypes, pluginTypesText } from '../../../src/formats/precision/plugin-types.js';
import { writeNpz } from '../../../src/formats/tensor/npz.js';
import type { Advice } from '../../../src/products/study/advise/result.js';
import { refusal } from '../../support/refusal.js';
import { trtforge } from '../../support/trtforge.js';
import { converted, freshPath, noise, written } from './judge.js';

const declared = (...texts: readonly string[]) => new Map(texts.map(parsePluginTypes));

describe('a declaration', () => {
  it.each(['MyNorm:fp16', 'acme::Nms:[fp32,fp16,int32]:[bf16,int64]', 'a::b:[fp32]:[bool]'])(
    'is written as it is read: %s',
    (text) => {
      expect(pluginTypesText(declared(text))).toEqual([text]);
    },
  );

  it.each([
    'MyNorm',
    'MyNorm:',
    ':fp16',
    'MyNorm:half',
    'MyNorm:int8',
    'Nms:[fp32]',
    'Nms:[fp33]:[fp32]',
    'Nms:[]:[fp32]',
  ])('"%s" is rejected', (text) => {
    expect(refusal(() => parsePluginTypes(text)).code).toBe('TF_USAGE');
  });

  it('is part of the identity, and none changes nothing', () => {
    const pluginTypes = declared('b::Nms:[fp16]:[fp16]', 'a:fp16');
    const recipe = conversionRecipe('fp16', { pluginTypes });
    expect(recipe.pluginTypes).toEqual(['a:fp16', 'b::Nms:[fp16]:[fp16]']);
    expect(conversionOptionsOf(recipe).pluginTypes).toEqual(new Map([...pluginTypes].reverse()));
    expect(conversionRecipe('fp16', { pluginTypes: new Map() })).toEqual(conversionRecipe('fp16'));
  });
});

/** A product, an operator that ONNX Runtime has and ONNX does not, and another product: nothing declares what is between. */
function behindPlugin(hasThird = false): Promise<string> {
  const g = new GraphBuilder('g');
  g.input('x', 'float32', [1, 4, 32]);
  for (const name of ['first', 'second']) g.initializer(name, noise([32, 32], 0.4));
  for (const name of ['gamma', 'beta']) g.initializer(name, noise([32], 0.4));
  g.node('MatMul', { name: 'product', inputs: ['x', 'first'], outputs: ['p'] });
  g.node('SkipLayerNormalization', {
    name: 'plugin',
    domain: 'com.microsoft',
    inputs: ['p', 'x', 'gamma', 'beta'],
    outputs: ['n'],
  });
  g.node('Relu', { name: 'relu', inputs: ['n'], outputs: ['r'] });
  g.node('MatMul', { name: 'after', inputs: ['r', 'second'], outputs: ['y'] });
  if (hasThird) g.node('MatMul', { name: 'last', inputs: ['y', 'first'], outputs: ['z'] });
  g.output(hasThird ? 'z' : 'y', 'float32', null);
  return written(g, { opsets: { 'com.microsoft': 1 } });
}

async function normalised(pluginTypes: readonly string[], precision: 'fp16' | 'bf16' = 'fp16') {
  const { result } = await converted(await behindPlugin(), {
    precision,
    pluginTypes: declared(...pluginTypes),
  });
  const model = openModel(result.output);
  try {
    const { types } = inferDtypes(model.proto).graph;
    return {
      kept: Object.fromEntries(result.kept.map(({ node, rule }) => [node, rule])),
      casts: result.casts.added,
      types: Object.fromEntries(types),
      path: result.output,
    };
  } finally {
    model.close();
  }
}

const OPERATOR = 'com.microsoft::SkipLayerNormalization';

const samples = freshPath('.npz');
writeNpz(samples, new Map([['x', noise([8, 4, 32], 1)]]));
const observing = {
  calibration: calibrationOf({ data: [samples] }),
  pluginTypes: declared(`${OPERATOR}:fp32`),
};

describe('behind a plug-in whose types are declared', () => {
  it('values are calibrated', async () => {
    const { result } = await converted(await behindPlugin(true), { precision: 'int8', ...observing });
    const quantized = result.quantization?.nodes.filter((each) => each.quantized).map(({ node }) => node);
    expect(quantized).toEqual(['product', 'after']);
  });

  it('values beyond --data-max keep what computes them FP32', async () => {
    const beyond = { precision: 'fp16', dataMax: 1e-3, ...observing } as const;
    const { result } = await converted(await behindPlugin(), beyond);
    expect(result.kept).toContainEqual(expect.objectContaining({ node: 'relu', rule: 'data-range' }));
  });

  it('nodes are advised on', async () => {
    const model = await behindPlugin(true);
    const words = [
      '--calibration',
      samples,
      '--plugin-types',
      `${OPERATOR}:fp32`,
      '-o',
      freshPath('/advice'),
    ];
    const { exitCode, json } = await trtforge(['convert', 'advise', model, ...words, '--json']);
    expect(exitCode).toBe(0);
    expect(json<Advice>().units.map(({ name }) => name)).toContain('after');
  });
});

describe('what is around a plug-in', () => {
  it('stays FP32 where nothing declares its types', async () => {
    const { kept } = await normalised([]);
    expect(kept).toEqual({ plugin: 'unknown-operator', after: 'unknown-type' });
  });

  it('is converted where its output is declared FP32', async () => {
    const { kept, types, path } = await normalised([`${OPERATOR}:fp32`]);
    expect(kept).toEqual({ plugin: 'unknown-operator' });
    expect(types).toMatchObject({ n: 'float32', r: 'float16' });
    await expect(InferenceSession.create(path)).resolves.toBeDefined();
  });

  it('needs no casts to a plug-in in 16 bits, which ONNX Runtime accepts as typed', async () => {
    const { kept, casts, types, path } = await normalised([`${OPERATOR}:fp16`]);
    expect(kept).toEqual({});
    expect(types).toMatchObject({ gamma: 'float16', n: 'float16', y: 'float32' });
    // x and y, which stay FP32.
    expect(casts).toBe(2);
    await expect(InferenceSession.create(path)).resolves.toBeDefined();
  });

  it('is cast for each input that is declared FP32', async () => {
    const { kept, types } = await normalised([`${OPERATOR}:[fp16,fp16,fp32,fp32]:[fp16]`]);
    expect(kept).toEqual({});
    expect(types).toMatchObject({ gamma: 'float32', n: 'float16' });
  });

  it('stays FP32 in another 16-bit type than the declared one', async () => {
    expect((await normalised([`${OPERATOR}:fp16`], 'bf16')).kept).toEqual({ plugin: 'unknown-operator' });
  });

  it.each([
    ['no such operator', 'SkipLayerNormalization:fp16'],
    ['an operator of ONNX', 'Relu:fp16'],
    ['fewer inputs than the node has', `${OPERATOR}:[fp16]:[fp16]`],
    ['a contradiction', `${OPERATOR}:[fp16,int32,fp16,fp16]:[fp16]`],
  ])('is not converted with a declaration of %s', async (_what, text) => {
    await expect(normalised([text])).rejects.toMatchObject({ code: 'TF_USAGE' });
  });
});
