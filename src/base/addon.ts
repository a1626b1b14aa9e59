import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { TrtforgeError } from '../errors.js';
import { shellQuote } from './process/shell-quote.js';

/**
 * The addon's file, for every room that calls something of it: comparisons in `formats`, and `tensorrt/addon`, which types all that concerns TensorRT.
 * Rooms of one layer do not import each other, so what both need is here.
 */

/** Where the compiled addon (`native/`) is; the same from `src/` and from `dist/`. */
export const addonPath: string = fileURLToPath(new URL('../../build/trtforge.node', import.meta.url));

/** The command that compiles it, from any folder: in a clone as where the package is installed. */
export const compileAddon = `node ${shellQuote(fileURLToPath(new URL('../../scripts/build-native.mjs', import.meta.url)))}`;

const REMEDY = `Run: ${compileAddon} (it needs g++).`;

/** What a compiled addon exports. Errors: TF_NATIVE_UNSUPPORTED off Linux, TF_NATIVE_NOT_BUILT where the file is missing or does not load. */
export function requireAddon(path: string = addonPath): unknown {
  if (process.platform !== 'linux') {
    throw new TrtforgeError(
      'TF_NATIVE_UNSUPPORTED',
      `trtforge's addon runs on Linux only, and this is ${process.platform}.`,
    );
  }
  if (!existsSync(path)) {
    throw new TrtforgeError('TF_NATIVE_NOT_BUILT', `trtforge's addon is not compiled: ${path} is missing.`, {
      remedy: REMEDY,
    });
  }
  try {
    return createRequire(import.meta.url)(path);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new TrtforgeError('TF_NATIVE_NOT_BUILT', `trtforge's addon does not load: ${why}`, {
      remedy: REMEDY,
      cause,
    });
  }
}
