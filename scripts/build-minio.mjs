// Builds the S3 server that the store's tests talk to, MinIO, from the Go module proxy into build/minio-VERSION (once; about 4 minutes on two
// cores, then nothing). `node scripts/build-minio.mjs` prints its path.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { runProgram, runScript, SetupError } from './phases.mjs';

const VERSION = 'v0.0.0-20260212201848-7aac2a2c5b7c';
const build = fileURLToPath(new URL('../build/', import.meta.url));

/** Where the server is or will be. */
export const minioPath = join(build, `minio-${VERSION.slice(-12)}`);

export const hasGo = () => spawnSync('go', ['version']).status === 0;

/** Builds the server unless it is there; gives its path. Throws SetupError without Go. */
export function buildMinio() {
  if (existsSync(minioPath)) return minioPath;
  if (!hasGo()) throw new SetupError('The S3 server of the tests is built with Go, and there is no go here.');
  const folder = join(build, `go-${process.pid}`);
  mkdirSync(folder, { recursive: true });
  try {
    const env = { ...process.env, GOBIN: folder, CGO_ENABLED: '0' };
    runProgram('go', ['install', `github.com/minio/minio@${VERSION}`], { cwd: folder, env });
    renameSync(join(folder, 'minio'), minioPath);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return minioPath;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  runScript(() => process.stdout.write(`${buildMinio()}\n`));
}
