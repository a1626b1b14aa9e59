import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readPassport } from '../../src/engines/identity/passport.js';
import { fakeEngine } from '../fakes/tensorrt/engine.js';
import { FakeBench, packNative } from '../fakes/tensorrt/library.js';
import { describeWith } from '../support/needs.js';
import { writeSampleModel } from '../support/sample-engine.js';
import { trtforge } from '../support/trtforge.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'trtforge-arm64-'));
const at = (name: string) => join(folder, name);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The kernel runs programs for Arm by qemu, in a namespace of this process alone: children of Node too, nothing of the machine changes. */
const register =
  'mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc && printf %s "$BINFMT" > /proc/sys/fs/binfmt_misc/register && exec "$@"';
const binfmt = (qemu: string) => {
  const magic = String.raw`\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00`;
  const mask = String.raw`\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff`;
  return `:qemu-aarch64:M::${magic}:${mask}:${qemu}:F`;
};

describeWith('arm64', 'trtforge on Arm, emulated', (tools) => {
  const wheel = join(tools, readdirSync(tools).find((name) => name.endsWith('.whl')) ?? '');
  const node = join(tools, 'node', 'bin', 'node');
  const project = at('project');
  const own = join(project, 'node_modules', 'trtforge');
  const model = at('sample.onnx');
  const target = 'tensorrt-rtx@1.7.1.116:sm_121:linux-aarch64';
  const environment = {
    PATH: `${dirname(node)}:/usr/bin:/bin:/usr/sbin:/sbin`,
    HOME: folder,
    XDG_CACHE_HOME: at('cache'),
    BINFMT: binfmt(join(tools, 'qemu-aarch64')),
    QEMU_LD_PREFIX: '/usr/aarch64-linux-gnu',
    PYTHON: 'no-python',
  };

  /** Node for Arm with a script. */
  const onArm = (args: readonly string[], more: NodeJS.ProcessEnv = {}) => {
    const within = ['--user', '--map-root-user', '--mount', 'sh', '-c', register, 'sh', node];
    const { stdout, stderr, status } = spawnSync('unshare', [...within, ...args], {
      cwd: folder,
      encoding: 'utf8',
      env: { ...more, ...environment },
    });
    return { stdout, stderr, status };
  };
  const run = (...args: readonly string[]) => {
    const { stdout, stderr, status } = onArm([join(own, 'bin', 'trtforge.cjs'), ...args, '--json']);
    if (!stdout.startsWith('{')) throw new Error(`It printed no result:\n${stdout}${stderr}`);
    return { status, result: JSON.parse(stdout) };
  };
  /** The same here. */
  const onX64 = async (...args: readonly string[]) =>
    (await trtforge([...args, '--json'], { ...process.env, TENSORRT_CACHE_DIR: at('x64') })).json();

  let installed: ReturnType<typeof run>;

  beforeAll(async () => {
    await writeSampleModel(model);
    // The packages as users have them, their dependencies from the clone.
    await packNative(at('packages'));
    mkdirSync(join(project, 'node_modules', '@trtforge'), { recursive: true });
    for (const name of readdirSync(join(root, 'node_modules')))
      if (name !== '@trtforge')
        symlinkSync(join(root, 'node_modules', name), join(project, 'node_modules', name));
    const unpack = (from: string, into: string) => {
      mkdirSync(into);
      const [file = ''] = readdirSync(from).filter((name) => /^trtforge-(linux-arm64-)?\d/.test(name));
      execFileSync('tar', ['-xzf', join(from, file), '--strip-components=1', '-C', into]);
    };
    unpack(at('packages'), own);
    unpack(join(at('packages'), 'linux-arm64'), join(project, 'node_modules', '@trtforge', 'linux-arm64'));
    const line = ['toolchain', 'install', 'tensorrt-rtx', '--accept-license', '--wheel', wheel];
    installed = run(...line);
  }, 300_000);

  test('toolchain install takes the wheel for Arm, by the digest that is pinned for it', () => {
    const { status, result } = installed;
    expect([status, result]).toMatchObject([0, { installed: true, wheel: { checkedBy: 'pinned' } }]);
    expect(result.folder).toBe(at('cache/trtforge/toolchains/tensorrt-rtx-1.7.1.116-aarch64'));
  }, 120_000);

  test('doctor finds the prebuilt addon, ONNX Runtime and what was installed', () => {
    const { status, result } = run('doctor');
    expect(status).toBe(0);
    expect(result.findings).toContainEqual(
      expect.objectContaining({
        ...{ id: 'machine.addon', severity: 'ok' },
        what: expect.stringContaining('@trtforge/linux-arm64'),
      }),
    );
    expect(result.onnxRuntime).toContainEqual(
      expect.objectContaining({ foundBy: 'onnxruntime-node', why: null }),
    );
    expect(result.toolchains).toMatchObject([{ name: 'tensorrt-rtx-1.7.1.116', build: { can: true } }]);
  }, 120_000);

  test('inspect, convert and verify give what they give on x86-64, to the last byte', async () => {
    const { file: _, ...facts } = run('inspect', model).result;
    const { file: __, ...factsHere } = await onX64('inspect', model);
    expect(facts).toEqual(factsHere);

    run('convert', model, '-o', at('arm.onnx'), '--precision', 'fp16');
    await onX64('convert', model, '-o', at('x64.onnx'), '--precision', 'fp16');
    expect(readFileSync(at('arm.onnx')).equals(readFileSync(at('x64.onnx')))).toBe(true);

    const line = ['verify', at('x64.onnx'), '--against', model, '--shapes', 'x:2x64'];
    const { outcome, outputs } = run(...line).result;
    expect(outcome).toBe('pass');
    expect(outputs).toEqual((await onX64(...line)).outputs);
  }, 240_000);

  test('the library for Arm builds an engine for DGX Spark, of the identity that x86-64 states for it', async () => {
    const shape = ['--profile', 'x:1x64', '--target'];
    const { status, result } = run('build', model, ...shape, 'tensorrt-rtx:sm_121', '-o', at('arm.engine'));
    expect([status, result.source]).toEqual([0, 'built']);
    const { identity, built } = readPassport(at('arm.engine'));
    expect(identity.document.target).toMatchObject({
      computeCapabilities: [121],
      os: 'linux',
      arch: 'aarch64',
    });
    expect(built.os).toBe('linux arm64');
    const planned = await onX64('build', model, ...shape, target, '--dry-run');
    expect(planned).toMatchObject({ resolved: { identity: identity.digest } });
    // Here its own library judges it.
    const judged = await onX64('engine', 'inspect', at('arm.engine'));
    const loads = (judged as unknown as { engines: { toolchains: { loads: string }[] }[] }).engines[0]!
      .toolchains;
    expect(loads.map((each) => each.loads)).toContain('unproven');
  }, 240_000);

  test.each(['10', 'rtx1'] as const)(
    'sessions compute over a fake of generation %s',
    async (fake) => {
      const bench = await FakeBench.forArm('aarch64-linux-gnu-g++', '10', 'rtx1');
      const engine = await fakeEngine(fake, bench);
      const plans = at(`plans-${fake}`);
      mkdirSync(plans);
      engine.writePlan(join(plans, 'affine.engine'), { kind: 'affine', inner: 4 });
      engine.writePlan(join(plans, 'state.engine'), { kind: 'state', inner: 4, rows: 2 });
      const script = 'test/engines/runtime/tensorrt/fake-session.mjs';
      cpSync(join(root, script), join(own, script));
      const toolchain = JSON.stringify(bench.toolchain(fake));
      const names = ['affine', 'prepared', 'state'];
      const { stdout, stderr } = onArm([join(own, script), toolchain, plans, ...names], engine.environment());
      const checks = stdout.split('\n').filter((line) => line.startsWith('{'));
      expect(checks, stderr).toHaveLength(names.length);
      const [affine, prepared, state] = checks.map((line) => JSON.parse(line));
      expect(affine).toMatchObject({ sync: [11, 13, 15, 17, 19, 21, 23, 25], misfit: 'TF_PROFILE_MISFIT' });
      expect(prepared).toMatchObject({ graph: true, sync: Array(12).fill(9), async: Array(12).fill(11) });
      expect(state).toMatchObject({ wrong: [], steps: 300, kept: 897, after: 0 });
    },
    240_000,
  );
});
