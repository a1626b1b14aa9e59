import type { EventListener } from '../../events.js';
import * as is from './kinds.js';
import { optional } from './option.js';

/** The event receiver, abort signal and environment of long work; the default is the environment of this process. */
export const contextOptions = {
  emit: optional(is.callback<EventListener>()),
  signal: optional(is.signal),
  environment: optional(is.object<NodeJS.ProcessEnv>()),
};
