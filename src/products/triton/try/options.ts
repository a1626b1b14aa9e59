import * as is from '../../../base/options/kinds.js';
import { needed, type OptionsOf, optional } from '../../../base/options/option.js';

export const tryOptions = {
  repository: needed(is.text),
  /** Of a server that is up; default: one is started here. */
  url: optional(is.text, {
    flags: '--url <address>',
    describe: 'of a server that serves the repository, over HTTP (default: one is started here and ended)',
    trust: true,
  }),
};

export interface TritonTryRequest extends OptionsOf<typeof tryOptions> {}
