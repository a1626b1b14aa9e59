import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { remoteAddress } from '../../../../src/engines/store/remote/address.js';
import { fetchBucket } from '../../../../src/engines/store/remote/fetch-bucket.js';
import type { Objects } from '../../../../src/engines/store/remote/objects.js';
import { openS3 } from '../../../../src/engines/store/remote/s3-objects.js';

type Answer = (response: ServerResponse) => void;

const keys = { ARTIFACTS_ACCESS_KEY: 'a'.repeat(8), ARTIFACTS_SECRET_KEY: 'b'.repeat(12) };
let sentBytes = 0;

/** A server with this answer to every request, until `work` is done with its objects, which wait `answerMs` for it: only who waits in vain is given a short time. */
async function withServer<T>(
  answer: Answer,
  work: (objects: Objects, url: string) => Promise<T>,
  answerMs = 600_000,
): Promise<T> {
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => answer(response));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/team`;
  const address = remoteAddress(url, keys);
  if (address === null) throw new Error('no address');
  const objects = await openS3(address, { answerMs, pages: 5 });
  try {
    return await work(objects, url);
  } finally {
    objects.close();
    server.closeAllConnections();
    server.close();
  }
}

const chunk = Buffer.alloc(1 << 16, 'A');
const endless = (status: number) => (response: ServerResponse) => {
  response.writeHead(status);
  response.write('<a>');
  const more = () => {
    while (!response.destroyed && response.write(chunk)) sentBytes += chunk.length;
    sentBytes += chunk.length;
  };
  response.on('drain', more);
  more();
};
/** A byte now and then: the connection is never silent. */
const dripping = (response: ServerResponse) => {
  response.writeHead(200);
  const drip = setInterval(() => response.write('<'), 50);
  response.on('close', () => clearInterval(drip));
};
const never = () => {};

async function gathered<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

const requests: readonly [string, (objects: Objects) => Promise<unknown>][] = [
  ['a list', (objects) => gathered(objects.list('engines/'))],
  ['a small object', (objects) => objects.read('engines/entry.json')],
  ['a write', (objects) => objects.put('engines/x', Buffer.from('x'))],
  ['a removal', (objects) => objects.remove(['engines/x'])],
];

describe.each(requests)('the answer to %s', (what, request) => {
  test.each([200, 403])('has an end in bytes, with status %d', async (status) => {
    sentBytes = 0;
    // A removal's answer has nothing that is read where it succeeds.
    const code = expect.stringMatching(
      what === 'a removal' ? /^TF_REMOTE_(DAMAGED|UNREACHABLE)$/ : /^TF_REMOTE_DAMAGED$/,
    );
    await expect(withServer(endless(status), request)).rejects.toMatchObject({ code });
    expect(sentBytes).toBeLessThan(64 << 20);
  });

  // At once: they wait.
  test.concurrent.each<[string, Answer]>([
    ['that drips', dripping],
    ['that never comes', never],
  ])('%s has an end in time', async (_how, given) => {
    await expect(withServer(given, request, 700)).rejects.toMatchObject({ code: 'TF_REMOTE_UNREACHABLE' });
  });
});

test('a list without a last page has an end', async () => {
  let pages = 0;
  const answer: Answer = (response) => {
    const token = `<NextContinuationToken>${++pages}</NextContinuationToken>`;
    response.end(`<ListBucketResult><IsTruncated>true</IsTruncated>${token}</ListBucketResult>`);
  };
  await expect(withServer(answer, (objects) => gathered(objects.list('engines/')))).rejects.toMatchObject({
    code: 'TF_REMOTE_DAMAGED',
  });
  expect(pages).toBe(5);
});

test('an engine that is imported has no more bytes than it should', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'trtforge-answers-'));
  const answer: Answer = (response) => {
    const { method = '', url = '' } = response.req;
    if (url.includes('list-type'))
      response.end('<ListBucketResult><Contents><Key>engines/x.engine</Key></Contents></ListBucketResult>');
    else if (method === 'HEAD') response.writeHead(200, { 'content-length': 8, etag: '"x"' }).end();
    else endless(206)(response);
  };
  sentBytes = 0;
  try {
    await expect(
      withServer(answer, (_objects, url) =>
        fetchBucket(url, folder, {
          isEngine: () => true,
          take: () => Promise.reject(new Error('taken')),
          environment: keys,
          emit: () => {},
          signal: undefined,
        }),
      ),
    ).rejects.toMatchObject({ code: 'TF_REMOTE_DAMAGED' });
    expect(sentBytes).toBeLessThan(64 << 20);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a range is streamed for as long as it comes', async () => {
  const answer: Answer = (response) => {
    response.writeHead(206, { 'content-length': 8 });
    let sent = 0;
    const drip = setInterval(() => {
      if (++sent <= 8) response.write('A');
      else clearInterval(drip);
    }, 200);
  };
  const chunks = await withServer(
    answer,
    async (objects) => gathered(await objects.stream('engines/x', { first: 0, last: 7 }, '"x"', undefined)),
    700,
  );
  expect(Buffer.concat(chunks).toString()).toBe('AAAAAAAA');
});

test.each([
  [{ ARTIFACTS_BUCKET: 'team', ARTIFACTS_ENDPOINT: 'http://mallory:hunter2@host/x' }, undefined],
  [{ ARTIFACTS_BUCKET: 'team', ARTIFACTS_ENDPOINT: 'http://mallory:hun/ter2@host' }, undefined],
  [{ ARTIFACTS_BUCKET: 'mallory:hunter2@host' }, undefined],
  [{}, 'http://mallory:hunter2@host/team'],
  [{}, 'HTTP://mallory:hunter2@host/team'],
  [{}, 's4://mallory:hunter2@host/team'],
])('keys in an address are not printed (%#)', (environment, uri) => {
  let message = '';
  try {
    remoteAddress(uri, environment);
  } catch (error) {
    message = String(error);
  }
  expect(message).toContain('TrtforgeError');
  expect(message).not.toMatch(/hun|ter2|mallory/);
});

test('a bucket of AWS without a region is an address that lacks it', async () => {
  vi.stubEnv('AWS_REGION', undefined).stubEnv('AWS_DEFAULT_REGION', undefined);
  vi.stubEnv('AWS_CONFIG_FILE', '/nowhere');
  try {
    const objects = await openS3(remoteAddress('s3://team/engines', keys)!, {});
    await expect(gathered(objects.list(''))).rejects.toMatchObject({ code: 'TF_REMOTE_ADDRESS_INVALID' });
    objects.close();
  } finally {
    vi.unstubAllEnvs();
  }
});
