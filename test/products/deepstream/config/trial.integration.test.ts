import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DeepstreamCheck } from '../../../../src/products/deepstream/config/result.js';
import { floats, ids, modelFile } from '../../../engines/runtime/onnxruntime/models.js';
import { trtforge } from '../../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-trial-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeAll(async () => {
  const pictures = { 'red.png': { r: 255, g: 0, b: 0 }, 'gray.png': { r: 9, g: 9, b: 9 } };
  for (const [name, background] of Object.entries(pictures))
    await sharp({ create: { width: 20, height: 16, channels: 3, background } }).toFile(join(folder, name));
});

/** A detector of two classes that is sure of what is red, where red is 1 and comes first. */
const redDetector = () =>
  modelFile((graph) => {
    graph.input('images', 'float32', ['batch', 3, 16, 16]);
    graph.initializer('one', floats('float32', [1], [1]));
    graph.initializer('shape', ids([3], [1, 1, 1]));
    graph.initializer('size', ids([3], [1, 6, 84]));
    graph.node('GlobalAveragePool', { inputs: ['images'], outputs: ['means'] });
    graph.node('Sub', { inputs: ['means', 'one'], outputs: ['far'] });
    graph.node('Abs', { inputs: ['far'], outputs: ['distance'] });
    graph.node('Sub', { inputs: ['one', 'distance'], outputs: ['near'] });
    graph.node('Relu', { inputs: ['near'], outputs: ['scores'] });
    graph.initializer('axis', ids([1], [1]));
    graph.initializer('begin', ids([1], [0]));
    graph.initializer('end', ids([1], [1]));
    graph.node('Slice', { inputs: ['scores', 'begin', 'end', 'axis'], outputs: ['score'] });
    graph.node('Reshape', { inputs: ['score', 'shape'], outputs: ['flat'] });
    graph.node('Expand', { inputs: ['flat', 'size'], outputs: ['output0'] });
    graph.output('output0', 'float32', ['batch', 6, 84]);
  });

async function tried(keys: string, image: string) {
  const path = join(folder, 'config.txt');
  const model = await redDetector();
  writeFileSync(path, `[property]\nonnx-file=${model}\nnetwork-type=100\n${keys}\n`);
  const { json } = await trtforge(['deepstream', 'check', path, '--image', join(folder, image), '--json']);
  const { trial, findings } = json<DeepstreamCheck>();
  const found = findings.filter(({ code }) => /preprocessing|scores/.test(code));
  return { trial, found: found.map(({ code, severity }) => `${code} ${severity}`) };
}

const right = `net-scale-factor=${1 / 255}`;

describe('deepstream check --image', () => {
  it('finds nothing where the scores are plausible as configured', async () => {
    const { trial, found } = await tried(right, 'red.png');
    expect(found).toEqual([]);
    expect(trial?.asConfigured).toMatchObject({ candidates: 168 });
    expect(trial?.asConfigured.highest).toBeCloseTo(1, 5);
    expect(trial?.alternatives.length).toBeGreaterThan(5);
  });

  it.each([
    ['net-scale-factor=1', `${right} model-color-format=0`],
    [`${right}\nmodel-color-format=1`, `${right} model-color-format=0`],
    [`${right}\noffsets=128;128;128`, `${right} model-color-format=0`],
    [
      `${right}\nmaintain-aspect-ratio=1\nmodel-color-format=1`,
      'model-color-format=0 maintain-aspect-ratio=1',
    ],
  ])('names what gives clearly more than %j', async (keys, better) => {
    const { trial, found } = await tried(keys, 'red.png');
    expect(found).toEqual([expect.stringContaining('preprocessing-doubtful')]);
    expect(trial?.alternatives[0]?.preprocessing).toContain(better);
    expect(trial?.alternatives[0]?.highest).toBeGreaterThan(trial?.asConfigured.highest ?? 1);
  });

  it('makes nothing of a picture without objects', async () => {
    expect((await tried(right, 'gray.png')).found).toEqual(['scores-low warning']);
  });
});
