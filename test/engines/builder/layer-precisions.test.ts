import { describe, expect, it } from 'vitest';
import { bytesSource } from '../../../src/base/files/byte-source.js';
import { layerPrecisions } from '../../../src/engines/builder/layer-precisions.js';
import { layerPrecisionsSchema } from '../../../src/engines/identity/passport.js';
import { programIn } from '../../../src/engines/plan/program.js';
import { floatingNodes, floatingSentence, layerSentences } from '../../../src/report/sentences.js';
import { convolution, perChannel, QuantizedNet } from '../../formats/onnx/support/quantized.js';
import { generated, operation, planWithPrograms, programText } from '../plan/program-plan.js';

/** The report on a model whose plan has these kernels; tensors are named by their types. */
function reported(
  net: QuantizedNet,
  kernels: readonly (readonly string[])[],
  accelerators?: string,
  decisions: Parameters<typeof layerPrecisions>[2] = [],
) {
  const tensors = { int8: 'int8', half: 'half', float: 'float' };
  const texts = kernels.map((each) => programText({ tensors, kernels: each, accelerators }));
  const program = programIn(bytesSource('p', planWithPrograms(...texts)));
  if (program === null) throw new Error('no program');
  const report = layerPrecisions(program, net.model().proto, decisions);
  return report === null ? null : layerPrecisionsSchema.parse(report);
}

const quantizes = generated('__myl_MulMinMaxRounCast', ['float'], ['int8'], ['x_Q']);
const computes = (type: string) =>
  operation('corrltn', 'y0_Conv', [type, type], ['float'], ['y0_Conv', 'x_DQ', 'w_DQ']);
const inInt8 = [
  quantizes,
  computes('int8'),
  generated('__myl_MulRelu', ['float'], ['float'], ['y0_Conv', 'y_Relu']),
];

describe('layerPrecisions', () => {
  it('counts nodes by what the program multiplies', () => {
    expect(reported(convolution(), [inInt8])).toEqual({
      operators: [{ op: 'Conv', nodes: 1, types: { int8: 1 } }],
      floating: [],
      attentions: { quantized: 0, fused: 0, reasons: [] },
      conversions: { quantize: 1, dequantize: 0, move: 0 },
    });
  });

  it('states the finding on nodes that a model quantizes in vain, and why others are not quantized', () => {
    const net = convolution({ weights: { scales: perChannel(64), axis: 1 } });
    net.op('Conv', ['y0', net.floats('f', [64, 64, 1, 1])], 'z');
    net.output('z', 'float32', [4, 64, 16, 16]);
    const plain = operation('corrltn', 'z_Conv', ['half', 'half'], ['half'], ['z_Conv']);
    const decisions = [
      { node: 'z_Conv', op: 'Conv', quantized: false, rule: 'groups', reason: 'it has groups' },
    ];
    const report = reported(net, [[quantizes, computes('half'), plain]], undefined, decisions);
    expect(report?.operators).toEqual([{ op: 'Conv', nodes: 2, types: { float16: 2 } }]);
    expect(report?.floating).toMatchObject([
      { node: 'y0_Conv', requested: 'int8', computes: 'float16', finding: 'quantized-weight-axis' },
      { node: 'z_Conv', requested: null, computes: 'float16', finding: null, reason: 'it has groups' },
    ]);
    expect(floatingNodes(report!).map(({ isProblem }) => isProblem)).toEqual([true, false]);
    expect(floatingSentence(floatingNodes(report!)[1]!)).toBe('z_Conv runs in FP16: it has groups');
    expect(layerSentences(report!)[0]).toBe('2 of 2 Conv in FP16');
  });

  it('names both types where profiles differ, and the architecture that has no kernels', () => {
    const both = reported(convolution(), [inInt8, [quantizes, computes('float')]]);
    expect(both?.operators[0]?.types).toEqual({ 'float32 / int8': 1 });
    const old = reported(convolution(), [[quantizes, computes('float')]], 'sm75 ');
    expect(old?.floating[0]).toMatchObject({ requested: 'int8', finding: null });
    expect(old?.floating[0]?.reason).toContain('7.5');
  });

  it('counts nodes that the program does not name', () => {
    expect(reported(convolution(), [[quantizes]])?.operators[0]?.types).toEqual({ unknown: 1 });
  });

  it('counts kernels that dequantize and move', () => {
    const stray = [
      generated('__myl_CastMul', ['int8'], ['float'], ['w_DQ']),
      generated('__myl_MulMinMaxRounCastCastMul', ['float'], ['float'], ['x_Q', 'x_DQ']),
      generated('__myl_Tran', ['float'], ['float'], []),
      generated('__myl_CastReplConc', ['float'], ['half'], ['y0_Conv']),
    ];
    expect(reported(convolution(), [[...inInt8, ...stray]])?.conversions).toEqual({
      quantize: 1,
      dequantize: 2,
      move: 2,
    });
  });

  it('is null for a model without pairs', () => {
    const net = new QuantizedNet();
    net.input('x', 'float32', [1]);
    net.op('Relu', ['x'], 'y');
    net.output('y', 'float32', [1]);
    expect(reported(net, [inInt8])).toBeNull();
  });
});
