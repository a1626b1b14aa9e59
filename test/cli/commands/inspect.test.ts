import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { attribute } from '../../../src/formats/onnx/index.js';
import { modelFactsSchema } from '../../../src/formats/onnx/model-facts.js';
import { modelFile } from '../../engines/runtime/onnxruntime/models.js';
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
        '',
        '· note initializer-is-input  The initializer "weight" is also listed as an input, so runtimes may not treat it as a constant.',
        '    at graph',
      ]
        .join('\n')
        .replace('429 B', `${readFileSync(model).length} B`),
    );
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
    expect(await listed('^Transpose$')).toEqual([{ ...turn, attributes: { perm: [1, 0] } }]);
    expect((await listed('.'))?.map(({ name }) => name)).toEqual(['turn', 'clip']);
    expect(await listed('Conv')).toEqual([]);
    expect((await inspect(path, '--nodes', 'turn')).out).toContain('perm=[1,0]');
    expect((await inspect(path, '--nodes', '(')).exitCode).toBe(2);
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
