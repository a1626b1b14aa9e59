import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildAddon } from '../../../scripts/build-native.mjs';
import { buildPlan } from '../../../src/engines/builder/build-supervised.js';
import type { BuildContext } from '../../../src/engines/builder/options.js';
import { TrtforgeError } from '../../../src/errors.js';
import { ignoreEvents, type WorkEvent } from '../../../src/events.js';
import { type Fake, FakeBench } from '../../fakes/tensorrt/library.js';
import { dynamicModel } from '../../native/tiny-models.js';
import { resolvedBuild } from '../../support/sample-engine.js';

/** What the real library does too rarely or too late to wait for: aborts, and builds that never end. */
const folder = mkdtempSync(join(tmpdir(), 'trtforge-supervision-'));
let bench: FakeBench;

beforeAll(async () => {
  await buildAddon({ say: () => {} });
  bench = await FakeBench.plain();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function build(fake: Fake, variables: Record<string, string>, context: Partial<BuildContext> = {}) {
  const request = resolvedBuild('given.onnx', {
    toolchain: bench.toolchain(fake),
    recipe: {
      stronglyTyped: fake !== '8',
      profiles: [{ x: { min: [1, 64], opt: [8, 64], max: [32, 64], values: false } }],
    },
  });
  return buildPlan(
    request,
    { modelPath: dynamicModel(folder), planPath: join(folder, 'plan') },
    { emit: ignoreEvents, ...context, environment: bench.environment(variables) },
  );
}

async function refusal(attempt: Promise<unknown>): Promise<TrtforgeError> {
  const error = await attempt.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof TrtforgeError))
    throw new Error(`a TrtforgeError was expected, not ${String(error)}`);
  return error;
}

/** Aborts as soon as the library works: its lines from another thread come from inside the build. */
function abortOnceBuilding(): Partial<BuildContext> {
  const stopping = new AbortController();
  return {
    signal: stopping.signal,
    emit: (event: WorkEvent) => {
      if (event.type === 'log' && event.message.includes('another thread')) stopping.abort();
    },
  };
}

test('an abort inside the library is TF_CHILD_DIED with the signal and its last lines', async () => {
  const error = await refusal(build('10', { FAKE_BUILD: 'aborts' }));
  expect(error.code).toBe('TF_CHILD_DIED');
  expect(error.details).toMatchObject({ signal: 'SIGABRT' });
  // The model that was given: its converted copy lies where nobody looks.
  expect(error.message).toContain('building given.onnx');
  expect(error.message).toContain('was killed by SIGABRT');
  expect(error.message).toContain("terminate called after throwing an instance of 'nvinfer1::Fake'");
});

test.each<[Fake, string]>([
  ['10', 'stops through its progress monitor'],
  ['8', 'has none, so its process ends'],
])('a cancelled build of generation %s %s', async (fake) => {
  // Nobody kills it: what does not stop by itself is there for days.
  const options = { ...abortOnceBuilding(), graceMs: 2 ** 31 - 1 };
  const error = await refusal(build(fake, { FAKE_BUILD: 'waits' }, options));
  expect(error.code).toBe('TF_CANCELLED');
});

test('a build that succeeds states what the network declares', async () => {
  expect(await build('10', {})).toMatchObject({
    libraryVersion: '10.3.0',
    inputs: [{ name: 'x', dtype: 'float32', shape: [null, 64] }],
    bytes: 64,
  });
});

test.each<[Fake, string[]]>([
  // 8.6 says the index alone: the names are looked up in the model.
  ['8', ['node MatMul_0 (MatMul): No importer', 'node Relu_0 (Relu): No importer']],
  ['10', ['node first (Frobnicate): No importer', 'node second (Frobnicate): No importer']],
])('generation %s: each rejected node is named', async (fake, sentences) => {
  const error = await refusal(build(fake, { FAKE_MODEL: 'refused' }));
  expect(error.code).toBe('TF_MODEL_REJECTED');
  const lines = error.message.split('\n').slice(1);
  expect(lines).toEqual(sentences.map((sentence) => expect.stringContaining(sentence)));
  expect(error.details?.nodes).toHaveLength(2);
});
