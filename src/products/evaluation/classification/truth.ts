import { join } from 'node:path';
import { LARGEST_DOCUMENT, listFolder, readText } from '../../../base/files/files.js';
import { TrtforgeError } from '../../../errors.js';
import type { Findings } from '../findings.js';

/** An image and the number of its class. */
export interface Labelled {
  readonly id: string;
  readonly path: string;
  readonly label: number;
}

/** The images of a file of truth, a file name, a tab and a label a line; those that the folder lacks are findings. Throws TF_EVAL_DATA. */
export function labelledImages(
  {
    truth,
    imagesDir,
    maxImages,
  }: { readonly truth: string; readonly imagesDir: string; readonly maxImages?: number | undefined },
  names: readonly string[] | undefined,
  findings: Findings,
): readonly Labelled[] {
  const present = new Set(listFolder(imagesDir));
  const byName = new Map(names?.map((name, index) => [name, index]));
  const seen = new Set<string>();
  const reject = (line: number, why: string) =>
    new TrtforgeError('TF_EVAL_DATA', `Line ${line} of ${truth} ${why}.`, {
      remedy:
        'Write a file name, a tab and a label a line; a label is the number of a class, or a name with --labels.',
    });
  const images = readText(truth, LARGEST_DOCUMENT, 'TF_EVAL_DATA')
    .split(/\r?\n/)
    .flatMap((line, at): readonly Labelled[] => {
      if (line.trim() === '') return [];
      const [id = '', text, ...more] = line.split('\t');
      if (text === undefined || more.length > 0) throw reject(at + 1, 'does not have two columns');
      const label = byName.get(text) ?? (/^\d+$/.test(text) ? Number(text) : undefined);
      if (label === undefined) throw reject(at + 1, `has the label "${text}", which is not a class`);
      if (seen.has(id)) throw reject(at + 1, `has the image "${id}" a second time`);
      seen.add(id);
      if (present.has(id)) return [{ id, path: join(imagesDir, id), label }];
      findings.add('missing-file', `image ${id}`);
      return [];
    });
  findings.throwErrors(imagesDir);
  if (images.length === 0)
    throw new TrtforgeError('TF_EVAL_DATA', `${truth} names no image of ${imagesDir}.`);
  // Without a limit they stay in the order of the truth, which is part of what is compared.
  if (maxImages === undefined) return images;
  return images.sort((a, b) => (a.id < b.id ? -1 : 1)).slice(0, maxImages);
}
