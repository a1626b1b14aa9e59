/**
 * A metric of one's own over labelled images: how far a classifier's confidence is from its accuracy.
 *
 *   node build/examples/metrics/main.js MODEL.onnx|MODEL.engine IMAGES TRUTH.tsv
 *
 * TRUTH has a file name, a tab and the number of a class a line; the model has one output with a logit a class.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openSession, TrtforgeError } from 'trtforge';
import { evaluate, imageSamples, preprocessingFor } from 'trtforge/evaluation';
import { calibrationError } from './calibration-error.js';

async function main(model: string, folder: string, truth: string): Promise<void> {
  const rows = readFileSync(truth, 'utf8')
    .trim()
    .split('\n')
    .map((line) => line.split('\t'));
  await using session = await openSession(model);
  const images = rows.map(([id = '']) => ({ id, path: join(folder, id) }));
  const { samples, total } = imageSamples(session, images, preprocessingFor(session, 'imagenet', 224));
  const metric = calibrationError(rows.map(([, label]) => Number(label)));
  const { result, run } = await evaluate(metric, session, { samples, total });
  console.log(`calibration error ${result.toFixed(4)} over ${run.samples} images, ${session.backend}`);
  console.log(`median ${run.latency?.median_ms.toFixed(2)} ms a run`);
}

try {
  const [model = '', folder = '', truth = ''] = process.argv.slice(2);
  await main(model, folder, truth);
} catch (error) {
  if (!(error instanceof TrtforgeError)) throw error;
  console.error(`${error.code}: ${error.message}\n${error.remedy ?? ''}`);
  process.exitCode = error.exitCode;
}
