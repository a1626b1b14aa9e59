import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getActiveResourcesInfo } from 'node:process';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { preparedImages, preprocessingOf } from '../../../src/engines/run/image-inputs.js';
import type { Binding } from '../../../src/engines/runtime/session.js';
import { float32Values } from '../../../src/formats/tensor/tensor.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-images-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const inputs: readonly Binding[] = [{ name: 'x', dtype: 'float16', shape: [1, 3, 2, 2] }];
const preprocessing = preprocessingOf(inputs, 'rt-detr', 2);
const levels = Array.from({ length: 40 }, (_, at) => 5 * at);
const paths = levels.map((level) => join(folder, `${level}.png`));

beforeAll(() =>
  Promise.all(
    levels.map((level, at) =>
      // Sizes differ, so that threads do not end in the order in which they begin.
      sharp({
        create: { width: 400 - 9 * at, height: 300, channels: 3, background: { r: level, g: 0, b: 0 } },
      })
        .png()
        .toFile(paths[at]!),
    ),
  ),
);

const threads = () => getActiveResourcesInfo().filter((name) => name === 'MessagePort').length;

describe('prepared images', () => {
  test('come in their order, as float32 and in the type of the input', async () => {
    const found: { level: number; width: number; bytes: number }[] = [];
    for await (const image of preparedImages(inputs, paths, preprocessing))
      found.push({
        level: Math.round(255 * float32Values(image.tensor)[0]!),
        width: image.width,
        bytes: image.inputs.get('x')!.bytes.length,
      });
    expect(found).toEqual(levels.map((level, at) => ({ level, width: 400 - 9 * at, bytes: 2 * 3 * 2 * 2 })));
  });

  test.each([
    [
      [1, 2, 4, 3],
      [2, 4],
    ],
    [
      [1, 'height', 'width', 3],
      [2, 2],
    ],
    [
      ['n', 2, 4, 'channels'],
      [2, 4],
    ],
  ] as const)('of an input %j have their channels last', async (shape, [height, width]) => {
    const last: readonly Binding[] = [{ name: 'x', dtype: 'float32', shape: [...shape] }];
    const first: readonly Binding[] = [{ name: 'x', dtype: 'float32', shape: [1, 3, height, width] }];
    const prepared = async (bindings: readonly Binding[]) => {
      const how = preprocessingOf(bindings, 'imagenet', 2);
      for await (const { tensor } of preparedImages(bindings, paths.slice(3, 4), how))
        return { shape: tensor.shape, values: [...float32Values(tensor)] };
      return undefined;
    };
    const [picture, planes] = [await prepared(last), await prepared(first)];
    expect(picture?.shape).toEqual([1, height, width, 3]);
    const pixels = height * width;
    expect(picture?.values).toEqual(
      Array.from({ length: 3 * pixels }, (_, at) => planes?.values[(at % 3) * pixels + Math.floor(at / 3)]),
    );
  });

  test('of one channel, or of channels that cannot be found, are rejected', () => {
    for (const shape of [
      [1, 16, 16, 1],
      [1, 16, 16, 16],
      [1, 1, 16, 16],
    ])
      expect(() => preprocessingOf([{ name: 'x', dtype: 'float32', shape }], 'yolo', 16)).toThrow(
        expect.objectContaining({ code: 'TF_SESSION_BINDING' }),
      );
  });

  test('throw what is wrong with an image when its turn comes, and leave no thread behind', async () => {
    const damaged = join(folder, 'damaged.png');
    writeFileSync(damaged, 'no image');
    const before = threads();
    let taken = 0;
    const all = async () => {
      for await (const _ of preparedImages(inputs, paths.toSpliced(17, 0, damaged), preprocessing)) taken++;
    };
    await expect(all()).rejects.toMatchObject({
      code: 'TF_IMAGE_INVALID',
      message: expect.stringContaining(damaged),
    });
    expect(taken).toBe(17);
    expect(threads()).toBe(before);
  });

  test('that cannot be read are left out where a caller takes them', async () => {
    const damaged = join(folder, 'damaged.png');
    writeFileSync(damaged, 'no image');
    const [left, taken]: [number[], number[]] = [[], []];
    const some = [damaged, paths[0]!, join(folder, 'nowhere.png'), paths[1]!];
    for await (const { index } of preparedImages(inputs, some, preprocessing, (at) => left.push(at)))
      taken.push(index);
    expect([left, taken]).toEqual([
      [0, 2],
      [1, 3],
    ]);
  });

  test('of which the rest is not wanted leave no thread behind', async () => {
    const before = threads();
    for await (const _ of preparedImages(inputs, paths, preprocessing)) {
      expect(threads()).toBeGreaterThan(before);
      break;
    }
    expect(threads()).toBe(before);
  });
});
