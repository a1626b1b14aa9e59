/**
 * Child of the `images` case: node read-images.js DIST FOLDER decodes and prepares every image of the folder, one after another, as `eval detector` does.
 * DIST is the folder of the compiled sources.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

interface ImageModule {
  readImage(path: string): Promise<object>;
}
interface PreprocessModule {
  readonly preprocessings: Readonly<Record<string, object>>;
  preprocess(image: object, how: object): { readonly tensor: { readonly bytes: Uint8Array } };
}

const [dist = '', folder = ''] = process.argv.slice(2);
const load = async <T>(path: string): Promise<T> => (await import(pathToFileURL(join(dist, path)).href)) as T;
const { readImage } = await load<ImageModule>('formats/images/image.js');
const { preprocess, preprocessings } = await load<PreprocessModule>('formats/images/preprocess.js');
for (const name of readdirSync(folder)) {
  const { tensor } = preprocess(await readImage(join(folder, name)), preprocessings.yolo!);
  if (tensor.bytes.length !== 3 * 640 * 640 * 4)
    throw new Error(`${name} became ${tensor.bytes.length} bytes`);
}
