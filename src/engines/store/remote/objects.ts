/** Facts of an object, from a HEAD request. */
export interface ObjectFacts {
  readonly key: string;
  readonly bytes: number;
  /** Opaque; changes when the object does. */
  readonly etag: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Index entries, passports and signatures have a few KiB. */
export const LARGEST_SMALL_OBJECT = 16 << 20;

export interface ListedObject {
  readonly key: string;
  readonly bytes: number;
  readonly modified: Date;
}

/** One range of bytes, both ends inclusive as in HTTP. */
export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

/**
 * Objects by key in one bucket. Every method throws TF_REMOTE_* (see `failure.ts`) and retries what may pass, with jitter.
 * S3 implements it; a map in memory can.
 */
export interface Objects {
  /** For people: the address, without credentials. */
  readonly place: string;
  /** Undefined when there is no such object. */
  head(key: string, signal?: AbortSignal): Promise<ObjectFacts | undefined>;
  /** A small object whole; undefined when there is none. Throws TF_REMOTE_DAMAGED for one of more than `LARGEST_SMALL_OBJECT` bytes. */
  read(
    key: string,
    signal?: AbortSignal,
  ): Promise<{ readonly body: Buffer; readonly etag: string } | undefined>;
  /** One range as it arrives, of the very object `etag` names. Not retried: the caller knows what it has. */
  stream(
    key: string,
    range: ByteRange,
    etag: string,
    signal?: AbortSignal,
  ): Promise<AsyncIterable<Uint8Array>>;
  put(
    key: string,
    body: Uint8Array,
    options?: {
      readonly metadata?: Readonly<Record<string, string>>;
      readonly contentType?: string;
      /** `absent`: only when nothing has this key; an etag: only over that very object. Throws TF_REMOTE_CONFLICT otherwise, where the server keeps conditions. */
      readonly only?: 'absent' | { readonly etag: string };
    },
    signal?: AbortSignal,
  ): Promise<string>;
  /** Every object whose key starts with `prefix`, in the server's order. */
  list(prefix: string, signal?: AbortSignal): AsyncIterable<ListedObject>;
  remove(keys: readonly string[], signal?: AbortSignal): Promise<void>;
  /** A large object from parts that `part` gives; visible only when complete. Parts are numbered from 1. */
  startParts(
    key: string,
    options: Omit<NonNullable<Parameters<Objects['put']>[2]>, 'only'>,
    signal?: AbortSignal,
  ): Promise<PartedUpload>;
  close(): void;
}

export interface PartedUpload {
  put(part: number, body: Uint8Array, signal?: AbortSignal): Promise<void>;
  complete(signal?: AbortSignal): Promise<void>;
  /** Gives the server its space back; never throws. */
  abort(): Promise<void>;
}

/**
 * Does `work` for every item, `width` at a time, and returns what it gives, in the items' order. The first failure stops the others through their signal, is waited for, and thrown.
 */
export async function inParallel<T, R>(
  items: readonly T[],
  width: number,
  signal: AbortSignal | undefined,
  work: (item: T, index: number, stop: AbortSignal) => Promise<R>,
): Promise<R[]> {
  const stopping = new AbortController();
  const stop = signal === undefined ? stopping.signal : AbortSignal.any([signal, stopping.signal]);
  const results: R[] = [];
  let failure: { readonly error: unknown } | undefined;
  const next = items.entries();
  const worker = async () => {
    for (const [index, item] of next) {
      if (failure !== undefined) return;
      try {
        results[index] = await work(item, index, stop);
      } catch (error) {
        failure ??= { error };
        stopping.abort();
        return;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, worker));
  if (failure !== undefined) throw failure.error;
  return results;
}
