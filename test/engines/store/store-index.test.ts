import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeEach, expect, test, vi } from 'vitest';
import type { EngineSummary } from '../../../src/engines/store/store.js';
import { StoreIndex } from '../../../src/engines/store/store-index.js';
import { mutations } from '../../support/mutations.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-index-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let folder = root;
let read: string[] = [];
let name = 'first';
beforeEach(() => {
  folder = mkdtempSync(join(root, 'case-'));
  read = [];
  name = 'first';
});

const summary = (identity: string): EngineSummary => ({
  identity,
  name,
  model: null,
  target: null,
  precision: null,
  bytes: 1,
  builtAt: null,
  buildMs: null,
  signedBy: null,
  problem: null,
});
/** Another process each time. */
const open = () =>
  new StoreIndex(join(folder, 'by-identity'), join(folder, 'memo'), async (identity) => {
    read.push(identity);
    return summary(identity);
  });
const add = (identity: string) =>
  mkdirSync(join(folder, 'by-identity', identity.slice(0, 2), identity), { recursive: true });
const id = (start: string) => start.padEnd(64, '0');
const names = async () =>
  (await open().engines()).map((engine) => `${engine.identity.slice(0, 4)} ${engine.name}`).sort();
/** Longer than the clock of the file system takes to tick. */
const later = () => sleep(80);

test('what was read once is not read again while nothing changes', async () => {
  for (const start of ['aa01', 'aa02', 'bb01']) add(id(start));
  await later();
  expect(await names()).toEqual(['aa01 first', 'aa02 first', 'bb01 first']);
  expect(read).toHaveLength(3);
  expect(await names()).toEqual(['aa01 first', 'aa02 first', 'bb01 first']);
  expect(read).toHaveLength(3);
});

test('of engines that come, go or are changed in place, only their folder is read again', async () => {
  for (const start of ['aa01', 'bb01', 'cc01']) add(id(start));
  await later();
  await names();
  read = [];
  name = 'second';
  add(id('aa02'));
  rmSync(join(folder, 'by-identity', 'bb'), { recursive: true });
  open().changed(id('cc01'));
  expect(await names()).toEqual(['aa01 second', 'aa02 second', 'cc01 second']);
  expect(read.map((identity) => identity.slice(0, 4)).sort()).toEqual(['aa01', 'aa02', 'cc01']);
});

test('a folder that changed a moment ago is not taken as final', async () => {
  add(id('aa01'));
  // However late this machine comes to it.
  const { ctimeMs } = statSync(join(folder, 'by-identity', 'aa'));
  vi.useFakeTimers({ toFake: ['Date'], now: Math.ceil(ctimeMs) });
  await names();
  name = 'second';
  expect(await names()).toEqual(['aa01 second']);
  vi.useRealTimers();
});

test('an index that was damaged is made again', async () => {
  for (const start of ['aa01', 'bb01']) add(id(start));
  await later();
  await names();
  const [file = ''] = readdirSync(join(folder, 'memo'));
  const path = join(folder, 'memo', file);
  const whole = readFileSync(path);
  for (const damaged of [
    Buffer.from(''),
    Buffer.from('[]'),
    Buffer.from('{"version":1}'),
    ...mutations(whole, 100),
  ]) {
    writeFileSync(path, damaged);
    expect((await open().engines()).length).toBeGreaterThan(0);
  }
  writeFileSync(path, 'x');
  expect(await names()).toEqual(['aa01 first', 'bb01 first']);
});

test('a store that is not there has none', async () => {
  expect(await open().engines()).toEqual([]);
});
