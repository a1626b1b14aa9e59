import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BenchCase, BenchContext } from '../context.js';
import { CommandFailed, median } from '../measure.js';
import type { Measurement } from '../result.js';
import { worker } from './cache.js';

const BYTES = 1 << 30;
const PORT = 19_571;
const ENDPOINT = `http://127.0.0.1:${PORT}`;
const KEYS = { ARTIFACTS_ACCESS_KEY: 'benchmark', ARTIFACTS_SECRET_KEY: randomBytes(12).toString('hex') };

/** A 1 GiB engine to and from a MinIO on loopback, beside curl with signed requests and, where it is installed, MinIO's own client. */
export const transfer: BenchCase = {
  name: 'transfer',
  run: async (context) => {
    const title = 'Move a 1 GiB engine to and from MinIO';
    const binary = minio(context);
    if (binary === undefined)
      return {
        case: 'transfer',
        title,
        commands: [],
        measurements: [],
        skipped: ['MinIO is not built: node scripts/build-minio.mjs'],
      };
    const server = await start(binary, join(context.folder, 'minio'));
    try {
      Object.assign(process.env, KEYS);
      return { case: 'transfer', title, ...measure(context) };
    } finally {
      server.kill('SIGKILL');
      for (const name of ['minio', 'large', 'large.back', 'large.raw'])
        rmSync(join(context.folder, name), { recursive: true, force: true });
    }
  },
};

function measure(context: BenchContext) {
  const file = join(context.folder, 'large');
  const digest = writeLarge(file);
  curl('-X', 'PUT', `${ENDPOINT}/bench`);
  const url = `${ENDPOINT}/bench/engines/large.engine`;
  const raw = `${file}.raw`;
  const rawGet = () => curl('-o', raw, url);
  const ours = (task: string) => worker(context, task, ENDPOINT, file, '1', digest)[0] ?? Number.NaN;
  const rawUpload = () => curl('-H', 'x-amz-content-sha256: UNSIGNED-PAYLOAD', '-T', file, `${url}.raw`);
  const checked = () => {
    rawGet();
    digestOf(raw);
  };
  const seconds: number[][] = [[], [], [], [], []];
  // In turns, so that a machine that slows down slows all of them.
  for (let run = 0; run < context.runs; run++) {
    seconds[0]?.push(ours('upload'));
    seconds[1]?.push(timed(rawUpload));
    seconds[2]?.push(ours('download'));
    for (const [index, work] of [
      [3, rawGet],
      [4, checked],
    ] as const) {
      rmSync(raw, { force: true });
      seconds[index]?.push(timed(work));
    }
  }
  const [up = 0, rawUp = 0, down = 0, rawDown = 0, checkedDown = 0] = seconds.map(median);
  const line = (what: string, ours: number, name: string, figure: number, bar = true): Measurement => ({
    what,
    unit: 's',
    ours,
    peer: { name, figure },
    ...(bar ? { bar: { limit: Math.round(figure / 0.008) / 100, better: 'lower' as const } } : {}),
  });
  return {
    commands: ['uploadFile, downloadFile (SHA-256 checked)', 'curl --aws-sigv4', 'curl, then SHA-256'],
    measurements: [
      line('upload', up, 'curl', rawUp),
      line('download, checked', down, 'curl, not checked', rawDown),
      line('download, checked', down, 'curl, then SHA-256', checkedDown, false),
    ],
    skipped: [],
  };
}

/** Writes random bytes; gives their SHA-256. */
function writeLarge(path: string): string {
  const file = openSync(path, 'w');
  const hash = createHash('sha256');
  for (let done = 0; done < BYTES; done += 16 << 20) {
    const bytes = randomBytes(16 << 20);
    hash.update(bytes);
    writeSync(file, bytes);
  }
  closeSync(file);
  return hash.digest('hex');
}

function digestOf(path: string): string {
  const file = openSync(path, 'r');
  const hash = createHash('sha256');
  const buffer = Buffer.allocUnsafe(4 << 20);
  for (let count = 1; count > 0; ) {
    count = readSync(file, buffer);
    hash.update(buffer.subarray(0, count));
  }
  closeSync(file);
  return hash.digest('hex');
}

function timed(work: () => void): number {
  const started = performance.now();
  work();
  return (performance.now() - started) / 1000;
}

function curl(...words: readonly string[]): void {
  const user = `${KEYS.ARTIFACTS_ACCESS_KEY}:${KEYS.ARTIFACTS_SECRET_KEY}`;
  const sign = ['-sS', '--fail', '--aws-sigv4', 'aws:amz:us-east-1:s3', '--user', user];
  const { status, stderr } = spawnSync('curl', [...sign, ...words], { encoding: 'utf8' });
  if (status !== 0) throw new CommandFailed(`curl failed: ${stderr?.trim()}`);
}

function minio({ root }: BenchContext): string | undefined {
  const folder = join(root, 'build');
  const name = existsSync(folder) ? readdirSync(folder).find((each) => each.startsWith('minio-')) : undefined;
  return name === undefined ? undefined : join(folder, name);
}

async function start(binary: string, folder: string): Promise<ChildProcess> {
  mkdirSync(folder, { recursive: true });
  const server = spawn(binary, ['server', folder, '--address', `127.0.0.1:${PORT}`, '--quiet'], {
    stdio: 'ignore',
    env: {
      ...process.env,
      MINIO_ROOT_USER: KEYS.ARTIFACTS_ACCESS_KEY,
      MINIO_ROOT_PASSWORD: KEYS.ARTIFACTS_SECRET_KEY,
      MINIO_BROWSER: 'off',
    },
  });
  for (let look = 0; look < 200; look++) {
    if ((await globalThis.fetch(`${ENDPOINT}/minio/health/live`).catch(() => undefined))?.ok) return server;
    await sleep(100);
  }
  server.kill('SIGKILL');
  throw new CommandFailed('MinIO did not start.');
}
