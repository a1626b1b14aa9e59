import { expect, it } from 'vitest';
import { preprocess, preprocessings } from '../../src/formats/images/preprocess.js';
import { numbersOf } from '../../src/formats/tensor/tensor.js';
import { freshPath } from '../formats/precision/judge.js';
import { inProcessBackEnd } from '../support/in-process-back-end.js';
import { samplesOf, writeVariant } from './kind.js';
import { sceneDetector } from './scene-kinds.js';
import { pixelsOf, SCENE_CLASSES, SCENE_SIDE } from './scenes.js';

const samples = samplesOf(sceneDetector, 9001, 26);

it('a scene is the same from a picture as from numbers', () => {
  const input = samples[0]!.get('images')!;
  const image = { width: SCENE_SIDE, height: SCENE_SIDE, rgb: pixelsOf(input) };
  const how = { ...preprocessings.yolo!, width: SCENE_SIDE, height: SCENE_SIDE };
  expect(Buffer.compare(preprocess(image, how).tensor.bytes, input.bytes)).toBe(0);
});

it('every class is found in some scenes, and none in as many as half of them', async () => {
  const path = freshPath('.onnx');
  await writeVariant(path, sceneDetector, 0);
  const model = await inProcessBackEnd().open(path, {}, {});
  const found = new Array<number>(SCENE_CLASSES).fill(0);
  const absent: number[] = [];
  for (const sample of samples) {
    const output = (await model.run(sample)).get('output0')!;
    const [values, places] = [numbersOf(output), output.shape[2]!];
    for (let kind = 0; kind < SCENE_CLASSES; kind++) {
      const highest = Math.max(...values.slice((4 + kind) * places, (5 + kind) * places));
      if (highest > 0.5) found[kind]!++;
      else absent.push(highest);
    }
  }
  expect(Math.min(...found)).toBeGreaterThan(0);
  expect(Math.max(...found)).toBeLessThan(samples.length / 2);
  expect(absent.sort((a, b) => a - b)[absent.length >> 1]).toBeLessThan(1e-3);
});
