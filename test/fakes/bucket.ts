import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { sha256 } from '../../src/base/files/digest.js';

export interface Kept {
  readonly body: Buffer;
  readonly sha256?: string;
}

/** A bucket in memory, on loopback; it ignores conditions. */
export interface Bucket {
  readonly objects: Map<string, Kept>;
  /** `GET engines/…`, in order. */
  readonly asked: string[];
  /** Answers 403 to these. */
  denied: RegExp | null;
  /** For `--remote`. */
  readonly place: string;
  /** As the product reads its keys. */
  readonly environment: { readonly ARTIFACTS_ACCESS_KEY: string; readonly ARTIFACTS_SECRET_KEY: string };
  close(): void;
}

export async function startBucket(): Promise<Bucket> {
  const objects = new Map<string, Kept>();
  const asked: string[] = [];
  const server = createServer((request, response) => answer(bucket, request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const bucket: Bucket = {
    objects,
    asked,
    denied: null,
    place: `http://127.0.0.1:${(server.address() as AddressInfo).port}/team/engines`,
    environment: { ARTIFACTS_ACCESS_KEY: 'a'.repeat(8), ARTIFACTS_SECRET_KEY: 'b'.repeat(12) },
    close: () => server.close(),
  };
  return bucket;
}

async function answer(
  { objects, asked, denied }: Bucket,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { method, url = '', headers } = request;
  const { pathname, searchParams } = new URL(url, 'http://localhost');
  const key = decodeURIComponent(pathname).replace(/^\/team\/?/, '');
  asked.push(`${method} ${key}`);
  if (denied?.test(`${method} ${key}`)) return void response.writeHead(403).end();
  if (key === '') {
    const prefix = searchParams.get('prefix') ?? '';
    const contents = [...objects].filter(([name]) => name.startsWith(prefix));
    const items = contents.map(
      ([name, { body }]) =>
        `<Contents><Key>${name}</Key><Size>${body.length}</Size><LastModified>2026-11-28T12:00:00.000Z</LastModified></Contents>`,
    );
    response.end(`<ListBucketResult><IsTruncated>false</IsTruncated>${items.join('')}</ListBucketResult>`);
    return;
  }
  if (method === 'PUT') {
    const digest = headers['x-amz-meta-trtforge-sha256'] as string | undefined;
    objects.set(key, { body: await buffer(request), ...(digest && { sha256: digest }) });
    return void response.end();
  }
  if (method === 'DELETE') {
    objects.delete(key);
    return void response.writeHead(204).end();
  }
  const kept = objects.get(key);
  if (kept === undefined) return void response.writeHead(404).end();
  const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? '') ?? [];
  const body = first === undefined ? kept.body : kept.body.subarray(Number(first), Number(last) + 1);
  const digest = kept.sha256 === undefined ? {} : { 'x-amz-meta-trtforge-sha256': kept.sha256 };
  const status = first === undefined ? 200 : 206;
  response.writeHead(status, { 'content-length': body.length, etag: `"${sha256(kept.body)}"`, ...digest });
  response.end(method === 'HEAD' ? undefined : body);
}
