import { spawn } from 'node:child_process';
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bytesSource } from '../../../src/base/files/byte-source.js';
import { TrtforgeError } from '../../../src/errors.js';
import type { WorkEvent } from '../../../src/events.js';
import type { WheelSource } from '../../../src/tensorrt/toolchain/download-wheel.js';
import { surveyToolchains } from '../../../src/tensorrt/toolchain/find.js';
import {
  type InstallEnvironment,
  type InstallRequest,
  installToolchain,
  removeToolchain,
} from '../../../src/tensorrt/toolchain/install.js';
import { readManifest } from '../../../src/tensorrt/toolchain/manifest.js';
import { openWheel } from '../../../src/tensorrt/toolchain/wheel.js';
import { fakeMachine } from '../../fakes/machine.js';
import { type FakeWheel, writeWheel } from '../../fakes/wheel.js';
import { mutations } from '../../support/mutations.js';

let folder = '';
let toolchains = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trtforge-install-'));
  toolchains = join(folder, 'toolchains');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const noDownload: WheelSource = async () => {
  throw new Error('Nothing should be downloaded.');
};

/** Gives a wheel made here, the way pip would put it into the folder. */
const serving =
  (fake: FakeWheel): WheelSource =>
  async ({ folder: into }) =>
    writeWheel(into, fake);

function install(request: Partial<InstallRequest>, host: Partial<InstallEnvironment> = {}) {
  return installToolchain(
    {
      acceptLicense: true,
      folder: toolchains,
      command: 'trtforge toolchain install tensorrt-rtx',
      ...request,
    },
    {
      platform: 'linux',
      architecture: 'x64',
      wheels: noDownload,
      now: () => new Date('2026-01-02T03:04:05Z'),
      emit: () => {},
      signal: new AbortController().signal,
      ...host,
    },
  );
}

/** What lies in the folder of toolchains, hidden leftovers included. */
const left = () => (existsSync(toolchains) ? readdirSync(toolchains) : []);

