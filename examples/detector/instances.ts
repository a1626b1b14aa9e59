import { type Scene, SIDE } from './scene.js';
import { CLASS_NAMES } from './shapes.js';

interface Annotation {
  readonly id: number;
  readonly image_id: number;
  readonly category_id: number;
  readonly bbox: readonly [number, number, number, number];
  readonly area: number;
  readonly iscrowd: 0 | 1;
}

/** File name of the image of a scene. */
export const imageName = (index: number): string => `${String(index).padStart(6, '0')}.png`;

/** Collects scenes as COCO's instances.json has them: ids from 1, areas in visible pixels. */
export class Instances {
  readonly #images: { id: number; file_name: string; width: number; height: number }[] = [];
  readonly #annotations: Annotation[] = [];

  add(index: number, { objects }: Scene): void {
    const image = index + 1;
    this.#images.push({ id: image, file_name: imageName(index), width: SIDE, height: SIDE });
    for (const { category, crowd, box, area } of objects)
      this.#annotations.push({
        id: this.#annotations.length + 1,
        image_id: image,
        category_id: category + 1,
        bbox: box,
        area,
        iscrowd: crowd ? 1 : 0,
      });
  }

  /** The document; `description` tells how to make it again. */
  document(description: string) {
    return {
      info: { description, licence: 'Apache-2.0' },
      images: this.#images,
      annotations: this.#annotations,
      categories: CLASS_NAMES.map((name, index) => ({ id: index + 1, name })),
    };
  }
}
