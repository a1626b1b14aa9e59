/** The number of video streams that a GPU serves with a model, using DeepStream's method; and what DeepStream needs to run its engine. */

import { atDoor } from '../../base/options/library-arguments.js';
import { contextOptions } from '../../base/options/option.js';
import { checkDeepstream as check } from './config/check.js';
import { writeDeepstreamConfig as writeConfig } from './config/write-config.js';
import { checkOptions, configOptions, streamsOptions } from './options.js';
import { planStreams as plan, streams as size } from './streams.js';

export type { WorkContext } from '../../events.js';
export type { KeyEntry } from './config/read-config.js';
export type { DeepstreamCheck } from './config/result.js';
export type { DeepstreamConfig } from './config/write-config.js';
export type { StreamsEffects } from './effects.js';
export type { CheckRequest, ConfigRequest, StreamsRequest } from './options.js';
export type { StreamsResult } from './result.js';
export { type StreamsSetup, streamsEffects } from './setup.js';
export type { StreamsPlan } from './streams.js';

export const checkDeepstream = atDoor(check, checkOptions, contextOptions);
export const writeDeepstreamConfig = atDoor(writeConfig, configOptions);
export const planStreams = atDoor(plan, streamsOptions);
export const streams = atDoor(size);
