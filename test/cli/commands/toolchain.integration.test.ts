import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { doctorSchema } from '../../../src/quality/doctor/doctor.js';
import { toolchainListSchema } from '../../../src/quality/doctor/toolchain-list.js';
import {
  toolchainEnvSchema,
  toolchainInstallSchema,
  toolchainRemoveSchema,
} from '../../../src/tensorrt/toolchain/result.js';
import { placeTensorrt } from '../../fakes/elf.js';
import { writeWheel } from '../../fakes/wheel.js';
import { trtforge as run } from '../../support/trtforge.js';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trtforge-command-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a command line on a machine that has nothing but what the test made in its folder. */
const trtforge = (args: readonly string[], more: NodeJS.ProcessEnv = {}) =>
  run(args, { PATH: '/usr/bin:/bin', HOME: folder, XDG_CACHE_HOME: join(folder, 'cache'), ...more });

const isServed = process.platform === 'linux' && process.arch === 'x64';

describe.skipIf(!isServed)('a toolchain from installation to removal', () => {
  it('is installed from a wheel, listed, exported, removed', async () => {
    const wheel = writeWheel(folder, { version: '1.9.0.1' });
    const install = ['toolchain', 'install', 'tensorrt-rtx', '--wheel', wheel];

    const refused = await trtforge(install);
    expect([refused.exitCode, refused.out]).toEqual([2, '']);
    expect(refused.err).toContain(
      `trtforge toolchain install tensorrt-rtx --wheel ${wheel} --accept-license`,
    );

    const installed = await trtforge([...install, '--accept-license']);
    const place = join(folder, 'cache', 'trtforge', 'toolchains', 'tensorrt-rtx-1.9.0.1-x86_64');
    expect(installed.exitCode).toBe(0);
    expect(installed.out).toContain(`tensorrt-rtx-1.9.0.1 is installed in ${place}`);
    expect(installed.out).toMatch(/dist-info\/licenses\/LICENSE\.txt$/m);
    expect(installed.err).toMatch(/unpack/);

    const again = await trtforge([...install, '--json']);
    expect(toolchainInstallSchema.parse(JSON.parse(again.out))).toMatchObject({
      installed: false,
      folder: place,
      wheel: { checkedBy: 'record' },
    });

    const list = await trtforge(['toolchain', 'list', '--json']);
    expect(toolchainListSchema.parse(JSON.parse(list.out)).toolchains).toMatchObject([
      { name: 'tensorrt-rtx-1.9.0.1', build: { can: true }, license: expect.stringMatching(/LICENSE\.txt$/) },
    ]);
    expect((await trtforge(['toolchain', 'list'])).out).toMatch(
      /^tensorrt-rtx-1\.9\.0\.1\n {2}found by {2}installed by trtforge, CUDA 13\n/m,
    );

    const env = await trtforge(['toolchain', 'env', 'tensorrt-rtx-1.9.0.1', '--format', 'pixi', '--json']);
    expect(toolchainEnvSchema.parse(JSON.parse(env.out)).variables).toEqual({
      TENSORRT_RTX_HOME: join(place, 'tensorrt_rtx_libs'),
      LD_LIBRARY_PATH: join(place, 'tensorrt_rtx_libs'),
    });

    const removed = await trtforge(['toolchain', 'remove', 'tensorrt-rtx-1.9.0.1', '--json']);
    expect(toolchainRemoveSchema.parse(JSON.parse(removed.out))).toMatchObject({ folder: place });
    expect(existsSync(place)).toBe(false);
  });

  it('lives in another folder where one is named', async () => {
    const wheel = writeWheel(folder, { version: '1.9.0.1' });
    const elsewhere = join(folder, 'elsewhere');
    const named = ['--folder', elsewhere];
    await trtforge(['toolchain', 'install', 'tensorrt-rtx', '--wheel', wheel, '--accept-license', ...named]);
    expect(existsSync(join(elsewhere, 'tensorrt-rtx-1.9.0.1-x86_64', 'toolchain.json'))).toBe(true);
    expect((await trtforge(['toolchain', 'list'])).out).not.toContain('tensorrt-rtx-1.9.0.1');
    expect((await trtforge(['toolchain', 'list', ...named])).out).toContain('tensorrt-rtx-1.9.0.1');
    const byVariable = await trtforge(['toolchain', 'list'], { TRTFORGE_TOOLCHAINS: elsewhere });
    expect(byVariable.out).toContain('tensorrt-rtx-1.9.0.1');
    const place = join(elsewhere, 'tensorrt-rtx-1.9.0.1-x86_64');
    const env = await trtforge(['toolchain', 'env', 'tensorrt-rtx-1.9.0.1', ...named, '--json']);
    expect(env.json().variables).toMatchObject({ TENSORRT_RTX_HOME: join(place, 'tensorrt_rtx_libs') });
    const removed = await trtforge(['toolchain', 'remove', 'tensorrt-rtx-1.9.0.1', ...named, '--json']);
    expect(removed.json()).toMatchObject({ exitCode: 0, folder: place });
    expect(existsSync(place)).toBe(false);
  });

  it('is installed from a wheel of the release that is asked for, and of no other', async () => {
    const wheel = writeWheel(folder, { version: '1.9.0.1' });
    const line = ['toolchain', 'install', 'tensorrt-rtx', '--wheel', wheel, '--accept-license', '--json'];
    const other = await trtforge([...line, '--version', '1.7.1.116']);
    expect(other.json()).toMatchObject({ exitCode: 2, error: { code: 'TF_TOOLCHAIN_MISMATCH' } });
    const { json } = await trtforge([...line, '--version', '1.9.0.1']);
    expect(json()).toMatchObject({ exitCode: 0, installed: true, name: 'tensorrt-rtx-1.9.0.1' });
  });

  it('found elsewhere is not ours to remove', async () => {
    placeTensorrt(join(folder, 'TensorRT-10.6.0.26', 'lib'), { version: '10.6.0.26' });
    const { exitCode, err } = await trtforge(['toolchain', 'remove', 'tensorrt-10.6.0.26']);
    expect(exitCode).toBe(2);
    expect(err).toMatch(/was not installed by trtforge/);
    expect(existsSync(join(folder, 'TensorRT-10.6.0.26', 'lib', 'libnvinfer.so.10'))).toBe(true);
  });
});

