import { z } from 'zod';
import { recordedAs } from '../fastconformer.js';
import { isRecord, type PlainRecord } from './lines.js';
import type { ChunkMeta, Provenance } from './reference.js';

/** Where our own facts stand in the `metadata` of a line. */
export const OWN_KEY = 'x_trtforge';

/** Who made a reference; kept in `metadata.x_trtforge` of the first line, or in `reference.json`. */
export const provenanceSchema = z.object({
  tool: z.string(),
  version: z.string(),
  backend: z.string(),
  model: z.object({ path: z.string(), digest: z.string(), kind: z.enum(['model', 'engine']) }),
  contract: z.string().nullable(),
  seed: z.number().nullable(),
  schedule: z.array(z.number().int().positive()),
  batch: z.number().int().positive(),
  precision: z.string(),
  tf32: z.boolean().nullable(),
  recordedAt: z.string(),
});

/** The facts of a chunk from the `metadata` of its line, and all of the metadata as it is. */
export function chunkMeta(metadata: PlainRecord, line: number): ChunkMeta {
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
export function provenanceIn(metadata: PlainRecord): Provenance | null {
  const own = metadata[OWN_KEY];
  if (!isRecord(own)) return null;
  const parsed = provenanceSchema.safeParse(own.provenance);
  return parsed.success ? parsed.data : null;
}
