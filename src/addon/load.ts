import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { assertUnbundled } from '../base/files/own-files.js';
import { shellQuote } from '../base/process/shell-quote.js';
import { processorOf } from '../behaviour/facts.js';
import { TrtforgeError } from '../errors.js';
import { packageVersion } from '../version.js';

/** The package with the prebuilt addon for this platform, an optional dependency; null where there is none. */
const prebuiltPackage =
  process.platform === 'linux' && processorOf(process.arch) !== undefined
    ? `@trtforge/linux-${process.arch}`
    : null;

/** Where scripts/build-native.mjs puts the addon; the same from `src/` and from `dist/`. */
const compiledPath = fileURLToPath(new URL('../../build/trtforge.node', import.meta.url));

/** The addon: what was compiled here, else the prebuilt one. */
export const addonPath: string = existsSync(compiledPath) ? compiledPath : (prebuiltPath() ?? compiledPath);

function prebuiltPath(): string | undefined {
  if (prebuiltPackage === null) return undefined;
  try {
    return createRequire(import.meta.url).resolve(`${prebuiltPackage}/trtforge.node`);
  } catch {
    return undefined;
  }
}

/** The command that compiles it, from any folder: in a clone as where the package is installed. */
const compileAddon = `node ${shellQuote(fileURLToPath(new URL('../../scripts/build-native.mjs', import.meta.url)))}`;

/** The command that installs the addon on this platform. */
export const addonRemedy = (): string =>
  prebuiltPackage === null
    ? `Compile it (it needs g++): ${compileAddon}`
    : `Install it beside trtforge: npm install ${prebuiltPackage}@${packageVersion()}; or compile it (it needs g++): ${compileAddon}`;

/** Returns the addon's exports. Errors: TF_NATIVE_UNSUPPORTED off Linux, TF_NATIVE_NOT_BUILT where the file is missing or does not load. */
export function requireAddon(path: string = addonPath): unknown {
  if (process.platform !== 'linux') {
    throw new TrtforgeError(
      'TF_NATIVE_UNSUPPORTED',
      `trtforge's addon runs on Linux only, and this is ${process.platform}.`,
    );
  }
  if (path === compiledPath) assertUnbundled('the addon');
  if (!existsSync(path)) {
    throw new TrtforgeError('TF_NATIVE_NOT_BUILT', `trtforge's addon is not installed: ${path} is missing.`, {
      remedy: addonRemedy(),
    });
  }
  try {
    return createRequire(import.meta.url)(path);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new TrtforgeError('TF_NATIVE_NOT_BUILT', `trtforge's addon does not load: ${why}`, {
      remedy: addonRemedy(),
      cause,
    });
  }
}

/** The addon's export of this name; undefined where there is no addon, or one without it. Nothing is compiled for it. */
export function optionalExport<T>(name: string): T | undefined {
  try {
    return (requireAddon() as Readonly<Record<string, T>>)[name];
  } catch (error) {
    if (error instanceof TrtforgeError) return undefined;
    throw error;
  }
}
