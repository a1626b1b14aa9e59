import { expect, test } from 'vitest';
import { digestModel } from '../../src/engine/model-digest.js';
import { ignoreEvents } from '../../src/events.js';
import { openModel } from '../../src/onnx/model.js';
import { CONVERSION_REVISION } from '../../src/precision/revision.js';
import { sha256 } from '../../src/system/digest.js';
import { converted, written } from './judge.js';
import { traps } from './models.js';

/**
 * What the converter of a revision writes for a fixed set of models. When this test fails because the converter writes something else, stores hold engines
 * that the new converter would not make: raise CONVERSION_REVISION and record revision and digest here. A new model in the set needs a new digest only.
 */
const recorded = {
  revision: 1,
  models: 24,
  digest: 'aa49376692d3b573c94c2b73a5c0a1e014bd3c8b81aac4364a3e8c4c70e6ae1b',
};

async function digestOf(precision: 'fp16' | 'bf16', trap: (typeof traps)[number]): Promise<string> {
  const { output } = await converted(await written(trap.graph(), trap.spec), { precision });
  const model = openModel(output);
  try {
    return (await digestModel(model, { emit: ignoreEvents })).digest;
  } finally {
    model.close();
  }
}

test('the converter writes what its revision has always written', async () => {
  const digests: string[] = [];
  for (const trap of traps) {
    for (const precision of ['fp16', 'bf16'] as const) digests.push(await digestOf(precision, trap));
  }
  const found = { revision: CONVERSION_REVISION, models: traps.length, digest: sha256(digests.join('\n')) };
  expect(found).toEqual(recorded);
});