describe('installing tensorrt-rtx', () => {
  it('unpacks a wheel at hand, states where its licence is, and is found afterwards', async () => {
    const wheel = writeWheel(folder, { version: '1.9.0.1' });
    const installed = await install({ wheel });
    expect(installed).toMatchObject({
      isNew: true,
      folder: join(toolchains, 'tensorrt-rtx-1.9.0.1-x86_64'),
      manifest: {
        version: '1.9.0.1',
        license: 'tensorrt_rtx_cu13_libs-1.9.0.1.dist-info/licenses/LICENSE.txt',
        wheel: { file: basename(wheel), checkedBy: 'record' },
        installedAt: '2026-01-02T03:04:05.000Z',
      },
    });
    expect(left()).toEqual(['tensorrt-rtx-1.9.0.1-x86_64']);
    const machine = fakeMachine({}, { TRTFORGE_TOOLCHAINS: toolchains });
    expect((await surveyToolchains(machine)).toolchains).toMatchObject([
      { name: 'tensorrt-rtx-1.9.0.1', foundBy: 'installed by trtforge', cudaMajor: 13 },
    ]);
    rmSync(machine.root, { recursive: true });
  });

  it('downloads what was asked for, with phases and progress', async () => {
    const events: WorkEvent[] = [];
    const asked: unknown[] = [];
    const wheels: WheelSource = async (request) => {
      asked.push([request.packageName, request.version]);
      return serving({ version: '1.9.0.1' })(request);
    };
    await install({ version: '1.9.0.1' }, { wheels, emit: (event) => events.push(event) });
    expect(asked).toEqual([['tensorrt-rtx-cu13-libs', '1.9.0.1']]);
    expect(events.flatMap((event) => (event.type === 'phase-end' ? [event.phase] : []))).toEqual([
      'download',
      'check',
      'unpack',
    ]);
    const progress = events.filter((event) => event.type === 'progress').at(-1);
    expect(progress).toMatchObject({ phase: 'unpack', done: expect.any(Number) });
    expect(progress?.type === 'progress' && progress.done === progress.total).toBe(true);
  });

  it('does nothing when it is there already, and asks for no licence', async () => {
    const wheel = writeWheel(folder);
    await install({ wheel });
    expect(await install({ version: '1.9.0.1', acceptLicense: false })).toMatchObject({ isNew: false });
  });

  it('stops before anything happens when the licence is not accepted, with the exact command', async () => {
    const refused = install({
      acceptLicense: false,
      command: 'trtforge toolchain install tensorrt-rtx --folder /x',
    });
    await expect(refused).rejects.toMatchObject({
      code: 'TF_LICENSE_NOT_ACCEPTED',
      exitCode: 2,
      message: expect.stringMatching(/NVIDIA Corporation/),
      remedy: expect.stringMatching(
        /https:\/\/docs\.nvidia\.com.*LICENSE\.txt.*trtforge toolchain install tensorrt-rtx --folder \/x --accept-license$/,
      ),
    });
    expect(left()).toEqual([]);
  });

  it.each([
    ['darwin', 'arm64'],
    ['win32', 'x64'],
    ['linux', 'ia32'],
  ])('reports by name that %s on %s is not served', async (platform, architecture) => {
    await expect(install({}, { platform, architecture })).rejects.toMatchObject({
      code: 'TF_PLATFORM_UNSUPPORTED',
      exitCode: 3,
      message: expect.stringContaining(`${platform} on ${architecture}`),
    });
  });

  const onArm = { architecture: 'arm64' };
  const armWheel = () => writeWheel(folder, { tag: 'py3-none-manylinux_2_35_aarch64', machine: 'arm64' });

  it('takes the wheel of its processor, by the digest of that one', async () => {
    expect(await install({ wheel: armWheel() }, onArm)).toMatchObject({
      folder: join(toolchains, 'tensorrt-rtx-1.9.0.1-aarch64'),
    });
    const pinned = { version: '1.7.1.116', tag: 'py3-none-manylinux_2_35_aarch64' };
    await expect(install({ wheel: writeWheel(folder, pinned) }, onArm)).rejects.toMatchObject({
      code: 'TF_TOOLCHAIN_MISMATCH',
      message: expect.stringContaining('ec8b6cb95a8ea61e31d544dbc5039d35219b311999f92c518a3889aaae74359c'),
    });
    await expect(install({ wheel: writeWheel(folder) }, onArm)).rejects.toMatchObject({
      code: 'TF_TOOLCHAIN_MISMATCH',
    });
  });

  it('keeps toolchains of two processors in one folder, of which each machine finds its own', async () => {
    await install({ wheel: writeWheel(folder) });
    await install({ wheel: armWheel() }, onArm);
    expect(left().sort()).toEqual(['tensorrt-rtx-1.9.0.1-aarch64', 'tensorrt-rtx-1.9.0.1-x86_64']);
    for (const [architecture, processor] of Object.entries({ x64: 'x86_64', arm64: 'aarch64' })) {
      const machine = { ...fakeMachine({}, { TRTFORGE_TOOLCHAINS: toolchains }), architecture };
      const { toolchains: found, damaged } = await surveyToolchains(machine);
      expect(found.map((each) => each.folder)).toEqual([
        join(toolchains, `tensorrt-rtx-1.9.0.1-${processor}`, 'tensorrt_rtx_libs'),
      ]);
      expect(damaged).toEqual([]);
      rmSync(machine.root, { recursive: true });
    }
  });

  it('still has what an older trtforge installed, in a folder without a processor', async () => {
    const { folder: place } = await install({ wheel: writeWheel(folder) });
    const old = join(toolchains, 'tensorrt-rtx-1.9.0.1');
    renameSync(place, old);
    expect(await install({ version: '1.9.0.1' })).toMatchObject({ isNew: false, folder: old });
    const machine = fakeMachine({}, { TRTFORGE_TOOLCHAINS: toolchains });
    expect((await surveyToolchains(machine)).toolchains).toMatchObject([{ name: 'tensorrt-rtx-1.9.0.1' }]);
    const arm = await surveyToolchains({ ...machine, architecture: 'arm64' });
    expect(arm).toEqual({ toolchains: [], damaged: [] });
    rmSync(machine.root, { recursive: true });
    expect(await install({ wheel: armWheel() }, onArm)).toMatchObject({ isNew: true });
    expect(left().sort()).toEqual(['tensorrt-rtx-1.9.0.1', 'tensorrt-rtx-1.9.0.1-aarch64']);
  });

  it('rejects a version that trtforge cannot drive, before any download', async () => {
    await expect(install({ version: '1.4.0.76' })).rejects.toMatchObject({
      code: 'TF_USAGE',
      message: expect.stringMatching(/1\.4\.0\.76 is not installed: trtforge drives .* TensorRT-RTX 1\.7/),
    });
  });

  const strange: readonly [string, FakeWheel, string | undefined, RegExp][] = [
    [
      'another package',
      { packageName: 'numpy' },
      undefined,
      /is numpy 1\.9\.0\.1, not tensorrt-rtx-cu13-libs/,
    ],
    [
      'another version',
      { version: '1.9.0.1' },
      '1.8.0.1',
      /is tensorrt-rtx-cu13-libs 1\.9\.0\.1, not .* 1\.8\.0\.1/,
    ],
    [
      'another platform',
      { tag: 'py3-none-win_amd64' },
      undefined,
      /is built for py3-none-win_amd64, not for Linux on x86_64/,
    ],
    [
      'another processor',
      { tag: 'py3-none-manylinux_2_35_aarch64' },
      undefined,
      /is built for py3-none-manylinux_2_35_aarch64, not for Linux on x86_64/,
    ],
    [
      'other bytes under a pinned version',
      { version: '1.7.1.116' },
      undefined,
      /has the SHA-256 .* has e3fd45fe/,
    ],
    [
      'a member that its record does not promise',
      { record: (text) => text.replace(/(libtensorrt_rtx\.so\.1,sha256=)..../, '$1AAAA') },
      undefined,
      /libtensorrt_rtx\.so\.1 .* RECORD/,
    ],
    [
      'a member that its record does not list',
      { record: (text) => text.replace(/.*__init__.*\n/, '') },
      undefined,
      /__init__\.py, which its RECORD does not list/,
    ],
    [
      'a member that would be written elsewhere',
      { more: { '../evil.py': Buffer.from('x') } },
      undefined,
      /"\.\.\/evil\.py" would be written outside/,
    ],
    [
      'a member 2000 folders deep',
      { more: { [`${'a/'.repeat(2000)}b`]: Buffer.from('x') } },
      undefined,
      /more than 32 parts/,
    ],
    ['a member with a long name', { more: { ['a'.repeat(513)]: Buffer.from('x') } }, undefined, /512 bytes/],
  ];
  it.each(strange)('rejects a wheel with %s and leaves nothing', async (_what, fake, version, message) => {
    const wheel = writeWheel(folder, fake);
    const request = version === undefined ? { wheel } : { wheel, version };
    await expect(install(request)).rejects.toMatchObject({
      code: expect.stringMatching(/^TF_(TOOLCHAIN_MISMATCH|ARCHIVE_INVALID)$/),
      message: expect.stringMatching(message),
    });
    expect(left()).toEqual([]);
    expect(readdirSync(folder)).not.toContain('evil.py');
  });

  it.each([
    ['half a wheel', (path: string) => truncateSync(path, 500), 'TF_ARCHIVE_INVALID'],
    [
      'text',
      (path: string) => writeFileSync(path, 'version https://git-lfs.github.com/spec/v1\n'),
      'TF_ARCHIVE_INVALID',
    ],
    ['no file', (path: string) => rmSync(path), 'TF_FILE_NOT_FOUND'],
  ])('rejects %s', async (_what, damage, code) => {
    const wheel = writeWheel(folder);
    damage(wheel);
    await expect(install({ wheel })).rejects.toMatchObject({ code, exitCode: 2 });
    expect(left()).toEqual([]);
  });

  it('cancelled in the middle leaves nothing', async () => {
    const stop = new AbortController();
    const wheels: WheelSource = async (request) => {
      stop.abort();
      return serving({})(request);
    };
    await expect(install({ version: '1.9.0.1' }, { wheels, signal: stop.signal })).rejects.toMatchObject({
      code: 'TF_CANCELLED',
    });
    expect(left()).toEqual([]);
  });

  it('replaces what a damaged installation left, and does not use it meanwhile', async () => {
    const wheel = writeWheel(folder);
    const { folder: place } = await install({ wheel });
    truncateSync(join(place, 'tensorrt_rtx_libs/libtensorrt_rtx.so.1'), 10);
    expect(readManifest(place)).toBeUndefined();
    expect(await install({ wheel })).toMatchObject({ isNew: true });
    expect(readManifest(place)).toBeDefined();
  });

  it('clears what a killed installation left, and not what a running one works on', async () => {
    const ended = await endedProcess();
    mkdirSync(join(toolchains, `.tensorrt-rtx-1.9.0.1.${ended}.0a1b2c3d.unpublished`), { recursive: true });
    mkdirSync(join(toolchains, `.tensorrt-rtx-1.9.0.1.${process.pid}.0a1b2c3d.unpublished`));
    await install({ wheel: writeWheel(folder) });
    expect(left().sort()).toEqual([
      `.tensorrt-rtx-1.9.0.1.${process.pid}.0a1b2c3d.unpublished`,
      'tensorrt-rtx-1.9.0.1-x86_64',
    ]);
  });

  it('two at once end with one whole toolchain', async () => {
    const wheel = writeWheel(folder);
    const both = await Promise.all([install({ wheel }), install({ wheel })]);
    expect(both.map(({ folder: place }) => place)).toEqual([both[0].folder, both[0].folder]);
    expect(readManifest(both[0].folder)).toBeDefined();
    expect(left()).toEqual(['tensorrt-rtx-1.9.0.1-x86_64']);
  });

  it('is removed whole', async () => {
    const { folder: place } = await install({ wheel: writeWheel(folder) });
    removeToolchain(place);
    expect(left()).toEqual([]);
    expect(() => removeToolchain(place)).toThrow(/could not be written/);
  });

  it('reads only a manifest that it wrote', async () => {
    const { folder: place } = await install({ wheel: writeWheel(folder) });
    const path = join(place, 'toolchain.json');
    const good = readFileSync(path, 'utf8');
    for (const text of ['', '{', '{}', good.replace('trtforge.toolchain/1', 'other/1')]) {
      writeFileSync(path, text);
      expect(readManifest(place)).toBeUndefined();
    }
    copyFileSync(join(place, 'tensorrt_rtx_libs/__init__.py'), join(folder, 'kept'));
    writeFileSync(path, good);
    appendFileSync(join(place, 'tensorrt_rtx_libs/__init__.py'), '#');
    expect(readManifest(place)).toBeUndefined();
  });
});

describe('a wheel of any bytes', () => {
  it('is opened or rejected, never accepted by accident', () => {
    const original = readFileSync(writeWheel(folder));
    for (const bytes of mutations(original, 1500)) {
      try {
        const wheel = openWheel(bytesSource('mutated.whl', bytes));
        expect(wheel.members.length).toBeGreaterThan(0);
      } catch (error) {
        expect(error).toBeInstanceOf(TrtforgeError);
      }
    }
  });
});

function endedProcess(): Promise<number> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ['-e', '0']);
    child.on('exit', () => resolve(child.pid ?? 0));
  });
}
