import { join } from 'node:path';
import { FileMemo } from '../../base/files/file-memo.js';
import { cacheFolder } from '../../base/files/folders.js';
import { noteInput } from '../../base/files/user-files.js';
import { inPhase, type WorkContext } from '../../events.js';
import type { ModelContent } from './model-digest.js';

/** Goes up when the digest is worked out another way, and with more content. */
const MEMO = 'models-4';

/**
 * Reads what a build must know of a model. The first time this streams every weight once (SHA-256, about 2 GB/s); while neither the model file nor an
 * external file changes, later calls cost a few `stat`s. Errors: as `openModel` and `digestModel`.
 */
export async function readModelContent(path: string, work: WorkContext): Promise<ModelContent> {
  const memo = new FileMemo<ModelContent>(join(cacheFolder(work.environment), MEMO), isModelContent);
  const known = memo.recall(path, { onFile: noteInput });
  if (known !== undefined) return known;
  // Loaded only now: protobuf takes longer to load than a remembered model to be found.
  const { readModel } = await import('./model-digest.js');
  const { content, stamps } = await inPhase('identify', work.emit, () => readModel(path, work), path);
  memo.remember(path, stamps, content);
  return content;
}

function isModelContent(value: unknown): value is ModelContent {
  if (typeof value !== 'object' || value === null) return false;
  const content = value as Partial<ModelContent>;
  return (
    typeof content.digest === 'string' &&
    typeof content.bytes === 'number' &&
    typeof content.weightBytes === 'number' &&
    Array.isArray(content.inputs) &&
    Array.isArray(content.outputs) &&
    Array.isArray(content.precisions) &&
    typeof content.operators === 'object'
  );
}
