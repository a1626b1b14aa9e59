import { homedir } from 'node:os';
import { join } from 'node:path';

/** The folder that holds everything trtforge keeps between runs: `$XDG_CACHE_HOME/trtforge` or `~/.cache/trtforge`. */
export function cacheFolder(environment: NodeJS.ProcessEnv = process.env): string {
  return join(environment.XDG_CACHE_HOME || join(homedir(), '.cache'), 'trtforge');
}
