import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { isAbandoned, readClaim, stateOf, thisProcess } from '../../../../src/engines/store/claims/claim.js';
import { type Lease, LeaseFolder } from '../../../../src/engines/store/claims/lease.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-lease-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const MKFIFO = 'mkfifo';
const newFolder = () => mkdtempSync(join(root, 'leases-'));

const timing = { heartbeatMs: 20, expiryMs: 200 };
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const elsewhere = (token: string) => ({
  token,
  kind: 'build',
  owner: { pid: 7, startTicks: '7', machine: 'another machine', host: 'far' },
});
const deadHere = (token: string) => ({
  token,
  kind: 'build',
  owner: { ...thisProcess(), pid: 2 ** 22 + 1 },
});
const token = (digit: number) => `${String(digit).repeat(8)}-0000-4000-8000-000000000000`;

function taken(attempt: ReturnType<LeaseFolder['tryAcquire']>): Lease {
  if (attempt.lease === null) throw new Error(`held by ${attempt.holder}`);
  return attempt.lease;
}

describe('a lease', () => {
  test('has one holder until it is released', () => {
    const folder = newFolder();
    const [one, two] = [new LeaseFolder(folder), new LeaseFolder(folder)];
    const lease = taken(one.tryAcquire('a'));
    expect(two.tryAcquire('a')).toMatchObject({
      lease: null,
      holder: expect.stringContaining(`process ${process.pid}`),
    });
    taken(two.tryAcquire('b')).release();
    lease.release();
    taken(two.tryAcquire('a')).release();
    expect(readdirSync(folder)).toEqual([]);
  });

  test('of a dead process is taken over at once, and again', () => {
    const folder = newFolder();
    const leases = new LeaseFolder(folder);
    for (const each of [1, 2]) {
      writeFileSync(join(folder, 'a.lease'), JSON.stringify(deadHere(token(each))));
      expect(leases.holder('a')).toBeUndefined();
      const lease = taken(leases.tryAcquire('a'));
      expect(leases.tryAcquire('a').lease).toBeNull();
      lease.release();
      expect(readdirSync(folder)).toEqual([]);
    }
  });

  test('of a dead process is not taken from the one who took it over meanwhile', () => {
    const folder = newFolder();
    const path = join(folder, 'a.lease');
    writeFileSync(path, JSON.stringify(deadHere(token(1))));
    // Ten of them see the same dead holder; whoever comes later finds a living one.
    const attempts = Array.from({ length: 10 }, () => new LeaseFolder(folder).tryAcquire('a'));
    expect(attempts.filter(({ lease }) => lease !== null)).toHaveLength(1);
    for (const { lease } of attempts) lease?.release();
    expect(readdirSync(folder)).toEqual([]);
  });

  test('of another machine expires when its file stands still, by the clock of the one who watches', async () => {
    const folder = newFolder();
    const path = join(folder, 'a.lease');
    writeFileSync(path, JSON.stringify(elsewhere(token(1))));
    // A clock an hour off on the other machine changes nothing.
    utimesSync(path, new Date(Date.now() + 3_600_000), new Date(Date.now() + 3_600_000));
    const leases = new LeaseFolder(folder, timing);
    for (let beat = 0; beat < 8; beat++) {
      expect(leases.tryAcquire('a')).toMatchObject({ lease: null, holder: 'process 7 on far' });
      await pause(50);
      utimesSync(path, new Date(), new Date(Date.now() - 1000 * beat));
    }
    expect(leases.tryAcquire('a').lease).toBeNull();
    await pause(300);
    taken(leases.tryAcquire('a')).release();
  });

  test('its own renewal keeps it', async () => {
    const folder = newFolder();
    const lease = taken(new LeaseFolder(folder, timing).tryAcquire('a'));
    const watcher = new LeaseFolder(folder, timing);
    for (let look = 0; look < 10; look++) {
      expect(watcher.tryAcquire('a').lease).toBeNull();
      await pause(50);
    }
    lease.release();
  });

  test.each([
    '',
    '{',
    'null',
    '{"token":1}',
    JSON.stringify({ token: '../../x', kind: 'build', owner: thisProcess() }),
    JSON.stringify({ ...deadHere(token(1)), kind: 'use' }),
  ])('file that holds "%s" blocks until it expires', async (text) => {
    const folder = newFolder();
    writeFileSync(join(folder, 'a.lease'), text);
    const leases = new LeaseFolder(folder, timing);
    expect(leases.tryAcquire('a').lease).toBeNull();
    await pause(250);
    taken(leases.tryAcquire('a')).release();
  });

  test('released after another took it over stays with the other', () => {
    const folder = newFolder();
    const late = taken(new LeaseFolder(folder).tryAcquire('a'));
    const [file = ''] = readdirSync(folder);
    rmSync(join(folder, file));
    const other = taken(new LeaseFolder(folder).tryAcquire('a'));
    late.release();
    expect(new LeaseFolder(folder).holder('a')).toContain(String(process.pid));
    other.release();
    expect(new LeaseFolder(folder).holder('a')).toBeUndefined();
  });

  test.each<[string, (path: string) => void]>([
    ['a link to nothing', (path) => symlinkSync(join(root, 'nothing'), path)],
    ['a link to itself', (path) => symlinkSync(path, path)],
    ['a folder', (path) => mkdirSync(path)],
    ['a FIFO', (path) => void spawnSync(MKFIFO, [path])],
    ['a device without end', (path) => symlinkSync('/dev/zero', path)],
  ])('that is %s belongs to no reader', (_what, make) => {
    const folder = newFolder();
    make(join(folder, 'a.lease'));
    const leases = new LeaseFolder(folder);
    const lease = taken(leases.tryAcquire('a'));
    expect(new LeaseFolder(folder).tryAcquire('a').lease).toBeNull();
    lease.release();
    taken(leases.tryAcquire('a')).release();
  });

  test('that is a folder with content is left as it is, and builds run without a lease', () => {
    const folder = newFolder();
    const inside = join(folder, 'a.lease', 'inside');
    mkdirSync(inside, { recursive: true });
    const leases = new LeaseFolder(folder);
    taken(leases.tryAcquire('a')).release();
    taken(leases.tryAcquire('a')).release();
    expect(readdirSync(join(folder, 'a.lease'))).toEqual(['inside']);
  });

  test('in a folder that cannot be made is an error with its path', () => {
    const file = join(newFolder(), 'file');
    writeFileSync(file, '');
    expect(() => new LeaseFolder(join(file, 'leases')).tryAcquire('a')).toThrow(/could not be written/);
  });
});

describe('a claim', () => {
  test('whose owner is checked: alive, dead, or unknown', () => {
    const own = thisProcess();
    expect(stateOf(own)).toBe('alive');
    expect(stateOf({ ...own, pid: 2 ** 22 + 1 })).toBe('dead');
    expect(stateOf({ ...own, machine: 'elsewhere' })).toBe('unknown');
  });

  test('does not take a reused process number for the process', () => {
    expect(stateOf({ ...thisProcess(), startTicks: '1' })).toBe('dead');
  });

  test('of an unknown owner is abandoned after a day, of a living one never', () => {
    const path = join(newFolder(), 'claim');
    const since = Date.now();
    const later = since + 25 * 3_600_000;
    const found = (content: unknown) => {
      writeFileSync(path, JSON.stringify(content));
      const claim = readClaim(path, 'build');
      return claim === 'odd' ? undefined : claim;
    };
    const far = found(elsewhere(token(1)));
    expect([isAbandoned(far, since), isAbandoned(far, since, later)]).toEqual([false, true]);
    const own = found({ token: token(1), kind: 'build', owner: thisProcess() });
    expect(isAbandoned(own, since, later)).toBe(false);
    expect(isAbandoned(found(deadHere(token(1))), since)).toBe(true);
  });
});
