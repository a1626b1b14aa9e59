import { z } from 'zod';
import { isRecord, type JsonRecord } from '../../base/text/lenient-json.js';

/** Where our own facts stand in the `metadata` of a line. */
export const OWN_KEY = 'x_trtforge';

/** Who made a reference, of what, how; kept in `metadata.x_trtforge` of the first line. */
export const provenanceSchema = z.object({
  tool: z.string(),
  version: z.string(),
  /** `ONNX Runtime 1.30.0 (CPU)` */
  backend: z.string(),
  model: z.object({ path: z.string(), digest: z.string(), kind: z.enum(['model', 'engine']) }),
  /** SHA-256 of the contract in canonical JSON; null without one. */
  contract: z.string().nullable(),
  seed: z.number().nullable(),
  /** Frames of the signal in the first chunk and in each later one. */
  schedule: z.array(z.number().int().positive()),
  batch: z.number().int().positive(),
  /** Type that the backend computes in: `float32`. */
  precision: z.string(),
  /** Whether float32 products may have been rounded to TF32; null when unknown. */
  tf32: z.boolean().nullable(),
  /** ISO 8601. */
  recordedAt: z.string(),
});
export type Provenance = z.infer<typeof provenanceSchema>;

/** The facts of a chunk under the names of NeMo's streaming encoder (`metadata` of a line). */
export const recordedAs = {
  chunkLength: 'chunk_len',
  outputShape: 'encoder_output_shape',
  resultLength: 'encoded_lengths_value',
  stateLength: 'cache_len_out_value',
  /** Before the recorder repaired it. */
  stateLengthRaw: 'cache_len_out_raw_value',
} as const;

/** The values recorded beside the tensors; null where they are not. */
export interface ChunkMeta {
  /** Line of the file, from 1. */
  readonly line: number;
  readonly chunkLength: number | null;
  readonly encodedLength: number | null;
  readonly stateLength: number | null;
  /** Before the recorder repaired it: another one where it did, negative where the model was wrong. */
  readonly stateLengthRaw: number | null;
  readonly stepMs: number | null;
  /** All of the recorded `metadata`, ours under `x_trtforge` excepted. */
  readonly recorded: Readonly<Record<string, unknown>>;
}

/** The facts of a chunk from the `metadata` of its line, and all of the metadata as it is. */
export function chunkMeta(metadata: JsonRecord, line: number): ChunkMeta {
  const { [OWN_KEY]: _, ...recorded } = metadata;
  const number = (value: unknown): number | null => (typeof value === 'number' ? value : null);
  const timing = recorded.timing_ms;
  return {
    line,
    chunkLength: number(recorded[recordedAs.chunkLength]),
    encodedLength: number(recorded[recordedAs.resultLength]),
    stateLength: number(recorded[recordedAs.stateLength]),
    stateLengthRaw: number(recorded[recordedAs.stateLengthRaw]),
    stepMs: isRecord(timing) ? number(timing.step) : null,
    recorded,
  };
}

/** Who made the reference; null where its first line has no provenance that trtforge wrote. */
export function provenanceIn(metadata: JsonRecord): Provenance | null {
  const own = metadata[OWN_KEY];
  if (!isRecord(own)) return null;
  const parsed = provenanceSchema.safeParse(own.provenance);
  return parsed.success ? parsed.data : null;
}
