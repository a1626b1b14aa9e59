import { constants, copyFileSync, linkSync, realpathSync, symlinkSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { removeIfThere } from '../../base/files/files.js';
import { makeFolder } from '../../base/files/folders.js';
import { writeFailed } from '../../base/files/publish.js';
import { systemErrorCode } from '../../errors.js';
import type { Component } from './component.js';

export type StagingMethod = 'hard link' | 'symbolic link' | 'copy';

export interface Staged {
  /** The model in its clean folder. */
  readonly onnx: string;
  readonly method: StagingMethod;
  readonly files: number;
}

type PlaceFile = (source: string, target: string) => void;

/** Cheapest first. A copy shares its blocks where the file system can. */
export const stagingMethods: readonly (readonly [StagingMethod, PlaceFile])[] = [
  ['hard link', linkSync],
  ['symbolic link', (source, target) => symlinkSync(source, target)],
  [
    'copy',
    (source, target) => copyFileSync(source, target, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE),
  ],
];

/** Errors of a file system that cannot link: other device, not allowed, too many links, not supported. */
const CANNOT_LINK = new Set([
  'EXDEV',
  'EPERM',
  'EACCES',
  'EMLINK',
  'ENOTSUP',
  'EOPNOTSUPP',
  'ENOSYS',
  'EINVAL',
]);

/**
 * Puts a component's model and every external file it refers to into `folder`, under the paths that the model has for them, by links where the file system allows them.
 * One method for all files of a model: a reader that guards against links which leave the folder must find them together. Throws TF_WRITE_FAILED.
 */
export function stageComponent(
  { name, onnx, externalFiles }: Component,
  folder: string,
  tools = stagingMethods,
): Staged {
  const root = join(folder, name);
  const files = [`${name}.onnx`, ...externalFiles];
  const source = (file: string, index: number) =>
    realpathSync(index === 0 ? onnx : resolve(dirname(onnx), file));
  for (const [method, place] of tools) {
    removeIfThere(root);
    try {
      for (const [index, file] of files.entries()) {
        const target = join(root, relative('.', file));
        makeFolder(dirname(target));
        place(source(file, index), target);
      }
      return { onnx: join(root, `${name}.onnx`), method, files: files.length };
    } catch (cause) {
      const isLast = method === tools.at(-1)?.[0];
      if (isLast || !CANNOT_LINK.has(systemErrorCode(cause) ?? '')) throw writeFailed(root, cause);
    }
  }
  throw writeFailed(root, new Error('there is no way to stage a file'));
}
