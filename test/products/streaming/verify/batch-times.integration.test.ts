import { describe, expect, it } from 'vitest';
import { TrtforgeError } from '../../../../src/errors.js';
import { float32Values, type NamedTensors } from '../../../../src/formats/tensor/tensor.js';
import {
  type BatchRunner,
  inBatch,
  timeProfiles,
} from '../../../../src/products/streaming/verify/batch-times.js';
import { floats } from '../../../engines/runtime/onnxruntime/models.js';

/** A session whose calls note what was asked of them; batches above 4 fit no profile, those above 2 are of profile 1. */
function fakeSession() {
  const prepared: (readonly (readonly number[])[])[] = [];
  let [open, runs] = [0, 0];
  const session: BatchRunner = {
    inputs: [
      { name: 'x', dtype: 'float32', shape: [null, 2], hostValues: false, profiles: [] },
      { name: 'cache', dtype: 'float32', shape: [3, null, 2], hostValues: false, profiles: [] },
    ],
    prepare: async (shapes) => {
      const all = [...(shapes as ReadonlyMap<string, readonly number[]>)];
      const batch = all[0]![1][0]!;
      if (batch > 4) throw new TrtforgeError('TF_PROFILE_MISFIT', `No profile takes ${batch}.`);
      prepared.push(all.map(([, shape]) => shape));
      open++;
      const inputs = new Map(
        all.map(([name, shape]) => [
          name,
          floats('float32', shape, Array(shape.reduce((a, b) => a * b, 1)).fill(0)),
        ]),
      );
      return {
        profile: batch > 2 ? 1 : 0,
        cudaGraph: true,
        cudaGraphFallback: null,
        inputs: {},
        outputs: {},
        runSync: () => {},
        run: async () => {
          runs++;
        },
        input: (name) => inputs.get(name)!,
        output: (name) => inputs.get(name)!,
        close: () => {
          open--;
        },
      };
    },
  };
  return { session, prepared, open: () => open, runs: () => runs };
}

const chunk: NamedTensors = new Map([
  ['x', floats('float32', [1, 2], [1, 2])],
  ['cache', floats('float32', [3, 1, 2], [1, 2, 3, 4, 5, 6])],
]);

describe('batches of one chunk', () => {
  it('repeat rows along the batch axis, wherever that is', () => {
    expect([...float32Values(inBatch(chunk.get('x')!, 0, 3))]).toEqual([1, 2, 1, 2, 1, 2]);
    const cache = inBatch(chunk.get('cache')!, 1, 2);
    expect(cache.shape).toEqual([3, 2, 2]);
    expect([...float32Values(cache)]).toEqual([1, 2, 1, 2, 3, 4, 3, 4, 5, 6, 5, 6]);
  });

  it('are timed in the profile that takes them; one that none takes is reported; all calls are closed', async () => {
    const { session, prepared, open, runs } = fakeSession();
    const found = await timeProfiles(session, { inputs: [] }, [chunk], [1, 2, 4, 8], { warmUp: 1, runs: 5 });
    expect(found.batches.map(({ batch, profile, error }) => [batch, profile, error])).toEqual([
      [1, 0, null],
      [2, 0, null],
      [4, 1, null],
      [8, null, 'No profile takes 8.'],
    ]);
    expect(prepared.at(-1)).toEqual([
      [4, 2],
      [3, 4, 2],
    ]);
    expect(found.switching.map(({ acrossProfiles }) => acrossProfiles)).toEqual([false, false, true]);
    expect(open()).toBe(0);
    // Three batches, and for each of three changes two that stay and a pair that alternates, of 6 rounds each.
    expect(runs()).toBe(6 * (3 + 3 * 4));
  });

  it('use the axis that the contract calls the batch', async () => {
    const { session, prepared } = fakeSession();
    const inputs = [{ name: 'cache', dtype: null, shape: ['B', 1, 2], role: 'state' }] as const;
    await timeProfiles(session, { inputs }, [chunk], [2], { warmUp: 0, runs: 1 });
    expect(prepared.at(-1)).toEqual([
      [2, 2],
      [2, 1, 2],
    ]);
  });
});
