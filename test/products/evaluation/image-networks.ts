import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';
import { attribute } from '../../../src/formats/onnx/index.js';
import { floats, ids, modelFile } from '../../engines/runtime/onnxruntime/models.js';

/** Pictures of one colour, by name; levels are 0 to 255. */
export async function paint(
  folder: string,
  pictures: Readonly<Record<string, readonly [number, number, number]>>,
) {
  mkdirSync(folder, { recursive: true });
  for (const [name, [r, g, b]] of Object.entries(pictures))
    await sharp({ create: { width: 20, height: 16, channels: 3, background: { r, g, b } } })
      .png()
      .toFile(join(folder, name));
}

/** A network of 16 by 16 pixels unless told whose output is the mean of each channel, times a factor, in the shape [1,3]. */
export const channelMeans = (
  factors: readonly [number, number, number] = [1, 1, 1],
  outputs = 1,
  metadata: Readonly<Record<string, string>> = {},
  size: readonly (number | string)[] = [16, 16],
) =>
  modelFile(
    (graph) => {
      graph.input('image', 'float32', [1, 3, ...size]);
      graph.initializer('factors', floats('float32', [1, 3], factors));
      graph.initializer('shape', ids([2], [1, 3]));
      graph.node('GlobalAveragePool', { inputs: ['image'], outputs: ['pooled'] });
      graph.node('Reshape', { inputs: ['pooled', 'shape'], outputs: ['means'] });
      graph.node('Mul', { inputs: ['means', 'factors'], outputs: ['scores'] });
      graph.output('scores', 'float32', [1, 3]);
      if (outputs > 1) graph.output('means', 'float32', [1, 3]);
    },
    { metadata },
  );

/** The same, made length 1. */
export const unitMeans = () =>
  modelFile((graph) => {
    graph.input('image', 'float32', [1, 3, 16, 16]);
    graph.initializer('shape', ids([2], [1, 3]));
    graph.node('GlobalAveragePool', { inputs: ['image'], outputs: ['pooled'] });
    graph.node('Reshape', { inputs: ['pooled', 'shape'], outputs: ['means'] });
    graph.node('LpNormalization', {
      inputs: ['means'],
      outputs: ['unit'],
      attributes: { axis: attribute.int(1), p: attribute.int(2) },
    });
    graph.output('unit', 'float32', [1, 3]);
  });

/** Means of the channels behind a product that can be quantized, and one that is last. */
export const quantizableMeans = () =>
  modelFile((graph) => {
    graph.input('image', 'float32', [1, 3, 16, 16]);
    graph.initializer('shape', ids([2], [1, 3]));
    const unit = (rows: number, columns: number) =>
      Array.from({ length: rows * columns }, (_, cell) =>
        cell % columns === Math.floor(cell / columns) ? 1 : 0,
      );
    const sizes = [3, 32, 32, 3];
    graph.node('GlobalAveragePool', { name: 'pool', inputs: ['image'], outputs: ['pooled'] });
    graph.node('Reshape', { name: 'flat', inputs: ['pooled', 'shape'], outputs: ['means'] });
    for (const [index, name] of ['one', 'two', 'scores'].entries()) {
      const [rows, columns] = [sizes[index]!, sizes[index + 1]!];
      graph.initializer(`w${index}`, floats('float32', [rows, columns], unit(rows, columns)));
      graph.node('MatMul', { name, inputs: [['means', 'one', 'two'][index]!, `w${index}`], outputs: [name] });
    }
    graph.output('scores', 'float32', [1, 3]);
  });
