import type { z } from 'zod';
import type { measurementRecordSchema, streamsResultSchema } from './schema.js';

export interface StreamsResult extends z.infer<typeof streamsResultSchema> {}
/** A result before it is written: where that was and what was printed come last. */
export type StreamsBody = Omit<StreamsResult, 'summary' | 'data'>;
export type StreamsMeasurement = NonNullable<StreamsResult['baseline']>;
export type StreamsEngineResult = StreamsResult['engines'][number];
export type StreamsSensitivity = NonNullable<StreamsResult['sensitivity']>[number];
export type MeasurementRecord = z.infer<typeof measurementRecordSchema>;

/** The work left out of every sizing, whatever was measured. */
export const upperBoundWarning =
  'PEAK_GPU_STREAMS is an upper bound of inference alone: decoding, scaling, muxing, tracking and drawing are not in it. A pipeline reaches 60 to 90 % of it, and often the decoder (NVDEC) is the limit.';
