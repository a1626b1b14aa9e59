import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TrtforgeError } from '../../../src/errors.js';
import { type WorkEvent, workOf } from '../../../src/events.js';
import { pipWheels } from '../../../src/tensorrt/toolchain/download-wheel.js';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trtforge-pip-'));
  mkdirSync(join(folder, 'wheels'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A python3 of our own: a shell script that sees pip's arguments. */
function fakePython(script: string): string {
  const path = join(folder, 'python3');
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}

interface More {
  readonly emit?: (event: WorkEvent) => void;
  readonly signal?: AbortSignal;
  readonly env?: NodeJS.ProcessEnv;
}

function download(python: string, more: More = {}) {
  return pipWheels({
    packageName: 'tensorrt-rtx-cu13-libs',
    version: '1.7.1.116',
    processor: 'aarch64',
    folder: join(folder, 'wheels'),
    bytes: 1000,
    ...workOf({ ...more, environment: { ...process.env, PYTHON: python, ...more.env } }),
  });
}

describe.skipIf(process.platform === 'win32')('getting a wheel with pip', () => {
  it('asks for the wheel only, so that no code of a package runs, and keeps temporary files in the folder', async () => {
    const python = fakePython(
      `echo "$@" > "${folder}/arguments"; echo "$TMPDIR" > "${folder}/tmpdir"; touch "${folder}/wheels/a.whl"`,
    );
    expect(await download(python)).toBe(join(folder, 'wheels', 'a.whl'));
    expect(readFileSync(join(folder, 'arguments'), 'utf8')).toMatch(
      /^-m pip download --no-deps --only-binary :all: .*tensorrt-rtx-cu13-libs==1\.7\.1\.116$/m,
    );
    expect(readFileSync(join(folder, 'tmpdir'), 'utf8').trim()).toBe(join(folder, 'wheels', 'tmp'));
  });

  it('runs no pip.py of the working folder', async () => {
    const before = process.cwd();
    mkdirSync(join(folder, 'work'));
    writeFileSync(join(folder, 'work', 'pip.py'), `open(${JSON.stringify(join(folder, 'ran'))}, 'w')\n`);
    process.chdir(join(folder, 'work'));
    try {
      await expect(download('python3', { env: { PIP_NO_INDEX: '1' } })).rejects.toBeInstanceOf(TrtforgeError);
    } finally {
      process.chdir(before);
    }
    expect(existsSync(join(folder, 'ran'))).toBe(false);
  });

  it('reports how many bytes have come', async () => {
    const events: WorkEvent[] = [];
    const python = fakePython(
      `head -c 600 /dev/zero > "$TMPDIR/part"; sleep 0.6; mv "$TMPDIR/part" "${folder}/wheels/a.whl"`,
    );
    await download(python, { emit: (event) => events.push(event) });
    expect(events).toContainEqual({ type: 'progress', phase: 'download', done: 600, total: 1000 });
  });

  const failures: readonly [string, string, RegExp, RegExp][] = [
    [
      'no pip',
      'echo "python3: No module named pip" >&2; exit 1',
      /has no pip\.$/,
      /python3-pip.*--wheel FILE/,
    ],
    [
      'no such version',
      'echo "ERROR: No matching distribution found for x" >&2; exit 1',
      /no wheel of this version.*\nERROR: No matching distribution/s,
      /Check the version.*--wheel FILE/,
    ],
    [
      'no network',
      'echo "ERROR: connection refused" >&2; exit 2',
      /pip failed.*connection refused/s,
      /network/,
    ],
    ['success without a wheel', 'exit 0', /pip failed/, /--wheel FILE/],
  ];
  it.each(failures)('%s: reports it, with what to do', async (_what, script, message, remedy) => {
    await expect(download(fakePython(script))).rejects.toMatchObject({
      code: 'TF_DOWNLOAD_FAILED',
      exitCode: 3,
      message: expect.stringMatching(message),
      remedy: expect.stringMatching(remedy),
    });
  });

  it('no python3 at all: reports it and points at --wheel', async () => {
    await expect(download(join(folder, 'nowhere', 'python3'))).rejects.toMatchObject({
      code: 'TF_DOWNLOAD_FAILED',
      message: expect.stringMatching(/python3 is not installed\.$/),
      remedy: expect.stringMatching(/--platform manylinux_2_35_aarch64 .*--wheel FILE/),
    });
  });

  it('stops pip when cancelled', async () => {
    const stop = new AbortController();
    const started = join(folder, 'started');
    const stopped = download(fakePython(`touch '${started}'; exec sleep 1000000`), { signal: stop.signal });
    await expect.poll(() => existsSync(started)).toBe(true);
    stop.abort();
    await expect(stopped).rejects.toMatchObject({ code: 'TF_CANCELLED' });
  });
});
