import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openSession, TrtforgeError } from 'trtforge';
import { evaluate, imageSamples, preprocessingFor } from 'trtforge/evaluation';
import { runExample, UsageError } from '../usage.js';
import { calibrationError } from './calibration-error.js';

const USAGE = `node build/examples/metrics/main.js MODEL IMAGES TRUTH.tsv

Measures how far a classifier's confidence is from its accuracy, over labelled images.
  MODEL      ONNX model or engine; one output with one logit per class
  IMAGES     folder of the images
  TRUTH.tsv  one line per image: file name, tab, number of the class
`;

async function main(): Promise<void> {
  const [model, folder, truth] = process.argv.slice(2);
  if (model === undefined || folder === undefined || truth === undefined)
    throw new UsageError('Name a model, a folder of images and their labels.');
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
  await runExample(main, USAGE);
} catch (error) {
  if (!(error instanceof TrtforgeError)) throw error;
  console.error(`${error.code}: ${error.message}\n${error.remedy ?? ''}`);
  process.exitCode = error.exitCode;
}
