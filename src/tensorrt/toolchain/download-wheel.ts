import { spawn } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join, resolve as resolvePath } from 'node:path';
import { makeFolder } from '../../base/files/folders.js';
import { throwIfCancelled } from '../../base/process/cancel.js';
import { withStreams } from '../../base/process/command.js';
import type { Processor } from '../../behaviour/facts.js';
import { systemErrorCode, TrtforgeError } from '../../errors.js';
import type { Work } from '../../events.js';
import { wheelTag } from './releases.js';

interface WheelRequest extends Work {
  readonly packageName: string;
  readonly version: string;
  readonly processor: Processor;
  /** An empty folder for the wheel and everything temporary. */
  readonly folder: string;
  /** Size of the wheel where it is known, for progress. */
  readonly bytes: number | undefined;
}

/** Where wheels come from: pip here, a folder in tests. Resolves with the path of the wheel. */
export type WheelSource = (request: WheelRequest) => Promise<string>;

/** The interpreter that has pip. A path is absolute, because it is started in another folder than ours. */
export function pythonOf({ PYTHON }: NodeJS.ProcessEnv): string {
  if (!PYTHON) return 'python3';
  return PYTHON.includes('/') ? resolvePath(PYTHON) : PYTHON;
}

/** Python's environment: `-m` and scripts load no modules from their folder (Python 3.11 and later; earlier ones rely on the folder being ours). */
export const pythonEnvironment = (environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv => ({
  ...environment,
  PYTHONSAFEPATH: '1',
});

const POLL_MS = 250;
const LAST_LINES = 6;

/**
 * Gets a wheel with `python3 -m pip download`, so that index, proxy and certificates are the user's own pip settings.
 * Only a binary wheel is accepted: no code of the package runs. Errors: TF_DOWNLOAD_FAILED, TF_CANCELLED.
 */
export const pipWheels: WheelSource = async (request) => {
  const { packageName, version, signal, environment } = request;
  const python = pythonOf(environment);
  const folder = resolvePath(request.folder);
  const temporary = join(folder, 'tmp');
  makeFolder(temporary);
  const args = ['-m', 'pip', 'download', '--no-deps', '--only-binary', ':all:', '--no-input'];
  args.push('--progress-bar', 'off', '--dest', folder, `${packageName}==${version}`);
  const env = { ...pythonEnvironment(environment), TMPDIR: temporary };
  const { exitCode, lines, startError } = await runPip(python, args, env, { ...request, folder });
  throwIfCancelled(signal, `downloading ${packageName}`);
  const wheel = exitCode === 0 ? readdirSync(folder).find((name) => name.endsWith('.whl')) : undefined;
  if (wheel === undefined) throw downloadFailed(python, request, lines, startError);
  return join(folder, wheel);
};

interface PipOutcome {
  readonly exitCode: number | null;
  readonly lines: readonly string[];
  readonly startError: unknown;
}

function runPip(
  python: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  { folder, bytes, emit, signal }: WheelRequest,
): Promise<PipOutcome> {
  return new Promise((resolve) => {
    const child = withStreams(spawn(python, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] }));
    const lines: string[] = [];
    const take = (chunk: Buffer) => {
      for (const line of chunk
        .toString()
        .split('\n')
        .filter((text) => text.trim() !== '')) {
        lines.push(line.trim());
        emit({ type: 'log', source: 'pip', severity: 'verbose', message: line.trim() });
      }
    };
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    const stop = () => child.kill('SIGTERM');
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    const poll = setInterval(() => {
      const done = bytesUnder(folder);
      emit({ type: 'progress', phase: 'download', done, total: bytes });
    }, POLL_MS);
    const end = (exitCode: number | null, startError?: unknown) => {
      clearInterval(poll);
      signal.removeEventListener('abort', stop);
      resolve({ exitCode, lines, startError });
    };
    child.on('error', (error) => end(null, error));
    child.on('close', (exitCode) => end(exitCode));
  });
}

/** Bytes that pip has written so far; its temporary files are below the folder too, because TMPDIR points there. */
function bytesUnder(folder: string): number {
  let sum = 0;
  for (const item of existsSync(folder) ? readdirSync(folder, { withFileTypes: true }) : []) {
    const path = join(folder, item.name);
    try {
      sum += item.isDirectory() ? bytesUnder(path) : statSync(path).size;
    } catch {
      // The file was renamed between listing and looking.
    }
  }
  return sum;
}

function downloadFailed(
  python: string,
  { packageName, version, processor }: WheelRequest,
  lines: readonly string[],
  startError: unknown,
): TrtforgeError {
  const what = `${packageName} ${version}`;
  const byHand =
    `download the wheel elsewhere (pip download --no-deps --only-binary :all: --platform ${wheelTag(processor)} ` +
    `${packageName}==${version}) and pass it with --wheel FILE.`;
  if (startError !== undefined) {
    const why = systemErrorCode(startError) === 'ENOENT' ? 'is not installed' : 'could not be started';
    return new TrtforgeError('TF_DOWNLOAD_FAILED', `${what} cannot be downloaded: ${python} ${why}.`, {
      remedy: `Install python3 with pip, or ${byHand}`,
      cause: startError,
    });
  }
  const text = lines.join('\n');
  if (/No module named pip/.test(text)) {
    return new TrtforgeError('TF_DOWNLOAD_FAILED', `${what} cannot be downloaded: ${python} has no pip.`, {
      remedy: `Install pip (Debian, Ubuntu: apt install python3-pip), or ${byHand}`,
    });
  }
  const unknownVersion = /No matching distribution|Could not find a version/.test(text);
  const why = unknownVersion ? 'pip finds no wheel of this version for this machine' : 'pip failed';
  return new TrtforgeError(
    'TF_DOWNLOAD_FAILED',
    `${what} cannot be downloaded: ${why}. Its last lines:\n${lines.slice(-LAST_LINES).join('\n')}`,
    { remedy: `Check the version, the network and pip's settings (pip config list), or ${byHand}` },
  );
}
