import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { attribute } from '../../../src/formats/onnx/index.js';
import { modelFactsSchema } from '../../../src/formats/onnx/model-facts.js';
import { floats, modelFile } from '../../engines/runtime/onnxruntime/models.js';
import { samplePlan } from '../../support/sample-engine.js';
import { trtforge } from '../../support/trtforge.js';
import { writeNet } from '../../support/written-net.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-inspect-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const model = join(folder, 'net.onnx');
beforeAll(() => writeNet(model, ['batch', 3, 224, 320]));

const inspect = (...args: readonly string[]) => trtforge(['inspect', ...args]);

describe('inspect of a model', () => {
  it('shows what goes in and out, sizes, operators and findings', async () => {
    expect((await inspect(model)).out).toBe(
      [
        `${model}  ONNX IR 8 · opset 17 · com.acme 3 · tests · 429 B`,
        '',
        'Inputs     image  float32  batch × 3 × 224 × 320',
        'Outputs    scores  float32  batch × 8 × ? × ?',
        'Nodes      2',
        '           Conv 1 · Relu 1',
        'Weights    24 parameters  1 tensor  96 B  float32',
        'FLOPs      4.01 M × batch  Conv 85.7\u00a0% · Relu 14.3\u00a0%',
        'Memory     2.19 MiB × batch of inner tensors at once, before fusion, at Conv "conv"',
        '           for numbers, pass sizes: --shapes image:<batch>x3x224x320',
        '',
        '· note initializer-is-input  The initializer "weight" is also listed as an input, so runtimes may not treat it as a constant.',
        '    at graph',
      ]
        .join('\n')
        .replace('429 B', `${readFileSync(model).length} B`),
    );
  });

  it('infers shapes, FLOPs and memory for the shapes passed, else as expressions', async () => {
    const inspected = async (...args: readonly string[]) =>
      modelFactsSchema
        .omit({ schema: true })
        .loose()
        .parse((await inspect(model, ...args, '--nodes', 'Relu', '--json')).json());
    expect(await inspected()).toMatchObject({
      cost: { inputs: { image: ['batch', 3, 224, 320] }, openSizes: ['batch'], flops: '4014080*batch' },
      nodeList: [{ outputShapes: [['batch', 8, 224, 320]], flops: '573440*batch' }],
    });
    expect(await inspected('--shapes', 'image:2x3x224x320')).toMatchObject({
      cost: { openSizes: [], flops: 8_028_160, peakActivationBytes: 4_587_520, gaps: [] },
      nodeList: [{ outputShapes: [[2, 8, 224, 320]], flops: 1_146_880 }],
    });
  });

  it('takes several sizes for dimensions that have a placeholder for a name', async () => {
    const path = await modelFile((graph) => {
      graph.input('x', 'float32', ['?', '?']);
      graph.node('Relu', { inputs: ['x'], outputs: ['y'] });
      graph.output('y', 'float32', null);
    });
    const { json } = await inspect(path, '--shapes', 'x:2x3', '--json');
    expect(json()).toMatchObject({ ok: true, cost: { flops: 6 } });
  });

  it.each([
    ['of another rank', 'image:3x224'],
    ['that the model fixes otherwise', 'image:1x4x224x320'],
    ['of an input that is not there', 'other:1'],
  ])('rejects a shape %s', async (_, shape) => {
    const { exitCode, json } = await inspect(model, '--shapes', shape, '--json');
    expect([exitCode, json().error?.code]).toEqual([2, 'TF_SHAPE_INVALID']);
  });

  it('adds what the weights hold when asked to read them', async () => {
    expect((await inspect(model, '--check-weights', '--json')).json()).toMatchObject({
      schema: 'trtforge.inspect/1',
      findings: [{ code: 'initializer-is-input' }, { code: 'weights-fp16-overflow' }],
    });
  });

  it('lists the nodes that match by name or operator, with their attributes', async () => {
    const path = await modelFile((graph) => {
      graph.input('x', 'float32', [2, 3]);
      const attributes = { perm: attribute.ints([1, 0]) };
      graph.node('Transpose', { name: 'turn', inputs: ['x'], outputs: ['t'], attributes });
      graph.node('Relu', { name: 'clip', inputs: ['t'], outputs: ['y'] });
      graph.output('y', 'float32', [3, 2]);
    });
    const listed = async (pattern: string) =>
      modelFactsSchema
        .omit({ schema: true })
        .loose()
        .parse((await inspect(path, '--nodes', pattern, '--json')).json()).nodeList;
    const turn = { name: 'turn', op: 'Transpose', graph: 'graph', inputs: ['x'], outputs: ['t'] };
    const figures = { attributes: { perm: [1, 0] }, outputShapes: [[3, 2]], flops: 0 };
    expect(await listed('^Transpose$')).toEqual([{ ...turn, ...figures }]);
    expect((await listed('.'))?.map(({ name }) => name)).toEqual(['turn', 'clip']);
    expect(await listed('Conv')).toEqual([]);
    expect((await inspect(path, '--nodes', 'turn')).out).toContain('perm=[1,0]');
    expect((await inspect(path, '--nodes', '(')).exitCode).toBe(2);
  });

  it('lists weights with their range, zeros and 2:4 sparsity', async () => {
    const path = await modelFile((graph) => {
      graph.input('x', 'float32', [1, 8]);
      // Two zeros in every four rows, and in columns not.
      const half = Array.from({ length: 16 }, (_, at) => (Math.floor(at / 2) % 4 < 2 ? 0 : at - 10));
      graph.initializer('half', floats('float32', [8, 2], half));
      graph.initializer('dense', floats('float16', [2, 4], [1, 2, -3, 4, 0, 0, 7, 8]));
      graph.initializer('odd', floats('float32', [3], [Number.NaN, 2, Number.POSITIVE_INFINITY]));
      graph.node('MatMul', { inputs: ['x', 'half'], outputs: ['a'] });
      graph.node('Gemm', {
        inputs: ['dense', 'half'],
        outputs: ['b'],
        attributes: { transB: attribute.int(1) },
      });
      graph.output('a', 'float32', [1, 2]);
    });
    const facts = modelFactsSchema.omit({ schema: true }).loose();
    const listed = async (pattern: string) =>
      facts.parse((await inspect(path, '--weights', pattern, '--json')).json()).weightList;
    expect(await listed('.')).toEqual([
      { name: 'half', dtype: 'float32', shape: [8, 2], min: -6, max: 5, zeros: 8, sparse24: true },
      { name: 'dense', dtype: 'float16', shape: [2, 4], min: -3, max: 8, zeros: 2, sparse24: false },
      { name: 'odd', dtype: 'float32', shape: [3], min: 2, max: 2, zeros: 0, sparse24: null },
    ]);
    expect((await listed('^dense$'))?.map(({ name }) => name)).toEqual(['dense']);
    expect((await inspect(path, '--weights', '^dense$')).out).toContain('float16  2x4');
  });

  it('prints exactly one JSON object', async () => {
    const { exitCode, json, err } = await inspect(model, '--json');
    expect({ exitCode, err }).toEqual({ exitCode: 0, err: '' });
    expect(json()).toMatchObject({
      schema: 'trtforge.inspect/1',
      ok: true,
      file: model,
      inputs: [{ name: 'image' }],
    });
  });

  it('ends with exit code 2 and the reason for a file that is not there', async () => {
    const { exitCode, json } = await inspect(join(folder, 'nowhere.onnx'), '--json');
    expect([exitCode, json().error?.code]).toEqual([2, 'TF_FILE_NOT_FOUND']);
  });

  it('answers for an engine with the verb of engines', async () => {
    const engine = join(folder, 'plain.engine');
    writeFileSync(engine, samplePlan());
    for (const options of [[], ['--check-weights']]) {
      const { exitCode, json } = await inspect(engine, ...options, '--json');
      expect([exitCode, json().error]).toMatchObject([
        2,
        { code: 'TF_USAGE', remedy: `Run: trtforge engine inspect ${engine}` },
      ]);
    }
  });
});
