import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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
