import { expect, test } from 'vitest';
import { sha256 } from '../../../src/base/files/digest.js';
import { digestModel } from '../../../src/engines/identity/model-digest.js';
import { ignoreEvents } from '../../../src/events.js';
import { openModel } from '../../../src/formats/onnx/model.js';
import { CONVERSION_REVISION } from '../../../src/formats/precision/options.js';
import { converted, written } from './judge.js';
import { traps } from './models.js';

/**
 * What the converter of a revision writes for a fixed set of models. When this test fails because the converter writes something else, stores hold engines
 * that the new converter would not make: raise CONVERSION_REVISION and record revision and digest here. A new model in the set needs a new digest only.
 */
const recorded = {
  revision: 5,
  models: 26,
  digest: 'b485213db730fcb62a0ab900ab513c30974aa2180e94e625545a56fe41b98ff5',
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
