import { dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { openFile } from '../../base/files/byte-source.js';
import { sha256, sha256InPieces } from '../../base/files/digest.js';
import { FileMemo, stampOf } from '../../base/files/file-memo.js';
import type { Component } from './component.js';
import type { ComponentReport } from './result.js';

export interface ModelFiles {
  readonly onnxSha256: string;
  readonly onnxBytes: number;
  readonly external: ComponentReport['external_data'];
}

/** Goes up when the digests are worked out another way. */
const MEMO = 'bundle-files-3';

/** SHA-256 of a component's files as they lie on disk, in constant memory; remembered while none of them changes. */
export async function digestFiles(
  { onnx, externalFiles }: Component,
  cacheFolder: string,
): Promise<ModelFiles> {
  const memo = new FileMemo<ModelFiles>(join(cacheFolder, MEMO), isModelFiles);
  const known = memo.recall(onnx);
  if (known !== undefined) return known;
  const paths = externalFiles.map((file) => join(dirname(onnx), file));
  const stamps = [onnx, ...paths].flatMap((path) => stampOf(path) ?? []);
  const lines: string[] = [];
  let bytes = 0;
  for (const [index, path] of paths.entries()) {
    const file = await digestFile(path);
    bytes += file.bytes;
    lines.push(`${file.sha256}  ${externalFiles[index]}\n`);
    await setImmediate();
  }
  const own = await digestFile(onnx);
  const value: ModelFiles = {
    onnxSha256: own.sha256,
    onnxBytes: own.bytes,
    external: paths.length === 0 ? null : { files: paths.length, bytes, sha256: sha256(lines.join('')) },
  };
  memo.remember(onnx, stamps, value);
  return value;
}

async function digestFile(path: string): Promise<{ readonly sha256: string; readonly bytes: number }> {
  const source = openFile(path);
  try {
    return { sha256: await sha256InPieces(source), bytes: source.size };
  } finally {
    source.close();
  }
}

function isModelFiles(value: unknown): value is ModelFiles {
  if (typeof value !== 'object' || value === null) return false;
  const { onnxSha256, onnxBytes, external } = value as Partial<ModelFiles>;
  if (typeof onnxSha256 !== 'string' || typeof onnxBytes !== 'number') return false;
  return external === null || typeof external?.sha256 === 'string';
}
