/** The number of video streams that a GPU serves with a model, using DeepStream's method; and what DeepStream needs to run its engine. */

export type { WorkContext } from '../../events.js';
export { type CheckRequest, checkDeepstream } from './config/check.js';
export type { DeepstreamCheck } from './config/check-result.js';
export type { KeyEntry } from './config/key-file.js';
export { type ConfigRequest, type DeepstreamConfig, writeDeepstreamConfig } from './config/write-config.js';
export { type FromLogsRequest, streamsFromLogs } from './repair.js';
export type { StreamsResult } from './result.js';
export { type StreamsSetup, streamsEffects } from './setup.js';
export {
  planStreams,
  type StreamsEffects,
  type StreamsPlan,
  type StreamsRequest,
  streams,
} from './streams.js';
