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

export interface PutOptions {
  readonly metadata?: Readonly<Record<string, string>>;
  readonly contentType?: string;
  /** `absent`: only when nothing has this key; an etag: only over that very object. Throws TF_REMOTE_CONFLICT otherwise, where the server keeps conditions. */
  readonly only?: 'absent' | { readonly etag: string };
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
  put(key: string, body: Uint8Array, options?: PutOptions, signal?: AbortSignal): Promise<string>;
  /** Every object whose key starts with `prefix`, in the server's order. */
  list(prefix: string, signal?: AbortSignal): AsyncIterable<ListedObject>;
  remove(keys: readonly string[], signal?: AbortSignal): Promise<void>;
  /** A large object from parts that `part` gives; visible only when complete. Parts are numbered from 1. */
  startParts(key: string, options: PutOptions, signal?: AbortSignal): Promise<PartedUpload>;
  close(): void;
}

export interface PartedUpload {
  put(part: number, body: Uint8Array, signal?: AbortSignal): Promise<void>;
  complete(signal?: AbortSignal): Promise<void>;
  /** Gives the server its space back; never throws. */
  abort(): Promise<void>;
}