describe('what is rejected before any work', () => {
  const refused: readonly [readonly string[], number, RegExp][] = [
    [['toolchain', 'install', 'tensorrt'], 2, /the full TensorRT comes from NVIDIA/],
    [['toolchain', 'install', 'cuda'], 2, /knows no toolchain "cuda"/],
    [['toolchain', 'install', 'tensorrt-rtx', '--version', '1.7'], 2, /"1\.7" is not a version/],
    [['toolchain', 'install'], 2, /PRODUCT/],
    [['toolchain', 'env', 'nothing'], 3, /There is no toolchain named nothing/],
    [['toolchain', 'env', 'nothing', '--format', 'fish'], 2, /fish/],
    [['toolchain', 'remove', 'nothing'], 3, /There is no toolchain named nothing/],
  ];
  it.each(refused)('%j', async (words, exitCode, message) => {
    const answer = await trtforge(words);
    expect(answer.exitCode).toBe(exitCode);
    expect(answer.err).toMatch(message);
    expect(answer.out).toBe('');
  });
});

describe('trtforge doctor', () => {
  it('ends with one sentence on whether trtforge works here', async () => {
    const { exitCode, out } = await trtforge(['doctor']);
    expect(exitCode).toBe(0);
    expect(out).toMatch(/^Machine\n {2}✓ Node\.js /);
    expect(out).toMatch(/sm_90 +yes +yes +yes +no +Hopper: H100/);
    expect(out).toMatch(/trtforge works here(\.|; \d+ to look at\.)$/);
  });

  it('--json is one object of its schema', async () => {
    const { out } = await trtforge(['doctor', '--json', '--cache-dir', join(folder, 'engines')]);
    const answer: unknown = JSON.parse(out);
    expect(doctorSchema.parse(answer).store).toMatchObject({
      folder: join(folder, 'engines'),
      exists: false,
    });
    expect(answer).toMatchObject({ ok: true, exitCode: 0, command: 'doctor' });
  });
});
