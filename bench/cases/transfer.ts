import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, rmSync, writeSync } from 'node:fs';
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
  const piped = (hasher: string) => shell(`${quoted(curlWords(url))} | tee ${quoted([raw])} | ${hasher}`);
  const tasks: Record<string, () => number> = {
    upload: () => ours('upload'),
    rawUpload: () => timed(rawUpload),
    download: () => ours('download'),
    rawDownload: () => timed(rawGet),
    openssl: () => timed(() => piped('openssl dgst -sha256')),
    sha256sum: () => timed(() => piped('sha256sum')),
    hash: hashAlone,
  };
  const seconds = Object.fromEntries(Object.keys(tasks).map((name) => [name, [] as number[]]));
  // In turns, so that a machine that slows down slows all of them.
  for (let run = 0; run < context.runs; run++) {
    for (const [name, task] of Object.entries(tasks)) {
      rmSync(raw, { force: true });
      seconds[name]?.push(task());
    }
  }
  const figure = (name: string) => median(seconds[name] ?? []);
  /** `share`: the part of the peer's rate that is the bar. */
  const line = (what: string, ours: number, name: string, figure: number, share?: number): Measurement => ({
    what,
    unit: 's',
    ours,
    peer: { name, figure },
    ...(share === undefined
      ? {}
      : { bar: { limit: Math.round((figure / share) * 100) / 100, better: 'lower' as const } }),
  });
  const [download, rawDownload] = [figure('download'), figure('rawDownload')];
  return {
    commands: [
      'uploadFile, downloadFile (SHA-256 checked)',
      'curl --aws-sigv4',
      'curl --aws-sigv4 URL | tee FILE | openssl dgst -sha256',
      'curl --aws-sigv4 URL | tee FILE | sha256sum',
    ],
    measurements: [
      line('upload', figure('upload'), 'curl', figure('rawUpload'), 0.8),
      line('download, checked', download, 'curl through tee into sha256sum', figure('sha256sum'), 1),
      line('download, checked', download, 'curl through tee into openssl dgst -sha256', figure('openssl')),
      line('download, checked', download, 'curl, not checked', rawDownload),
      line('one SHA-256 of as much memory, no transfer', figure('hash'), 'curl, not checked', rawDownload),
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

/** What checking costs whoever does it: the SHA-256 of 1 GiB that is in memory already, on one core. */
function hashAlone(): number {
  const piece = randomBytes(16 << 20);
  return timed(() => {
    const hash = createHash('sha256');
    for (let done = 0; done < BYTES; done += piece.length) hash.update(piece);
    hash.digest();
  });
}

function timed(work: () => void): number {
  const started = performance.now();
  work();
  return (performance.now() - started) / 1000;
}

function curlWords(...words: readonly string[]): readonly string[] {
  const user = `${KEYS.ARTIFACTS_ACCESS_KEY}:${KEYS.ARTIFACTS_SECRET_KEY}`;
  return ['curl', '-sS', '--fail', '--aws-sigv4', 'aws:amz:us-east-1:s3', '--user', user, ...words];
}

function curl(...words: readonly string[]): void {
  shell(quoted(curlWords(...words)));
}

function shell(command: string): void {
  const { status, stderr } = spawnSync('bash', ['-o', 'pipefail', '-c', command], { encoding: 'utf8' });
  if (status !== 0) throw new CommandFailed(`curl failed: ${stderr?.trim()}`);
}

const quoted = (words: readonly string[]): string =>
  words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');

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
