import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { readPassport } from '../../../src/engines/identity/passport.js';
import { attribute, buildModel, type Dimension, GraphBuilder } from '../../../src/formats/onnx/builder.js';
import { writeModel } from '../../../src/formats/onnx/write.js';
import { integerTensor } from '../../../src/formats/tensor/tensor.js';
import type { TritonExport } from '../../../src/products/triton/export/export-models.js';
import { describeWith } from '../../support/needs.js';
import { trtforge } from '../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-triton-built-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A model whose output has four rows for each one of the batch, under the name that is passed. */
async function writeRows(file: string, rows: Dimension): Promise<string> {
  const graph = new GraphBuilder('rows');
  const shape = graph.initializer('shape', integerTensor('int64', [2], [-1, 7]));
  graph.input('images', 'float32', ['batch', 4, 7]);
  graph.node('Relu', { inputs: ['images'], outputs: ['positive'] });
  graph.node('Reshape', {
    inputs: ['positive', shape],
    outputs: ['dets'],
    attributes: { allowzero: attribute.int(0) },
  });
  graph.output('dets', 'float32', [rows, 7]);
  await writeModel(buildModel(graph), join(folder, file));
  return join(folder, file);
}

describeWith('toolchain', 'an engine whose output has rows of its own', (toolchain) => {
  const environment = { ...process.env, XDG_CACHE_HOME: join(folder, 'xdg'), TENSORRT_HOME: toolchain };
  const run = async (...args: readonly string[]) => {
    const { exitCode, json } = await trtforge([...args, '--json'], environment);
    expect([exitCode, json().error]).toEqual([0, undefined]);
    return json();
  };

  it.each([
    ['named', 'num_dets'],
    ['numbered', 'Reshapedets_dim_0', '--known-answer'],
  ])('%s: it is not served in batches', async (name, rows, ...answer) => {
    const model = await writeRows(`${name}.onnx`, rows);
    const engine = join(folder, `${name}.engine`);
    await run('build', model, '--target', 'tensorrt-rtx:sm_89', '--batch', '1/2/4', '-o', engine, ...answer);
    const { inputs, outputs } = readPassport(engine).plan;
    expect([inputs[0]?.symbols, outputs[0]?.symbols]).toEqual([
      ['batch', null, null],
      [rows, null],
    ]);
    const exported = await run('triton', 'export', engine, '-o', join(folder, name), '--force');
    const { models, warnings } = exported as unknown as TritonExport;
    expect(models[0]?.maxBatchSize).toBe(0);
    expect(warnings.filter((each) => each.includes('"dets"'))).toHaveLength(1);
  });
});
