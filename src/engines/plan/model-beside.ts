import { basename, dirname, join } from 'node:path';
import { closing, openFile } from '../../base/files/byte-source.js';
import { namesIn, statIfThere } from '../../base/files/files.js';
import { cacheFolder } from '../../base/files/folders.js';
import { TrtforgeError } from '../../errors.js';
import { ignoreEvents, type WorkContext } from '../../events.js';
import { readModelContent } from '../identity/model-content.js';
import type { Passport } from '../identity/passport.js';
import { wrappedPlanIn } from './context-model.js';

/**
 * That an engine was built from another model than the ONNX file that belongs to it, in one sentence; null where it was built from it, and where no file or no digest
 * decides. The file is the one that is `named`, else the one beside the engine that has the name of its model or its own. Throws TF_CANCELLED.
 */
export async function changedModel(
  engine: string,
  { model, identity }: Pick<Passport, 'model' | 'identity'>,
  context: WorkContext = {},
  named?: string,
): Promise<string | null> {
  const { emit = ignoreEvents, signal, environment } = context;
  const file = named ?? besides(engine, model.name).find((path) => statIfThere(path)?.isFile() === true);
  if (file === undefined) return null;
  try {
    if (closing(openFile(file), wrappedPlanIn) !== null) return null;
    const reading = { emit, signal, cacheFolder: cacheFolder(environment) };
    const { digest } = await readModelContent(file, reading);
    const built = identity.document.model;
    if (digest === built) return null;
    return `${basename(engine)} was built from the model ${built.slice(0, 12)} (${model.name}), and ${file} is ${digest.slice(0, 12)}.`;
  } catch (error) {
    // An unreadable file proves nothing; the caller that needs the model reports it.
    if (error instanceof TrtforgeError && error.code !== 'TF_CANCELLED') return null;
    throw error;
  }
}

/** `det.onnx` beside `det.engine`, `det_ctx.onnx`, and `det.onnx_b4_gpu0_fp16.engine` as DeepStream names it. */
const besides = (engine: string, model: string): readonly string[] =>
  [basename(model), basename(engine).replace(/(\.onnx_b\d.*|_ctx)?\.[^.]+$/, '')].map((name) =>
    join(dirname(engine), `${name}.onnx`),
  );

/** The ONNX files of a plan's folder that wrap it for ONNX Runtime. */
export function wrappersOf(plan: string): readonly string[] {
  const folder = dirname(plan);
  return namesIn(folder).filter((name) => {
    if (!name.endsWith('.onnx')) return false;
    try {
      const wrapped = closing(openFile(join(folder, name)), wrappedPlanIn);
      return wrapped?.kind === 'file' && wrapped.path === plan;
    } catch (error) {
      if (error instanceof TrtforgeError) return false;
      throw error;
    }
  });
}
