import type { EventListener } from '../../events.js';
import * as is from './kinds.js';
import { optional } from './option.js';

/** What long work reports to, and what stops it. */
export const workOptions = { emit: optional(is.callback<EventListener>()), signal: optional(is.signal) };

/** And where it runs: by default in the environment of this process. */
export const contextOptions = { ...workOptions, environment: optional(is.object<NodeJS.ProcessEnv>()) };
