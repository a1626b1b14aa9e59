import { join } from 'node:path';
import { cacheFolder } from '../../base/files/folders.js';

/** Where trtforge keeps the toolchains it installed: `$TRTFORGE_TOOLCHAINS` or `toolchains` in its cache folder. */
export function toolchainsFolder(environment: NodeJS.ProcessEnv = process.env): string {
  return environment.TRTFORGE_TOOLCHAINS || join(cacheFolder(environment), 'toolchains');
}

/** Stands in every folder that an installation finished; a folder without it is not believed. */
export const MANIFEST_NAME = 'toolchain.json';
