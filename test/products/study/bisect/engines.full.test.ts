import { expect, test } from 'vitest';
import { transformerEncoder } from '../../../../examples/models/transformer-encoder.js';
import { writeNetwork } from '../../../../examples/models/write-network.js';
import { onnxRuntimeCpu } from '../../../../src/engines/runtime/onnxruntime/back-ends.js';
import { convertModel } from '../../../../src/formats/precision/convert.js';
import { bisectModel } from '../../../../src/products/study/bisect/bisect.js';
import { bisectResultSchema } from '../../../../src/products/study/bisect/result.js';
import { buildOrLoad } from '../../../../src/quality/known-answer/build-or-load.js';
import { type Fault, faultyEngines, in16Bits, spans } from '../../../fakes/faulty-engines.js';
import { freshPath } from '../../../formats/precision/judge.js';
import { describeWith } from '../../../support/needs.js';

const target = 'tensorrt-rtx:sm_89';
const profile = 'input_ids:1x8/2x16/4x32,attention_mask:1x8/2x16/4x32';
const shapes = new Map([
  ['input_ids', [2, 16]],
  ['attention_mask', [2, 16]],
]);

describeWith('toolchain', 'an engine of an encoder', () => {
  /** The encoder, its conversion, and the engine of that. */
  async function encoder(precision: 'fp16' | 'fp32', layers: number) {
    const [reference, bad] = [freshPath(), freshPath()];
    await writeNetwork(
      reference,
      (network) =>
        transformerEncoder(network, { layers, width: 64, heads: 4, vocabulary: 50, positions: 32 }),
      { seed: 3, external: false },
    );
    const model = precision === 'fp16' ? bad : reference;
    if (precision === 'fp16') await convertModel(reference, bad, { precision });
    const output = model.replace('.onnx', '.engine');
    const { engine } = await buildOrLoad({
      ...{ model: reference, precision: precision === 'fp16' ? precision : 'as-is' },
      ...{ target, profiles: [profile], output, store: false },
    });
    return { reference, candidate: engine };
  }

  async function searched(precision: 'fp16' | 'fp32', fault: Fault, layers = 4) {
    const files = await encoder(precision, layers);
    const result = await bisectModel(
      { ...files, output: freshPath('/out'), build: { store: false }, shapes, samples: 1, threads: 1 },
      { backEnds: [faultyEngines(fault), onnxRuntimeCpu] },
    );
    expect(bisectResultSchema.parse(result)).toEqual(result);
    expect(result.builds).toBeLessThanOrEqual(40);
    return result;
  }

  test('of 8 layers, with a kernel that is compiled wrongly: the fusion is named', {
    timeout: 900_000,
  }, async () => {
    const layer = 'encoder.layer.5';
    const result = await searched('fp16', { kernel: spans(`${layer}.add`, `${layer}.norm`) }, 8);
    expect(result).toMatchObject({ outcome: 'pass', cause: 'fusion', isMinimal: true });
    expect(result.fusion?.nodes).toEqual(expect.arrayContaining([`${layer}.add`, `${layer}.norm`]));
    expect(result.fusion?.outputs).toHaveLength(1);
    expect(result.reduced?.nodes).toBeLessThanOrEqual(6);
  });

  test('with attention that is compiled wrongly', {
    timeout: 900_000,
  }, async () => {
    const attention = 'encoder.layer.2.attention';
    const result = await searched('fp16', { kernel: spans(`${attention}.scores`, `${attention}.mixed`) });
    expect(result).toMatchObject({ outcome: 'pass', cause: 'fusion', isMinimal: true });
    expect(result.fusion).toMatchObject({ kernel: '_gemm_mha_v2' });
  });

  test('with a product that FP16 spoils: the node is named', { timeout: 900_000 }, async () => {
    const result = await searched('fp16', { kernel: in16Bits('encoder.layer.2.up') });
    expect(result).toMatchObject({ outcome: 'pass', cause: 'nodes', isMinimal: true });
    // Alone the product is computed in FP16 between its casts: neighbours in its kernel stay FP32 with it.
    const names = result.nodes.map(({ name }) => name);
    expect(names).toContain('encoder.layer.2.up');
    expect(names.length).toBeLessThanOrEqual(3);
    for (const name of names) expect(name).toMatch(/^encoder\.layer\.2\.(up|gelu)/);
    expect(result).toMatchObject({ isConfirmed: true, reduced: { nodes: 1 } });
  });
});
