import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { cacheFolder } from '../../base/files/folders.js';
import { publishFile } from '../../base/files/publish.js';
import { catalogue } from '../../errors.js';
import type { EventListener } from '../../events.js';
import type { Verb } from '../command.js';

/** The groups whose verbs run models, or lead to one that does. */
const GROUPS: readonly Verb['group'][] = ['Engines', 'Quality', 'Products'];

/**
 * Reports once for a user that ONNX Runtime is not installed, and what installs it: npm leaves an optional package out without a word where it does not
 * install. The mark is a file in the cache folder; where it cannot be written, the next command reports it too.
 */
export async function noticeMissingOnnxRuntime(
  { group }: Pick<Verb, 'group'>,
  environment: NodeJS.ProcessEnv,
  emit: EventListener,
): Promise<void> {
  const mark = join(cacheFolder(environment), 'onnxruntime-notice');
  if (!GROUPS.includes(group) || hasPackage() || existsSync(mark)) return;
  const [{ findOrtLibraries }, { thisMachine }] = await Promise.all([
    import('../../engines/runtime/onnxruntime/find-library.js'),
    import('../../tensorrt/toolchain/find.js'),
  ]);
  if (findOrtLibraries(thisMachine(environment)).length > 0) return;
  const { remedy } = catalogue.TF_ONNXRUNTIME_MISSING;
  const message = `ONNX Runtime is not installed, which run, verify, forge and calibration need for models. ${remedy}`;
  emit({ type: 'log', source: 'trtforge', severity: 'warning', message });
  try {
    publishFile(mark, '');
  } catch {
    // As with progress that nobody can read.
  }
}

function hasPackage(): boolean {
  try {
    createRequire(import.meta.url).resolve('onnxruntime-node/package.json');
    return true;
  } catch {
    return false;
  }
}
