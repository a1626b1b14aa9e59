import { existsSync, renameSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { listFolder, readText, removeIfThere, statIfThere } from '../../../base/files/files.js';
import { makeFolder, pathBelow } from '../../../base/files/folders.js';
import { besidePath, moveInto, syncFolder, writeFailed } from '../../../base/files/publish.js';
import { type ExportedFile, writeExport } from '../../../engines/exports/exporter.js';
import type { StoredEngine } from '../../../engines/store/store.js';
import type { Trust } from '../../../engines/store/trust.js';
import { tritonExporter } from './exporter.js';
import { refused, type ServedModel } from './served-model.js';

/** The version that an export without one is: after those that are there. */
export function nextVersion(repository: string, name: string): number {
  const versions = listFolder(join(repository, name)).filter((entry) => /^[1-9]\d*$/.test(entry));
  return Math.max(0, ...versions.map(Number)) + 1;
}

/**
 * Writes models into a repository that a server may be polling: everything is prepared beside it, on the same file system. A new model appears by one rename; of
 * one that is there the version comes first, then what the configuration names, and the configuration last. Returns the files, relative to the repository.
 * Throws TF_WRITE_FAILED, TF_SERVING_REFUSED, what copying the engines throws.
 */
export async function publishModels(
  models: readonly ServedModel[],
  repository: string,
  { trust, force, engines }: { trust: Trust; force: boolean; engines: readonly StoredEngine[] },
): Promise<readonly ExportedFile[]> {
  for (const model of models) rejectReplacing(model, repository, force);
  const pending = besidePath(resolve(repository));
  try {
    const files = await writeExport(
      tritonExporter(() => models),
      engines,
      pending,
      { trust },
    );
    makeFolder(repository);
    for (const model of models) publishModel(model, pending, repository, files);
    return files;
  } catch (cause) {
    throw writeFailed(repository, cause);
  } finally {
    removeIfThere(pending);
  }
}

function publishModel(
  { name, version }: ServedModel,
  pending: string,
  repository: string,
  files: readonly ExportedFile[],
): void {
  const target = pathBelow(repository, name);
  if (!existsSync(target)) renameSync(join(pending, name), target);
  else {
    const place = pathBelow(repository, name, String(version));
    if (existsSync(place)) renameSync(place, join(pending, `${name}.${version}.replaced`));
    renameSync(join(pending, name, String(version)), place);
    for (const { path } of files) {
      if (!path.startsWith(`${name}/`) || path.startsWith(`${name}/${version}/`)) continue;
      makeFolder(dirname(join(repository, path)));
      moveInto(join(pending, path), join(repository, path));
    }
  }
  syncFolder(repository);
}

/** A model of somebody else's, and a version that may be loaded, are replaced by --force alone. */
function rejectReplacing({ name, version }: ServedModel, repository: string, force: boolean): void {
  if (force) return;
  if (existsSync(pathBelow(repository, name, String(version))))
    throw refused(
      `${join(repository, name)} has version ${version} already.`,
      'Leave --version out, which writes the next version, or pass --force to replace it.',
    );
  const config = join(repository, name, 'config.pbtxt');
  if (
    statIfThere(config) !== undefined &&
    !readText(config, 4 << 20, 'TF_SERVING_CONFIG').includes('trtforge.identity.')
  )
    throw refused(
      `${config} was not written by trtforge.`,
      'Choose another --name, or pass --force to replace it.',
    );
}
