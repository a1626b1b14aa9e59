import { pipeline, type Readable, Transform } from 'node:stream';
import type { S3Client, UploadPartCommand } from '@aws-sdk/client-s3';
import { throwIfCancelled } from '../../../base/process/cancel.js';
import { TrtforgeError } from '../../../errors.js';
import { formatAddress, type RemoteAddress } from './address.js';
import { remoteFailure } from './failure.js';
import {
  type ByteRange,
  LARGEST_SMALL_OBJECT,
  type ListedObject,
  type ObjectFacts,
  type Objects,
  type PartedUpload,
} from './objects.js';

/** A server that does not accept a connection within this is down: a build must not wait for it. */
const CONNECT_MS = 2_000;
/**
 * A request without a byte for `silenceMs` ends. What is gathered in memory ends within `answerMs` (a byte now and then is no silence), and what its
 * request's own body takes on a slow line; a list within this many pages of 1000 keys.
 */
const LIMITS = { silenceMs: 15_000, answerMs: 60_000, pages: 2000 };
const SLOWEST_BYTES_PER_MS = 16;
const ATTEMPTS = 3;
const SOCKETS = 32;

type Sdk = typeof import('@aws-sdk/client-s3');

/**
 * Objects of an S3 bucket, through the AWS SDK, which is loaded only here. Checksum trailers stay off: some servers reject them and some
 * store them as content; engines carry their own SHA-256.
 */
export async function openS3(address: RemoteAddress, given: Partial<typeof LIMITS> = {}): Promise<Objects> {
  const limits = { ...LIMITS, ...given };
  // Its advice on Node versions is for us, not for users.
  process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true';
  const sdk = await import('@aws-sdk/client-s3');
  const { endpoint, region, credentials } = address;
  const client = new sdk.S3Client({
    ...(endpoint === null ? {} : { endpoint, forcePathStyle: true }),
    // A server of one's own has no regions but signs with one; AWS' own chain decides elsewhere.
    ...(region === null ? (endpoint === null ? {} : { region: 'us-east-1' }) : { region }),
    ...(credentials === null
      ? {}
      : { credentials: { accessKeyId: credentials.accessKey, secretAccessKey: credentials.secretKey } }),
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    maxAttempts: ATTEMPTS,
    retryMode: 'standard',
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      socketTimeout: limits.silenceMs,
      httpAgent: { keepAlive: true, maxSockets: SOCKETS },
      httpsAgent: { keepAlive: true, maxSockets: SOCKETS },
    },
  });
  boundAnswers(client.config.requestHandler, limits.answerMs);
  return new S3Objects(sdk, client, address.bucket, formatAddress(address), limits.pages);
}

/** Lists, small objects, answers to writes and errors are gathered in memory; ranges of engines are not, and their reader counts. */
function boundAnswers(handler: S3Client['config']['requestHandler'], answerMs: number): void {
  const handle = handler.handle.bind(handler);
  handler.handle = async (request, options) => {
    const late = new AbortController();
    let stop = () => late.abort();
    const sentBytes = Number(request.headers['content-length'] ?? 0);
    const timer = setTimeout(() => stop(), answerMs + sentBytes / SLOWEST_BYTES_PER_MS).unref();
    const asked = options !== undefined && 'abortSignal' in options ? options.abortSignal : undefined;
    const signals = [late.signal, asked].filter((signal) => signal instanceof AbortSignal);
    try {
      const answer = await handle(request, { ...options, abortSignal: AbortSignal.any(signals) });
      const { response } = answer;
      if (request.method === 'GET' && request.headers.range !== undefined && response.statusCode < 300) {
        clearTimeout(timer);
        return answer;
      }
      const body = boundedBody();
      stop = () => body.destroy(fault('AnswerTooSlow'));
      pipeline(response.body as Readable, body, () => clearTimeout(timer));
      return { ...answer, response: Object.assign(response, { body }) };
    } catch (error) {
      clearTimeout(timer);
      throw late.signal.aborted ? fault('AnswerTooSlow') : error;
    }
  };
}

