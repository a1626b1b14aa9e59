import type { EventListener } from '../../events.js';
import * as is from './kinds.js';
import { optional } from './option.js';

/** What long work reports to, what stops it, and where it runs: by default in the environment of this process. */
export const contextOptions = {
  emit: optional(is.callback<EventListener>()),
  signal: optional(is.signal),
  environment: optional(is.object<NodeJS.ProcessEnv>()),
};
