import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { S3Client } from '@aws-sdk/client-s3';

/** A real MinIO on loopback, with keys and a folder of its own. */
export interface Minio extends AsyncDisposable {
  readonly endpoint: string;
  readonly port: number;
  /** As the product reads them. */
  readonly environment: { readonly ARTIFACTS_ACCESS_KEY: string; readonly ARTIFACTS_SECRET_KEY: string };
  /** For what tests arrange and look at behind the product's back. */
  readonly client: S3Client;
}

const START_LIMIT_MS = 240_000;

export async function startMinio(binary: string): Promise<Minio> {
  const folder = mkdtempSync(join(tmpdir(), 'trtforge-minio-'));
  const port = await freePort();
  const [accessKey, secretKey] = ['tester', randomBytes(12).toString('hex')] as const;
  const server = spawn(
    binary,
    ['server', folder, '--address', `127.0.0.1:${port}`, '--console-address', '127.0.0.1:0', '--quiet'],
    {
      env: {
        ...process.env,
        MINIO_ROOT_USER: accessKey,
        MINIO_ROOT_PASSWORD: secretKey,
        MINIO_BROWSER: 'off',
      },
      stdio: 'ignore',
    },
  );
  const endpoint = `http://127.0.0.1:${port}`;
  const stop = async () => {
    client.destroy();
    const gone = new Promise((resolve) => server.once('exit', resolve));
    if (server.exitCode === null && server.kill('SIGKILL')) await gone;
    rmSync(folder, { recursive: true, force: true });
  };
  const client = new S3Client({
    endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId: accessKey, secretAccessKey: secretKey },
  });
  try {
    await untilReady(endpoint);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    endpoint,
    port,
    environment: { ARTIFACTS_ACCESS_KEY: accessKey, ARTIFACTS_SECRET_KEY: secretKey },
    client,
    [Symbol.asyncDispose]: stop,
  };
}

async function untilReady(endpoint: string): Promise<void> {
  const limit = Date.now() + START_LIMIT_MS;
  while (Date.now() < limit) {
    const answer = await fetch(`${endpoint}/minio/health/live`).catch(() => undefined);
    if (answer?.ok) return;
    await sleep(50);
  }
  throw new Error(`MinIO did not start within ${START_LIMIT_MS} ms.`);
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}
