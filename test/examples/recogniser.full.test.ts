import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { convertModel } from 'trtforge';
import { evaluateRecogniser } from 'trtforge/evaluation';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { testUtterance, writeSet } from '../../examples/recogniser/speech-set.js';
import { recogniser } from '../../src/products/bundle/recogniser.js';
import { describeWith } from '../support/needs.js';

const bundle = fileURLToPath(new URL('../../examples/recogniser/bundle', import.meta.url));
const COUNT = 40;

describeWith('espeak-ng', `the trained recogniser on ${COUNT} phrases of the test set`, () => {
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'trtforge-recogniser-'));
    await writeSet(
      Array.from({ length: COUNT }, (_, index) => testUtterance(index)),
      join(folder, 'speech'),
    );
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const evaluate = async (meta: string, output: string) => {
    const manifest = join(folder, 'speech', 'manifest.tsv');
    const request = { meta, manifest, normalizer: 'none', output: join(folder, output), open: {} };
    const { wer, run } = await evaluateRecogniser(request, [recogniser]);
    const transcripts = readFileSync(join(folder, output, 'transcripts.tsv'), 'utf8');
    return { wer: wer ?? Number.NaN, run, transcripts };
  };

  // Measured: 2.8 % on these; nine in ten of the phrases have no error at all.
  const BOUND = 0.05;

  test('in chunks it is within the bound, in one piece it writes the same words, and FP16 is no more than a point worse', async () => {
    const chunks = await evaluate(join(bundle, 'model_meta.json'), 'chunks');
    expect(chunks.wer).toBeLessThan(BOUND);
    expect(chunks.run).toMatchObject({ streaming: true, resampled: COUNT });

    const whole = await evaluate(join(bundle, 'whole.model_meta.json'), 'whole');
    expect(whole.transcripts).toBe(chunks.transcripts);

    const typed = join(folder, 'fp16');
    mkdirSync(typed);
    copyFileSync(join(bundle, 'model_meta.json'), join(typed, 'model_meta.json'));
    for (const name of ['encoder.onnx', 'predictor.onnx', 'joint.onnx'])
      await convertModel(join(bundle, name), join(typed, name), { precision: 'fp16' });
    const half = await evaluate(join(typed, 'model_meta.json'), 'half');
    expect(half.wer).toBeLessThanOrEqual(chunks.wer + 0.01);
  });
});
