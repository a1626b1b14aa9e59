import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { Instances } from '../../../examples/detector/instances.js';
import { Pcg32 } from '../../../examples/detector/random.js';
import { drawScene, SIDE } from '../../../examples/detector/scene.js';
import { CLASS_NAMES, CLASS_TABLES, GRID, OUTSIDE } from '../../../examples/detector/shapes.js';

const scenes = Array.from({ length: 40 }, (_, index) => drawScene('test', index));
const everyObject = scenes.flatMap(({ objects }) => objects);

describe('PCG32', () => {
  it("gives the numbers of its author's demonstration: seed 42, stream 54", () => {
    const random = new Pcg32(42, 0, 54);
    expect(Array.from({ length: 6 }, () => random.next())).toEqual([
      0xa15c02b7, 0x7b47f409, 0xba1d3330, 0x83d2f293, 0xbfa4784b, 0xcbed606e,
    ]);
  });

  it('carries between the halves of its state as 64-bit arithmetic does', () => {
    const mask = (1n << 64n) - 1n;
    const random = new Pcg32(0xffffffff, 0xffffffff, 0x7fffffff);
    const step = 0xffffffffn;
    let state = (step + mask) & mask;
    const advance = () => {
      state = (state * 6364136223846793005n + step) & mask;
    };
    advance();
    for (let i = 0; i < 1000; i++) {
      const mixed = (((state >> 18n) ^ state) >> 27n) & 0xffffffffn;
      const turn = state >> 59n;
      const expected = ((mixed >> turn) | (mixed << (-turn & 31n))) & 0xffffffffn;
      expect(random.next()).toBe(Number(expected));
      advance();
    }
  });

  it('draws every number of a range about equally often', () => {
    const random = new Pcg32(1, 2, 3);
    const counts = new Array<number>(7).fill(0);
    for (let i = 0; i < 70_000; i++) counts[random.between(-3, 3) + 3]!++;
    for (const count of counts) expect(Math.abs(count - 10_000)).toBeLessThan(400);
  });
});

describe('scenes', () => {
  it('are the same pixels as when the weights were trained', () => {
    const digest = createHash('sha256');
    for (const { pixels } of scenes) digest.update(pixels);
    expect(digest.digest('hex')).toMatchInlineSnapshot(
      `"e5ef904d9d6f796277e46b0241e9e9d72e006d30ca56e48ff292a62b0092a121"`,
    );
  });

  it('differ between splits', () => {
    expect(drawScene('train', 0).pixels).not.toEqual(scenes[0]!.pixels);
    expect(drawScene('validation', 0).pixels).not.toEqual(scenes[0]!.pixels);
  });

  it('have the areas and boxes of the visible pixels', () => {
    for (const { objects, owners } of scenes)
      for (const [index, { box, area }] of objects.entries()) {
        const [columns, rows] = [new Uint32Array(SIDE), new Uint32Array(SIDE)];
        for (let at = owners.indexOf(index + 1); at >= 0; at = owners.indexOf(index + 1, at + 1)) {
          columns[at % SIDE]!++;
          rows[Math.floor(at / SIDE)]!++;
        }
        const first = (counts: Uint32Array) => counts.findIndex((count) => count > 0);
        const last = (counts: Uint32Array) => counts.findLastIndex((count) => count > 0);
        expect(area).toBe(columns.reduce((sum, count) => sum + count, 0));
        expect(box).toEqual([
          first(columns),
          first(rows),
          last(columns) - first(columns) + 1,
          last(rows) - first(rows) + 1,
        ]);
      }
  });

  it('hide no object beyond recognition', () => {
    expect(Math.min(...everyObject.map(({ area }) => area))).toBeGreaterThan(20);
  });

  it("have objects of all of COCO's ranges of area, every class, and crowds", () => {
    const many = Array.from({ length: 120 }, (_, index) => drawScene('test', index).objects).flat();
    const share = (of: (area: number) => boolean) => many.filter(({ area }) => of(area)).length / many.length;
    expect(share((area) => area < 1024)).toBeGreaterThan(0.3);
    expect(share((area) => area >= 1024 && area < 9216)).toBeGreaterThan(0.3);
    expect(share((area) => area >= 9216)).toBeGreaterThan(0.05);
    expect(new Set(many.map(({ category }) => category)).size).toBe(CLASS_NAMES.length);
    const crowds = many.filter(({ crowd }) => crowd).length / many.length;
    expect(crowds).toBeGreaterThan(0.002);
    expect(crowds).toBeLessThan(0.025);
  });
});

describe('classes', () => {
  it('are 24 names and as many different figures', () => {
    expect(new Set(CLASS_NAMES).size).toBe(24);
    const tables = CLASS_TABLES.map((table) => createHash('sha256').update(table).digest('hex'));
    expect(new Set(tables).size).toBe(24);
  });

  it('of one outline cover the same places, whatever fills it', () => {
    const covered = CLASS_TABLES.map((table) => table.map((value) => (value === OUTSIDE ? 0 : 1)));
    for (const [index, places] of covered.entries())
      expect(Buffer.compare(places, covered[index - (index % 4)]!)).toBe(0);
    // A disc covers pi/4 of the square around it.
    const disc = covered[0]!.reduce((sum, value) => sum + value, 0) / GRID ** 2;
    expect(disc).toBeCloseTo(Math.PI / 4, 3);
  });
});

it("instances have COCO's fields, ids from 1, and the categories by name", () => {
  const instances = new Instances();
  for (const index of [5, 2]) instances.add(index, scenes[index]!);
  const { images, annotations, categories } = instances.document('two');
  expect(images.map(({ id, file_name }) => [id, file_name])).toEqual([
    [6, '000005.png'],
    [3, '000002.png'],
  ]);
  const objects = [5, 2].flatMap((index) => scenes[index]!.objects);
  expect(annotations.map(({ id }) => id)).toEqual(objects.map((_, at) => at + 1));
  expect(annotations.map(({ bbox, area, iscrowd }) => [bbox, area, iscrowd === 1])).toEqual(
    objects.map(({ box, area, crowd }) => [box, area, crowd]),
  );
  expect(annotations.map(({ category_id }) => categories[category_id - 1]!.name)).toEqual(
    objects.map(({ category }) => CLASS_NAMES[category]),
  );
  expect(annotations[0]!.image_id).toBe(6);
});
