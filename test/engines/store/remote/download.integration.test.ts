import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ledgerPath } from '../../../../src/engines/store/partial-downloads.js';
import { remoteAddress } from '../../../../src/engines/store/remote/address.js';
import type { ByteRange, Objects } from '../../../../src/engines/store/remote/objects.js';
import { openS3 } from '../../../../src/engines/store/remote/s3-objects.js';
import { downloadFile } from '../../../../src/engines/store/remote/transfer.js';
import type { WorkEvent } from '../../../../src/events.js';

const MIB = 1 << 20;
const PART = 16 * MIB;
const plan = randomBytes(5 * PART + 12_345);
const expected = { bytes: plan.length, sha256: createHash('sha256').update(plan).digest('hex') };
const facts = { key: 'engines/x.engine', bytes: plan.length, etag: '"x"', metadata: {} };
const folder = mkdtempSync(join(tmpdir(), 'trtforge-download-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const path = join(folder, 'back.plan');

/** Objects of which a download uses the ranges alone. */
const rangesFrom = (stream: (range: ByteRange) => AsyncIterable<Uint8Array>): Objects =>
  ({
    place: 'a test',
    stream: async (_key: string, range: ByteRange) => stream(range),
  }) as unknown as Objects;

async function* pieces({ first, last }: ByteRange, size: number, before?: Promise<unknown>) {
  await before;
  for (let at = first; at <= last; at += size) yield plan.subarray(at, Math.min(at + size, last + 1));
}

describe('the digest of a download', () => {
  test.each<[string, (part: number) => number]>([
    ['in the order of the file', (part) => part * 20],
    ['in the reverse order', (part) => 200 - part * 40],
    ['with the first part last', (part) => (part === 0 ? 300 : 0)],
  ])('is that of the file where parts arrive %s', async (_how, delayMs) => {
    const events: WorkEvent[] = [];
    const objects = rangesFrom((range) => pieces(range, 100_000, sleep(delayMs(range.first / PART))));
    await downloadFile(objects, facts, path, expected, {
      emit: (event) => events.push(event),
      signal: undefined,
    });
    expect(readFileSync(path).equals(plan)).toBe(true);
    expect(existsSync(ledgerPath(path))).toBe(false);
    expect(events.at(-1)).toMatchObject({ type: 'progress', done: plan.length, total: plan.length });
  });

  test('covers the parts that an earlier download left, which are not fetched again', async () => {
    writeFileSync(path, Buffer.concat([Buffer.alloc(PART), plan.subarray(PART, 2 * PART)]));
    writeFileSync(ledgerPath(path), JSON.stringify({ ...expected, etag: facts.etag, parts: [1] }));
    const fetched: number[] = [];
    const objects = rangesFrom((range) => {
      fetched.push(range.first / PART);
      return pieces(range, MIB);
    });
    await downloadFile(objects, facts, path, expected, { emit: () => {}, signal: undefined });
    expect(readFileSync(path).equals(plan)).toBe(true);
    expect(fetched).toEqual([0, 2, 3, 4, 5]);
  });

  test('that differs is an error, and the file is removed', async () => {
    const objects = rangesFrom((range) => pieces(range, MIB));
    const other = { ...expected, sha256: 'f'.repeat(64) };
    await expect(
      downloadFile(objects, facts, path, other, { emit: () => {}, signal: undefined }),
    ).rejects.toMatchObject({ code: 'TF_REMOTE_DAMAGED' });
    expect([existsSync(path), existsSync(ledgerPath(path))]).toEqual([false, false]);
  });
});

/** How a server answers to the key of a case, and how much it has sent there. */
interface Serving {
  readonly answer: (response: ServerResponse, range: string, serving: Serving) => void;
  sentBytes: number;
}

// Several at once: what they cost is the waiting between attempts.
describe.concurrent('a server', () => {
  const byKey = new Map<string, Serving>();
  const server = createServer((request, response) => {
    const serving = byKey.get(new URL(request.url ?? '', 'http://server').pathname.replace('/team/', ''));
    if (serving === undefined) throw new Error(`nobody asked for ${request.url}`);
    serving.answer(response, request.headers.range ?? '', serving);
  });
  /** Who waits for a server that has stopped; the others take as long as they need. */
  let objects: Objects;
  let impatient: Objects;
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const keys = { ARTIFACTS_ACCESS_KEY: 'a'.repeat(8), ARTIFACTS_SECRET_KEY: 'b'.repeat(12) };
    const address = remoteAddress(`http://127.0.0.1:${port}/team`, keys);
    if (address === null) throw new Error('no address');
    objects = await openS3(address, { silenceMs: 600_000 });
    impatient = await openS3(address, { silenceMs: 400 });
  });
  afterAll(() => {
    objects.close();
    impatient.close();
    server.closeAllConnections();
    server.close();
  });

  const endless =
    (status: number): Serving['answer'] =>
    (response, _range, serving) => {
      response.writeHead(status);
      const more = () => {
        do serving.sentBytes += MIB;
        while (!response.destroyed && response.write(plan.subarray(0, MIB)));
      };
      response.on('drain', more);
      more();
    };
  const whole: Serving['answer'] = (response, _range, serving) => {
    response.writeHead(200, { 'content-length': plan.length });
    serving.sentBytes += plan.length;
    response.end(plan);
  };
  const shifted: Serving['answer'] = (response, range) => {
    const [, first, last] = /bytes=(\d+)-(\d+)/.exec(range) ?? [];
    const [from, to] = [Number(first), Number(last)];
    response.writeHead(206, { 'content-range': `bytes ${from}-${to}/${plan.length}` });
    response.end(Buffer.concat([plan.subarray(from + 1, to + 1), Buffer.alloc(1)]));
  };
  const stopped: Serving['answer'] = (response) => {
    response.writeHead(206, { 'content-length': PART });
    response.flushHeaders();
  };

  test.each<[string, Serving['answer'], string]>([
    ['sends a range without an end', endless(206), 'TF_REMOTE_DAMAGED'],
    ['ignores ranges', whole, 'TF_REMOTE_DAMAGED'],
    ['ignores ranges and has no end', endless(200), 'TF_REMOTE_DAMAGED'],
    ['sends other bytes than those of the range', shifted, 'TF_REMOTE_DAMAGED'],
    ['stops after the head of its answer', stopped, 'TF_REMOTE_UNREACHABLE'],
    [
      'ends each range before its first byte',
      (response) => response.writeHead(206).end(),
      'TF_REMOTE_UNREACHABLE',
    ],
  ])('that %s is an error within bounds', async (what, answer, code) => {
    const serving = { answer, sentBytes: 0 };
    const key = `engines/${what.replaceAll(' ', '-')}.engine`;
    byKey.set(key, serving);
    const into = join(folder, `${byKey.size}.plan`);
    await expect(
      downloadFile(answer === stopped ? impatient : objects, { ...facts, key }, into, expected, {
        emit: () => {},
        signal: undefined,
      }),
    ).rejects.toMatchObject({ code });
    // Four parts at a time, and of each what lies in the sockets or, where ranges are ignored, the whole.
    expect(serving.sentBytes).toBeLessThan(5 * plan.length);
  });
});
