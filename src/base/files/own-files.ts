import { TrtforgeError } from '../../errors.js';

/**
 * Throws TF_BUNDLED where a bundler has put this module into another program's file: the addresses of trtforge's own files lead to others then, which must not run.
 */
export function assertUnbundled(what: string): void {
  if (/\/base\/files\/own-files\.[jt]s$/.test(import.meta.url)) return;
  throw new TrtforgeError(
    'TF_BUNDLED',
    `trtforge is bundled into ${import.meta.url}, and ${what} needs files of trtforge's own folder.`,
  );
}
