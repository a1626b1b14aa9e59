/** How many video streams a GPU serves with a model, using DeepStream's method. */

export { type FromLogsRequest, streamsFromLogs } from './repair.js';
export type { StreamsResult } from './result.js';
export { type SetupContext, type StreamsSetup, streamsEffects } from './setup.js';
export {
  planStreams,
  type StreamsEffects,
  type StreamsPlan,
  type StreamsRequest,
  streams,
} from './streams.js';
