import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';
import { attribute } from '../../../../src/formats/onnx/index.js';
import { floats, ids, modelFile } from '../../../engines/runtime/onnxruntime/models.js';

/** Cells of 8 pixels; a class a colour, whose score is the mean level of the cell. */
const CELL = 8;
const SIZE = 64;
const COLUMNS = SIZE / CELL;
const COLOURS = ['red', 'green', 'blue'];
const boxes = Array.from({ length: COLUMNS ** 2 }, (_, cell) => [
  ((cell % COLUMNS) + 0.5) * CELL,
  (Math.floor(cell / COLUMNS) + 0.5) * CELL,
  CELL,
  CELL,
]);

/** A detector of coloured cells with the outputs of YOLO: [1,4+3,64]. Where it leaves the size of its pictures open, it runs at 64 pixels all the same. `factors` of its scores by class plant a fault; with `masks` each object is the left half of its box. */
export const detector = (
  names: string | null = "{0: 'red', 1: 'green', 2: 'blue'}",
  size: readonly (number | string)[] = [SIZE, SIZE],
  factors: readonly [number, number, number] = [1, 1, 1],
  masks = false,
) =>
  modelFile(
    (graph) => {
      graph.input('images', 'float32', [1, 3, ...size]);
      graph.initializer('cells', ids([3], [1, 3, COLUMNS ** 2]));
      graph.initializer(
        'boxes',
        floats(
          'float32',
          [1, 4, boxes.length],
          [0, 1, 2, 3].flatMap((side) => boxes.map((box) => box[side]!)),
        ),
      );
      graph.node('AveragePool', {
        inputs: ['images'],
        outputs: ['means'],
        attributes: { kernel_shape: attribute.ints([CELL, CELL]), strides: attribute.ints([CELL, CELL]) },
      });
      graph.initializer('factors', floats('float32', [1, 3, 1, 1], factors));
      graph.node('Mul', { inputs: ['means', 'factors'], outputs: ['levels'] });
      graph.node('Reshape', { inputs: ['levels', 'cells'], outputs: ['scores'] });
      graph.node('Concat', {
        inputs: ['boxes', 'scores', ...(masks ? ['weights'] : [])],
        outputs: ['output0'],
        attributes: { axis: attribute.int(1) },
      });
      graph.output('output0', 'float32', [1, masks ? 8 : 7, COLUMNS ** 2]);
      if (!masks) return;
      const side = 2 * COLUMNS;
      const stripes = Array.from({ length: side ** 2 }, (_, at) => (at % 2 === 0 ? 1 : -1));
      graph.initializer('weights', floats('float32', [1, 1, COLUMNS ** 2], Array(COLUMNS ** 2).fill(3)));
      graph.initializer('stripes', floats('float32', [1, 1, side, side], stripes));
      graph.node('Identity', { inputs: ['stripes'], outputs: ['output1'] });
      graph.output('output1', 'float32', [1, 1, side, side]);
    },
    names === null ? {} : { metadata: { names } },
  );

export interface Painted {
  readonly id: number;
  readonly width: number;
  readonly height: number;
  /** In pixels of the image. */
  readonly cells: readonly {
    readonly colour: number;
    readonly box: readonly [number, number, number, number];
  }[];
}
/** At a scale of 1, and of 2 with 16 rows of padding above and below: 128 by 64 becomes 64 by 32. */
export const images: readonly Painted[] = [
  {
    id: 7,
    width: 64,
    height: 64,
    cells: [
      { colour: 0, box: [8, 16, 8, 8] },
      { colour: 1, box: [40, 48, 8, 8] },
    ],
  },
  {
    id: 9,
    width: 128,
    height: 64,
    cells: [
      { colour: 2, box: [32, 16, 16, 16] },
      { colour: 0, box: [112, 48, 16, 16] },
    ],
  },
];

async function paint(folder: string, { id, width, height, cells }: Painted): Promise<void> {
  const pixels = Buffer.alloc(3 * width * height);
  for (const { colour, box } of cells)
    for (let y = box[1]; y < box[1] + box[3]; y++)
      for (let x = box[0]; x < box[0] + box[2]; x++) pixels[3 * (y * width + x) + colour] = 255;
  await sharp(pixels, { raw: { width, height, channels: 3 } })
    .png()
    .toFile(join(folder, 'images', `${id}.png`));
}

/** Category ids have gaps, and their order is not that of the labels. */
const categoryIds = [11, 5, 90];
export const instancesOf = (painted: readonly Painted[]) => ({
  images: painted.map(({ id, width, height }) => ({ id, width, height, file_name: `val/${id}.png` })),
  categories: COLOURS.map((name, colour) => ({ id: categoryIds[colour], name: name.toUpperCase() })),
  annotations: painted
    .flatMap(({ id, cells }) => cells.map((cell) => ({ image_id: id, ...cell })))
    .map(({ image_id, colour, box }, index) => ({
      id: index + 1,
      image_id,
      category_id: categoryIds[colour],
      bbox: box,
      area: box[2] * box[3],
      iscrowd: 0,
    })),
});

/** How the detector is evaluated, besides files. */
export const cellSettings = {
  conf: 0.5,
  iou: 0.7,
  maxDet: 300,
  preNmsTopk: 30_000,
  agnosticNms: false,
  multiLabel: false,
  warmupRuns: 1,
  skipLatency: 0,
  open: {},
};

/** Writes the pictures into `images` of the folder, and instances.json beside it. */
export async function paintCells(folder: string): Promise<void> {
  mkdirSync(join(folder, 'images'));
  for (const image of images) await paint(folder, image);
  writeFileSync(join(folder, 'instances.json'), JSON.stringify(instancesOf(images)));
}
