import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { modelFamilies } from '../../examples/models/catalogue.js';
import { buildAddon } from '../../scripts/build-native.mjs';
import { buildPlan } from '../../src/engines/builder/build-supervised.js';
import type { ProfileRange } from '../../src/engines/identity/recipe.js';
import { ignoreEvents } from '../../src/events.js';
import { rtxToolchain } from '../native/rtx-toolchain.js';
import { describeWith } from '../support/needs.js';
import { resolvedBuild } from '../support/sample-engine.js';

const range = (min: number[], opt: number[], max: number[]): ProfileRange => ({
  min,
  opt,
  max,
  values: false,
});
const fixed = (shape: number[]) => range(shape, shape, shape);
const tokens = range([1, 1], [1, 1], [1, 8]);
const sequences = range([1, 4], [2, 16], [4, 64]);

/** Family, the ONNX file among what it writes, and a profile; the speech bundle's are the ranges speech engines are built with. */
const cases: [family: string, file: string, profile: Record<string, ProfileRange>][] = [
  ['resnet50', 'resnet50.onnx', { input: range([1, 3, 32, 32], [4, 3, 32, 32], [8, 3, 32, 32]) }],
  ['transformer-encoder', 'transformer-encoder.onnx', { input_ids: sequences, attention_mask: sequences }],
  ['matmul-stack', 'matmul-stack.onnx', { x: range([1, 16], [8, 16], [32, 16]) }],
  [
    'parakeet',
    'parakeet/encoder.onnx',
    { audio_signal: range([1, 128, 16], [1, 128, 64], [1, 128, 256]), length: fixed([1]) },
  ],
  ['parakeet', 'parakeet/predictor.onnx', { y: tokens, h: fixed([2, 1, 16]), c: fixed([2, 1, 16]) }],
  [
    'parakeet',
    'parakeet/joint.onnx',
    {
      encoder_output: range([1, 32, 16], [1, 32, 64], [1, 32, 256]),
      predictor_output: range([1, 16, 1], [1, 16, 1], [1, 16, 8]),
    },
  ],
  [
    'streaming-encoder',
    'streaming-encoder/encoder_streaming.onnx',
    {
      audio_signal: range([1, 128, 41], [1, 128, 57], [1, 128, 57]),
      length: fixed([1]),
      cache_last_channel: fixed([1, 2, 16, 32]),
      cache_last_time: fixed([1, 2, 32, 4]),
      cache_last_channel_len: fixed([1]),
    },
  ],
];

describeWith('toolchain', 'generated models on tensorrt-rtx', (libraries) => {
  let folder: string;
  beforeAll(async () => {
    await buildAddon({ say: () => {} });
    folder = mkdtempSync(join(tmpdir(), 'trtforge-models-build-'));
    for (const [name, family] of Object.entries(modelFamilies)) {
      const path = join(folder, family.output === 'file' ? `${name}.onnx` : name);
      await family.write('tiny', path, { seed: 1, external: name === 'parakeet' });
    }
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it.each(cases)('%s: %s becomes an engine', async (_, file, profile) => {
    const planPath = join(folder, 'engine.plan');
    const outcome = await buildPlan(
      resolvedBuild(join(folder, file), {
        toolchain: rtxToolchain(libraries),
        recipe: { profiles: [profile] },
      }),
      { modelPath: join(folder, file), planPath },
      { emit: ignoreEvents },
    );
    expect(outcome.bytes).toBe(statSync(planPath).size);
    expect(new Set(outcome.inputs.map(({ name }) => name))).toEqual(new Set(Object.keys(profile)));
  });
});
