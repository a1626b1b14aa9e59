import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inflateSync } from 'node:zlib';
import fc from 'fast-check';
import sharp from 'sharp';
import { afterAll, describe, expect, it } from 'vitest';
import { readImage } from '../../../src/formats/images/image.js';
import { resizeAntialiased, resizeBilinear, roundHalfEven } from '../../../src/formats/images/resize.js';
import { codeOfWork } from '../../support/refusal.js';
import { runs } from '../../support/runs.js';

const fixtures = join(import.meta.dirname, '../../fixtures/images');
interface Pixels {
  readonly width: number;
  readonly height: number;
  readonly pixels: string;
}
const expected = Object.entries(
  JSON.parse(readFileSync(join(fixtures, 'images.json'), 'utf8')) as Record<
    string,
    Pixels & { readonly resized: readonly Pixels[]; readonly antialiased: Pixels }
  >,
);
const unpack = ({ pixels }: Pixels) => new Uint8Array(inflateSync(Buffer.from(pixels, 'base64')));
const folder = mkdtempSync(join(tmpdir(), 'trtforge-images-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const codeOf = (path: string) => codeOfWork(readImage(path));

describe.each(expected)('%s', (name, { width, height, resized, antialiased, ...rest }) => {
  it('has the pixels that OpenCV reads', async () => {
    const image = await readImage(join(fixtures, name));
    expect([image.width, image.height]).toEqual([width, height]);
    expect(Buffer.compare(image.rgb, unpack({ width, height, ...rest }))).toBe(0);
  });

  it('is resized within one level of cv2.INTER_LINEAR', async () => {
    const image = await readImage(join(fixtures, name));
    for (const target of resized) {
      const { rgb } = resizeBilinear(image, target.width, target.height);
      const wanted = unpack(target);
      expect(rgb.length).toBe(wanted.length);
      const differences = rgb.map((level, at) => Math.abs(level - wanted[at]!));
      expect(Math.max(...differences)).toBeLessThanOrEqual(1);
      expect(differences.filter((each) => each > 0).length).toBeLessThan(0.02 * rgb.length);
    }
  });

  it("is shrunk within one level of Pillow's bilinear", async () => {
    const { rgb } = resizeAntialiased(
      await readImage(join(fixtures, name)),
      antialiased.width,
      antialiased.height,
    );
    const wanted = unpack(antialiased);
    expect(rgb.length).toBe(wanted.length);
    // Versions of Pillow differ in which axis they resize first.
    expect(Math.max(...rgb.map((level, at) => Math.abs(level - wanted[at]!)))).toBeLessThanOrEqual(1);
  });
});

it('the fixtures are of every kind', () => {
  expect(expected.map(([name]) => name)).toHaveLength(10);
});

it.each(['cmyk.jpg', 'cut.jpg', 'images.json', 'record.py'])('%s is TF_IMAGE_INVALID', async (name) => {
  expect(await codeOf(join(fixtures, name))).toBe('TF_IMAGE_INVALID');
});

it('a file of 5 GB is TF_IMAGE_INVALID before it is read', async () => {
  const path = join(folder, 'huge.png');
  writeFileSync(path, readFileSync(join(fixtures, 'palette.png')));
  truncateSync(path, 5e9);
  expect(await codeOf(path)).toBe('TF_IMAGE_INVALID');
});

it('an image of more than 67,108,864 pixels is TF_IMAGE_INVALID', async () => {
  const path = join(folder, 'bomb.png');
  const create = { width: 8193, height: 8192, channels: 3, background: 'black' } as const;
  await sharp({ create }).png().toFile(path);
  expect(await codeOf(path)).toBe('TF_IMAGE_INVALID');
});

it('a file that is not there is TF_FILE_NOT_FOUND', async () => {
  expect(await codeOf(join(fixtures, 'none.jpg'))).toBe('TF_FILE_NOT_FOUND');
});

it('returns or throws TF_IMAGE_INVALID for changed files', async () => {
  const sources = ['baseline.jpg', 'palette.png', 'lossy.webp'].map((name) =>
    readFileSync(join(fixtures, name)),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...sources),
      fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 8 }),
      async (source, changes) => {
        const bytes = Buffer.from(source);
        for (const [at, value] of changes) bytes[at % bytes.length] = value;
        const path = join(folder, 'changed');
        writeFileSync(path, bytes);
        expect(['no error', 'TF_IMAGE_INVALID']).toContain(await codeOf(path));
      },
    ),
    { numRuns: runs(1000) },
  );
});

it.each([
  [426.5, 426],
  [427.5, 428],
  [0.5, 0],
  [1.4999, 1],
  [2.51, 3],
])('rounds %d to %d, half to even', (value, rounded) => {
  expect(roundHalfEven(value)).toBe(rounded);
});
