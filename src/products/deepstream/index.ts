/** The number of video streams that a GPU serves with a model, using DeepStream's method; and what DeepStream needs to run its engine. */

import { atDoor } from '../../base/options/library-words.js';
import { checkDeepstream as check } from './config/check.js';
import { writeDeepstreamConfig as writeConfig } from './config/write-config.js';
import { planStreams as plan, streams as size } from './streams.js';

export type { WorkContext } from '../../events.js';
export type { CheckRequest } from './config/check.js';
export type { DeepstreamCheck } from './config/check-result.js';
export type { KeyEntry } from './config/key-file.js';
export type { ConfigRequest, DeepstreamConfig } from './config/write-config.js';
export type { StreamsResult } from './result.js';
export { type StreamsSetup, streamsEffects } from './setup.js';
export type { StreamsEffects, StreamsPlan, StreamsRequest } from './streams.js';

const OF_STREAMS =
  'name names.name, dim input.dims, input input.input, height input.height, width input.width';
export const checkDeepstream = atDoor(check);
export const writeDeepstreamConfig = atDoor(writeConfig);
export const planStreams = atDoor(plan, OF_STREAMS);
export const streams = atDoor(size, OF_STREAMS);