function boundedBody(): Transform {
  let bytes = 0;
  const body = new Transform({
    transform: (chunk: Uint8Array, _encoding, done) => {
      bytes += chunk.length;
      if (bytes > LARGEST_SMALL_OBJECT) done(fault('AnswerTooLarge'));
      else done(null, chunk);
    },
  });
  // Whoever reads it hears of it; an answer that nobody reads must not end the process.
  return body.on('error', () => {});
}

/** Not ours yet: the SDK writes into errors that pass through it. `failure.ts` knows the names. */
const fault = (name: 'AnswerTooLarge' | 'AnswerTooSlow'): Error => Object.assign(new Error(name), { name });

class S3Objects implements Objects {
  readonly place: string;
  readonly #sdk: Sdk;
  readonly #client: S3Client;
  readonly #bucket: string;
  readonly #mostPages: number;

  constructor(sdk: Sdk, client: S3Client, bucket: string, place: string, mostPages: number) {
    this.#sdk = sdk;
    this.#client = client;
    this.#bucket = bucket;
    this.#mostPages = mostPages;
    this.place = place;
  }

  async head(key: string, signal?: AbortSignal): Promise<ObjectFacts | undefined> {
    const command = new this.#sdk.HeadObjectCommand({ Bucket: this.#bucket, Key: key });
    const answer = await this.#unlessAbsent(`looking for ${key}`, signal, () =>
      this.#client.send(command, abortable(signal)),
    );
    if (answer === undefined) return undefined;
    const { ContentLength = 0, ETag = '', Metadata = {} } = answer;
    return { key, bytes: ContentLength, etag: ETag, metadata: Metadata };
  }

  async read(key: string, signal?: AbortSignal): Promise<{ body: Buffer; etag: string } | undefined> {
    const command = new this.#sdk.GetObjectCommand({ Bucket: this.#bucket, Key: key });
    return this.#unlessAbsent(`reading ${key}`, signal, async () => {
      const { Body, ETag = '' } = await this.#client.send(command, abortable(signal));
      return { body: Buffer.concat(await (Body as unknown as Readable).toArray()), etag: ETag };
    });
  }

  async stream(
    key: string,
    { first, last }: ByteRange,
    etag: string,
    signal?: AbortSignal,
  ): Promise<AsyncIterable<Uint8Array>> {
    const command = new this.#sdk.GetObjectCommand({
      Bucket: this.#bucket,
      Key: key,
      Range: `bytes=${first}-${last}`,
      IfMatch: etag,
    });
    const { Body } = await this.#client.send(command, abortable(signal));
    return Body as unknown as AsyncIterable<Uint8Array>;
  }

  async put(key: string, body: Uint8Array, options: Putting = {}, signal?: AbortSignal): Promise<string> {
    const command = new this.#sdk.PutObjectCommand({
      Bucket: this.#bucket,
      Key: key,
      Body: body,
      ContentLength: body.byteLength,
      ...headersOf(options),
      ...conditionOf(options),
    });
    const { ETag = '' } = await this.#explained(`writing ${key}`, signal, () =>
      this.#client.send(command, abortable(signal)),
    );
    return ETag;
  }

  async *list(prefix: string, signal?: AbortSignal): AsyncIterable<ListedObject> {
    let ContinuationToken: string | undefined;
    let pages = 0;
    do {
      if (++pages > this.#mostPages)
        throw remoteFailure(fault('AnswerTooLarge'), { doing: `listing ${prefix}`, place: this.place });
      const command = new this.#sdk.ListObjectsV2Command({
        Bucket: this.#bucket,
        Prefix: prefix,
        ...(ContinuationToken === undefined ? {} : { ContinuationToken }),
      });
      const page = await this.#explained(`listing ${prefix}`, signal, () =>
        this.#client.send(command, abortable(signal)),
      );
      for (const { Key = '', Size = 0, LastModified = new Date(0) } of page.Contents ?? []) {
        yield { key: Key, bytes: Size, modified: LastModified };
      }
      ContinuationToken = page.IsTruncated ? page.NextContinuationToken : undefined;
    } while (ContinuationToken !== undefined);
  }

  async remove(keys: readonly string[], signal?: AbortSignal): Promise<void> {
    // One by one: some servers want headers on the bulk form that the SDK no longer sends.
    for (const key of keys) {
      const command = new this.#sdk.DeleteObjectCommand({ Bucket: this.#bucket, Key: key });
      await this.#explained(`removing ${key}`, signal, () => this.#client.send(command, abortable(signal)));
    }
  }

  async startParts(...[key, options, signal]: Parameters<Objects['startParts']>): Promise<PartedUpload> {
    const target = { Bucket: this.#bucket, Key: key };
    const command = new this.#sdk.CreateMultipartUploadCommand({ ...target, ...headersOf(options) });
    const started = await this.#explained(`starting the upload of ${key}`, signal, () =>
      this.#client.send(command, abortable(signal)),
    );
    const upload = { ...target, UploadId: started.UploadId };
    const parts: { PartNumber: number; ETag: string }[] = [];
    return {
      put: async (part, body, partSignal) => {
        const sent = new this.#sdk.UploadPartCommand({
          ...upload,
          PartNumber: part,
          Body: body,
          ContentLength: body.byteLength,
        });
        withoutPayloadDigest(sent);
        const { ETag = '' } = await this.#explained(`uploading part ${part} of ${key}`, partSignal, () =>
          this.#client.send(sent, abortable(partSignal)),
        );
        parts.push({ PartNumber: part, ETag });
      },
      complete: async (endSignal) => {
        const Parts = parts.toSorted((a, b) => a.PartNumber - b.PartNumber);
        const end = new this.#sdk.CompleteMultipartUploadCommand({ ...upload, MultipartUpload: { Parts } });
        await this.#explained(`completing ${key}`, endSignal, () =>
          this.#client.send(end, abortable(endSignal)),
        );
      },
      abort: async () => {
        await this.#client.send(new this.#sdk.AbortMultipartUploadCommand(upload)).catch(() => {});
      },
    };
  }

  close(): void {
    this.#client.destroy();
  }

  async #explained<T>(doing: string, signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throwIfCancelled(signal, `${doing} at ${this.place}`);
      throw remoteFailure(error, { doing, place: this.place });
    }
  }

  async #unlessAbsent<T>(
    doing: string,
    signal: AbortSignal | undefined,
    work: () => Promise<T>,
  ): Promise<T | undefined> {
    try {
      return await this.#explained(doing, signal, work);
    } catch (error) {
      if (error instanceof TrtforgeError && error.code === 'TF_REMOTE_NOT_FOUND') return undefined;
      throw error;
    }
  }
}

/**
 * Sends a part without its SHA-256 in the signature, which would cost the sender and the server a pass over it each: engines have a SHA-256 of
 * their own in passport and metadata, and every reader checks it.
 */
function withoutPayloadDigest(command: UploadPartCommand): void {
  command.middlewareStack.add(
    (next) => (step) => {
      const { headers } = step.request as { readonly headers: Record<string, string> };
      headers['x-amz-content-sha256'] = 'UNSIGNED-PAYLOAD';
      return next(step);
    },
    { step: 'build', name: 'withoutPayloadDigest' },
  );
}

const abortable = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { abortSignal: signal });

type Putting = NonNullable<Parameters<Objects['put']>[2]>;

const headersOf = ({ metadata, contentType }: Putting) => ({
  ...(metadata === undefined ? {} : { Metadata: { ...metadata } }),
  ...(contentType === undefined ? {} : { ContentType: contentType }),
});

const conditionOf = ({ only }: Putting) => {
  if (only === undefined) return {};
  return only === 'absent' ? { IfNoneMatch: '*' } : { IfMatch: only.etag };
};
