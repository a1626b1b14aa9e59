import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type ModelLike, writeModel } from '../../../../src/formats/onnx/index.js';
import { factsOfModel } from '../../../../src/formats/onnx/inspect.js';
import { scratchFolder } from '../support/models.js';
import { acceptedModels, rejectedModels } from '../support/rejected.js';

const folder = scratchFolder();
let files = 0;

async function codesOf(model: ModelLike): Promise<string[]> {
  const path = join(folder, `${files++}.onnx`);
  await writeModel(model, path);
  return factsOfModel(path).findings.map(({ code }) => code);
}

describe('what TensorRT rejects of an operator that it knows', () => {
  it.each(Object.entries(rejectedModels))('%s is found', async (_what, [model, code]) => {
    expect(await codesOf(model)).toContain(code);
  });

  it.each(Object.entries(acceptedModels))('%s is not', async (_what, model) => {
    expect(await codesOf(model)).toEqual([]);
  });
});
