import { throwIfCancelled } from '../../src/base/process/cancel.js';
import {
  beginReference,
  type Provenance,
  type ReferenceChunk,
  type WritableChunk,
  type WrittenReference,
} from '../../src/formats/reference/reference.js';

/**
 * Writes a whole reference, chunk by chunk in constant memory: what `openReference` reads, or chunks made on the way. Throws
 * TF_USAGE, TF_WRITE_FAILED, TF_CANCELLED, and what the chunks throw; nothing half-written stays.
 */
export async function writeReference(
  path: string,
  chunks: AsyncIterable<WritableChunk | ReferenceChunk> | Iterable<WritableChunk | ReferenceChunk>,
  options: { readonly provenance?: Provenance | null; readonly signal?: AbortSignal } = {},
): Promise<WrittenReference> {
  const writer = beginReference(path, options.provenance ?? null);
  try {
    for await (const chunk of chunks) {
      throwIfCancelled(options.signal, `writing ${path}`);
      writer.write('meta' in chunk ? { ...chunk, metadata: chunk.meta.recorded } : chunk);
    }
    return writer.finish();
  } catch (error) {
    writer.discard();
    throw error;
  }
}
