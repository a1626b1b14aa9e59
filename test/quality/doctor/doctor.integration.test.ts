import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { TrtforgeError } from '../../../src/errors.js';
import {
  type DoctorResult,
  doctorSchema,
  examine,
  judge,
  lookAtRemote,
  lookAtStore,
  machineProbes,
} from '../../../src/quality/doctor/doctor.js';
import type { DoctorFacts } from '../../../src/quality/doctor/doctor-facts.js';
import { driverInChild, lookForGpus } from '../../../src/quality/doctor/gpu.js';
import { lookForOnnxRuntimes } from '../../../src/quality/doctor/onnxruntime.js';
import { thisMachine } from '../../../src/tensorrt/toolchain/find.js';
import type { DebianPackage, PythonPackage } from '../../../src/tensorrt/toolchain/installed-packages.js';
import { fakeMachine } from '../../fakes/machine.js';
import { trtforge } from '../../support/trtforge.js';
import { facts, listed, probesOf, withGpu, withoutGpu } from './fake-facts.js';

const never = new AbortController().signal;
const finding = (known: DoctorFacts, id: string) => judge(known).find((each) => each.id === id);
const toolchains = (...all: Parameters<typeof listed>[0][]) => ({
  schema: 'trtforge.toolchain-list/1' as const,
  toolchains: all.map((changes) => listed(changes)),
  damaged: [],
});

describe('a healthy machine', () => {
  it('has nothing to look at, and passes', async () => {
    const result = await examine(probesOf(facts()), never);
    expect(result.findings.filter(({ severity }) => severity !== 'ok')).toEqual([
      expect.objectContaining({ id: 'gpu.not-rtx', severity: 'info' }),
      expect.objectContaining({ id: 'tensorrt.trtexec', severity: 'info' }),
      expect.objectContaining({ id: 'onnxruntime.providers', severity: 'info' }),
    ]);
    expect(result.exitCode).toBe(0);
    expect(doctorSchema.parse(result)).toEqual(result);
  });

  it('states what each GPU is and where it stands', async () => {
    const result = await examine(probesOf(facts()), never);
    expect(result.findings).toContainEqual(
      expect.objectContaining({
        id: 'gpu.device-0',
        what: expect.stringMatching(/NVIDIA H200, sm_90 \(Hopper.*139\.0 GiB/),
      }),
    );
    expect(
      result.support.filter(({ here }) => here).map(({ computeCapability }) => computeCapability),
    ).toEqual([90]);
  });

  it('gives several GPUs the numbers that --device takes', () => {
    const [first] = withGpu.gpus;
    const two = {
      ...withGpu,
      gpus: [first!, { ...first!, index: 1, name: 'NVIDIA L4', computeCapability: 89 }],
    };
    expect([0, 1].map((index) => finding(facts({ gpus: two }), `gpu.device-${index}`)?.what)).toEqual([
      expect.stringMatching(/^0: NVIDIA H200, sm_90/),
      expect.stringMatching(/^1: NVIDIA L4, sm_89/),
    ]);
  });
});

describe('a GPU without memory of its own', () => {
  const [first] = withGpu.gpus;
  const machine = { ...facts().machine!, memoryAvailableBytes: 3 * 2 ** 30 };
  const on = (computeCapability: number) =>
    facts({ machine, gpus: { ...withGpu, gpus: [{ ...first!, computeCapability }] } });

  it.each([
    ['Orin', 87, true],
    ['Thor', 110, true],
    ['GB10', 121, true],
    ['GH200', 90, false],
    ['L4', 89, false],
  ])('%s: it is stated, and what builds need counts for both', (_, capability, isShared) => {
    expect(finding(on(capability), 'gpu.shared-memory') !== undefined).toBe(isShared);
    expect(finding(on(capability), 'machine.memory')?.severity).toBe(isShared ? 'warning' : 'ok');
  });
});

describe('an empty machine', () => {
  it('passes: nothing of it makes trtforge unusable, and every gap has a remedy', async () => {
    const known = facts({
      gpus: withoutGpu,
      toolchains: toolchains(),
      onnxRuntime: [],
      tools: { addon: { path: '/x/trtforge.node', isBuilt: false }, compiler: null, pip: null },
    });
    const { findings, exitCode } = await examine(probesOf(known), never);
    expect(exitCode).toBe(0);
    const gaps = findings.filter(({ severity }) => severity !== 'ok');
    expect(gaps.map(({ id, severity }) => `${severity} ${id}`)).toEqual([
      'warning machine.addon',
      'info machine.pip',
      'info gpu.none',
      'warning tensorrt.none',
      'warning onnxruntime.missing',
    ]);
    for (const gap of gaps) expect(gap.remedy, gap.id).toMatch(/\w/);
  });
});

describe('builds of ONNX Runtime', () => {
  const [npm] = facts().onnxRuntime ?? [];
  const wheel = { ...npm!, path: '/pip/libonnxruntime.so.1.31.1', foundBy: 'pip package' };
  const about = async (onnxRuntime: NonNullable<DoctorFacts['onnxRuntime']>) => {
    const { findings } = await examine(probesOf(facts({ onnxRuntime })), never);
    return findings.filter(({ id }) => id.startsWith('onnxruntime.'));
  };

  it('are listed with version, commit and place; a provider that none has is named with a remedy', async () => {
    expect(await about([npm!])).toEqual([
      expect.objectContaining({
        id: 'onnxruntime.library-0',
        severity: 'ok',
        what: 'ONNX Runtime 1.30.0 (onnxruntime-node, commit f2c39fe2f): /npm/libonnxruntime.so.1; providers: cpu',
      }),
      expect.objectContaining({
        id: 'onnxruntime.providers',
        what: expect.stringMatching(/CUDA and TensorRT/),
        remedy: expect.stringMatching(/onnxruntime-gpu.*tensorrt-cu13.*ORT_HOME/),
      }),
    ]);
  });

  it('name what a provider lacks', async () => {
    const providers = [
      { name: 'cuda' as const, missing: [] },
      { name: 'tensorrt' as const, missing: ['libnvinfer.so.10', 'libnvonnxparser.so.10'] },
    ];
    const findings = await about([npm!, { ...wheel, providers }]);
    expect(findings.map(({ id, severity }) => `${severity} ${id}`)).toEqual([
      'ok onnxruntime.library-0',
      'ok onnxruntime.library-1',
      'warning onnxruntime.tensorrt-1',
      'info onnxruntime.providers',
    ]);
    expect(findings[1]?.what).toMatch(/providers: cpu, cuda$/);
    expect(findings[2]?.what).toMatch(/needs libnvinfer\.so\.10, libnvonnxparser\.so\.10\.$/);
  });

  it('that cannot be loaded state why', async () => {
    const [broken] = await about([{ ...wheel, version: null, buildInfo: null, why: 'it is too old' }]);
    expect(broken).toMatchObject({ severity: 'warning', what: expect.stringMatching(/too old/) });
  });

  it('on this machine are loaded, each in a process of its own', async () => {
    const found = await lookForOnnxRuntimes(thisMachine({ ORT_HOME: folderOfDamage() }));
    const ours = found.find(({ foundBy }) => foundBy === 'onnxruntime-node');
    expect(ours).toMatchObject({ version: expect.stringMatching(/^1\./), why: null });
    expect(found[0]).toMatchObject({
      foundBy: 'ORT_HOME',
      version: null,
      why: expect.stringMatching(/cannot be loaded/),
    });
  });
});

function folderOfDamage(): string {
  const folder = mkdtempSync(join(tmpdir(), 'trtforge-ort-home-'));
  writeFileSync(join(folder, 'libonnxruntime.so.1'), 'no library');
  return folder;
}

describe('what makes trtforge unusable', () => {
  const cases: readonly [string, Partial<DoctorFacts>, string][] = [
    [
      'a Node.js that is too old',
      { machine: { ...(facts().machine as NonNullable<DoctorFacts['machine']>), node: '18.20.1' } },
      'machine.node',
    ],
    [
      'a store that cannot be written',
      { store: { ...(facts().store as NonNullable<DoctorFacts['store']>), isWritable: false } },
      'store.read-only',
    ],
  ];
  it.each(cases)('%s is a problem, exit code 3', async (_what, changes, id) => {
    const { findings, exitCode } = await examine(probesOf(facts(changes)), never);
    expect(exitCode).toBe(3);
    expect(findings.filter(({ severity }) => severity === 'problem')).toEqual([
      expect.objectContaining({ id, remedy: expect.stringMatching(/\w/) }),
    ]);
  });
});

describe('versions of TensorRT that meet', () => {
  const packages = (...all: readonly (readonly [string, string])[]): readonly DebianPackage[] =>
    all.map(([name, version]) => ({ name, version, cudaVersion: null }));
  const other = { version: '10.3.0.26', folder: '/srv/trt/lib', foundBy: 'loader path (LD_LIBRARY_PATH)' };
  const archive = { version: '10.3.0.26', folder: '/opt/TensorRT-10.3.0.26/lib', foundBy: 'archive (tar)' };
  const bindings = (version: string): readonly PythonPackage[] => [
    { name: 'tensorrt_cu12_bindings', version, folder: '/venv/lib/python3.12/site-packages' },
  ];

  const mixes: readonly [string, Partial<DoctorFacts>, string, RegExp][] = [
    [
      'two on the loader path',
      { toolchains: toolchains(other, {}) },
      'loader-path',
      /2 versions of TensorRT: 10\.3\.0\.26 in \/srv\/trt\/lib, 10\.6\.0\.26 in \/usr\/lib.*depends on the order/,
    ],
    [
      'two majors on the loader path',
      { toolchains: toolchains({}, { version: '8.6.1.6' }) },
      'loader-path',
      /10\.6\.0\.26 .* 8\.6\.1\.6 .*linked with one cannot load engines of the other/,
    ],
    [
      'trtexec of another version',
      { trtexecs: [{ path: '/usr/src/tensorrt/bin/trtexec', version: '10.3.0.26' }] },
      'trtexec',
      /is trtexec 10\.3\.0\.26, while libnvinfer is 10\.6\.0\.26/,
    ],
    [
      'a parser of another version',
      { toolchains: toolchains({ parserVersion: '10.3.0' }) },
      'parser',
      /the ONNX parser is 10\.3\.0 and libnvinfer is 10\.6\.0\.26/,
    ],
    [
      'packages of two versions',
      { debianPackages: packages(['libnvinfer10', '10.6.0.26'], ['libnvonnxparsers10', '10.3.0.26']) },
      'packages',
      /2 versions: libnvinfer10 10\.6\.0\.26, libnvonnxparsers10 10\.3\.0\.26/,
    ],
    [
      'the host package against the loader path',
      { toolchains: toolchains(other), debianPackages: packages(['libnvinfer10', '10.6.0.26']) },
      'host-package',
      /packages are TensorRT 10\.6\.0\.26 \(dpkg\).*load 10\.3\.0\.26 from \/srv\/trt\/lib/,
    ],
    [
      'Python bindings of another version',
      { pythonPackages: bindings('10.9.0.34') },
      'python',
      /tensorrt_cu12_bindings .* is 10\.9\.0\.34.*is 10\.6\.0\.26/,
    ],
  ];
  it.each(mixes)('%s', (_what, changes, id, what) => {
    expect(finding(facts(changes), `versions.${id}`)).toMatchObject({
      severity: 'warning',
      what: expect.stringMatching(what),
      remedy: expect.stringMatching(/\w/),
    });
  });

  const harmless: readonly [string, Partial<DoctorFacts>][] = [
    [
      'one version everywhere',
      {
        trtexecs: [{ path: '/usr/src/tensorrt/bin/trtexec', version: '10.6.0' }],
        debianPackages: packages(['libnvinfer10', '10.6.0.26'], ['libnvonnxparsers10', '10.6.0.26']),
        pythonPackages: bindings('10.6.0'),
      },
    ],
    ['an archive that is not on the loader path', { toolchains: toolchains({}, archive) }],
    [
      'a trtexec in the tree of its own archive',
      {
        toolchains: toolchains({}, { ...archive, trtexec: '/opt/TensorRT-10.3.0.26/bin/trtexec' }),
        trtexecs: [{ path: '/opt/TensorRT-10.3.0.26/bin/trtexec', version: '10.3.0.26' }],
      },
    ],
    [
      'tensorrt-rtx beside TensorRT',
      { toolchains: toolchains({}, { product: 'tensorrt-rtx', version: '1.7.1.116' }) },
    ],
  ];
  it.each(harmless)('%s is not a mixture', (_what, changes) => {
    expect(judge(facts(changes)).filter(({ topic }) => topic === 'versions')).toEqual([]);
  });

  it('in a container the host is named as the other place', () => {
    const machine = { ...(facts().machine as NonNullable<DoctorFacts['machine']>), isContainer: true };
    expect(finding(facts({ machine }), 'versions.container')).toMatchObject({
      severity: 'info',
      what: expect.stringMatching(/10\.6\.0\.26; a host with another version will not load them/),
    });
  });
});

describe('GPU and driver', () => {
  it('a driver too old for CUDA 13 is named with the toolchain that needs a newer one', () => {
    const known = facts({
      gpus: { ...withGpu, driverVersion: '550.54.15' },
      toolchains: toolchains({ cudaMajor: 13 }),
    });
    expect(finding(known, 'gpu.driver-old')?.what).toMatch(
      /tensorrt-10\.6\.0\.26 is built for CUDA 13, .* 580 .*550\.54\.15/,
    );
  });

  const smi = '0, NVIDIA L4, GPU-abc, 8.9, 23034, 570.133.20\n';
  it('nvidia-smi is asked where the CUDA driver does not answer, and that is reported', async () => {
    const machine = fakeMachine({ 'nvidia-smi': smi });
    const view = await lookForGpus(machine, async () => {
      throw new TrtforgeError('TF_NATIVE_NOT_BUILT', 'The addon is not compiled.');
    });
    expect(view).toMatchObject({
      source: 'nvidia-smi',
      failure: 'TF_NATIVE_NOT_BUILT',
      driverVersion: '570.133.20',
      gpus: [
        { index: 0, name: 'NVIDIA L4', uuid: 'GPU-abc', computeCapability: 89, memoryBytes: 23034 * 2 ** 20 },
      ],
    });
    expect(finding(facts({ gpus: view }), 'gpu.driver-silent')?.what).toMatch(/The addon is not compiled/);
    rmSync(machine.root, { recursive: true });
  });

  it.each(['', 'No devices were found\n', ', , , , ,\n', 'x, y, z, [N/A], ?, ?\n'])(
    'nvidia-smi saying %j is no GPU',
    async (output) => {
      const machine = fakeMachine({ 'nvidia-smi': output });
      expect((await lookForGpus(machine, async () => withoutGpu)).gpus).toEqual([]);
      rmSync(machine.root, { recursive: true });
    },
  );

  it('the loaded kernel driver is read from /proc where nothing else answers', async () => {
    const machine = fakeMachine();
    mkdirSync(join(machine.root, 'proc/driver/nvidia'), { recursive: true });
    const text = 'NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n';
    writeFileSync(join(machine.root, 'proc/driver/nvidia/version'), text);
    const view = await lookForGpus(machine, async () => withoutGpu);
    expect(view.driverVersion).toBe('580.65.06');
    expect(finding(facts({ gpus: view }), 'gpu.none')?.remedy).toMatch(/--gpus all/);
    rmSync(machine.root, { recursive: true });
  });
});

describe('probes that fail', () => {
  it('are named, and the others count', async () => {
    const { findings } = await examine(
      probesOf(facts({ onnxRuntime: undefined, machine: undefined })),
      never,
    );
    expect(findings.filter(({ id }) => id.includes('probe-'))).toEqual([
      expect.objectContaining({ id: 'machine.probe-machine', severity: 'warning' }),
      expect.objectContaining({
        id: 'onnxruntime.probe-onnxruntime',
        what: expect.stringMatching(/has no answer/),
      }),
    ]);
    expect(findings.some(({ id }) => id === 'gpu.device-0')).toBe(true);
  });

  it('or hang are given up after a while', async () => {
    const probes = { ...probesOf(facts()), gpus: () => new Promise<never>(() => {}) };
    const { findings, gpus } = await examine(probes, never, 100);
    expect(gpus).toEqual([]);
    expect(findings).toContainEqual(
      expect.objectContaining({
        id: 'gpu.probe-gpus',
        what: expect.stringMatching(/more than 0\.1 s and was abandoned/),
      }),
    );
  });

  it('Ctrl-C ends the examination', async () => {
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 20);
    const probes = { ...probesOf(facts()), store: () => new Promise<never>(() => {}) };
    await expect(examine(probes, stop.signal)).rejects.toMatchObject({ code: 'TF_CANCELLED' });
  });
});

describe('the store on the disk', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'trtforge-store-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('counts plans and bytes', () => {
    mkdirSync(join(folder, 'ab'));
    writeFileSync(join(folder, 'ab', 'engine.plan'), Buffer.alloc(1000));
    writeFileSync(join(folder, 'ab', 'passport.json'), '{}');
    expect(lookAtStore(folder)).toMatchObject({ exists: true, isWritable: true, engines: 1, bytes: 1002 });
  });

  it('that is not there yet is judged by the folder it would be made in', () => {
    const wanted = join(folder, 'not', 'made', 'yet');
    const store = lookAtStore(wanted);
    expect(store).toMatchObject({ folder: wanted, exists: false, isWritable: true, engines: 0 });
    expect(store.freeBytes).toBeGreaterThan(0);
  });

  it('behind a file cannot be written', () => {
    writeFileSync(join(folder, 'file'), '');
    expect(lookAtStore(join(folder, 'file', 'engines')).isWritable).toBe(false);
  });

  it.skipIf(process.getuid?.() === 0)('without permission cannot be written', () => {
    chmodSync(folder, 0o555);
    expect(lookAtStore(folder).isWritable).toBe(false);
    chmodSync(folder, 0o755);
  });
});

describe('the remote store of the environment', () => {
  const keys = { ARTIFACTS_ACCESS_KEY: 'a', ARTIFACTS_SECRET_KEY: 'b' };
  const paths: string[] = [];
  const server = createServer((request, response) => {
    paths.push(request.url ?? '');
    const missing = request.url?.startsWith('/team/') ? 'NoSuchKey' : 'NoSuchBucket';
    response.writeHead(404, { 'content-type': 'application/xml' });
    response.end(`<Error><Code>${missing}</Code></Error>`);
  });
  let url = '';
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => server.close());

  it('answers, by path where the variables of AWS name the server', async () => {
    for (const name of ['ARTIFACTS_ENDPOINT', 'AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL']) {
      paths.length = 0;
      const facts = await lookAtRemote({ [name]: url, ARTIFACTS_BUCKET: 'team', ...keys }, never);
      expect(facts).toEqual({ place: `${url}/team/engines`, failure: null, remedy: null });
      expect(paths).toEqual([expect.stringMatching(/^\/team\/engines\//)]);
    }
  });

  it.each<[string, () => NodeJS.ProcessEnv]>([
    ['has no such bucket', () => ({ ARTIFACTS_ENDPOINT: url, ARTIFACTS_BUCKET: 'other' })],
    ['does not listen', () => ({ AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:1', ARTIFACTS_BUCKET: 'team' })],
    ['is at a path', () => ({ AWS_ENDPOINT_URL_S3: `${url}/minio`, ARTIFACTS_BUCKET: 'team' })],
    ['has no bucket', () => ({ ARTIFACTS_ENDPOINT: url })],
  ])('that %s is a warning', async (_, environment) => {
    const remote = await lookAtRemote({ ...environment(), ...keys }, never);
    const { findings, exitCode } = await examine(probesOf(facts({ remote })), never);
    expect(exitCode).toBe(0);
    expect(findings.filter(({ id }) => id === 'store.remote')).toMatchObject([
      { severity: 'warning', what: remote?.failure },
    ]);
  });

  it('is that of --remote where it is passed', async () => {
    const environment = { ...process.env, ...keys, ARTIFACTS_ENDPOINT: url, ARTIFACTS_BUCKET: 'other' };
    const remoteOf = async (address: string) =>
      ((await trtforge(['doctor', '--remote', address, '--json'], environment)).json() as DoctorResult)
        .remote;
    expect(await remoteOf(`${url}/team/x`)).toMatchObject({ place: `${url}/team/x`, failure: null });
    expect(await remoteOf('none')).toBeNull();
  });

  it('is absent where nothing names one', async () => {
    expect(await lookAtRemote({ AWS_ENDPOINT_URL_S3: url }, never)).toBeNull();
  });
});

describe('this machine', () => {
  it('is examined whole, whatever it has', async () => {
    const host = fakeMachine();
    const result = await examine(machineProbes(host, { store: join(host.root, 'engines') }), never);
    expect(doctorSchema.parse(result)).toEqual(result);
    expect(result.exitCode).toBe(0);
    expect(result.findings.filter(({ id }) => id.includes('.probe-'))).toEqual([]);
    rmSync(host.root, { recursive: true });
  });

  it('is asked for its GPUs in a child that always answers', async () => {
    const answer = await driverInChild().catch((error: unknown) => error);
    if (answer instanceof Error) expect(answer).toMatchObject({ code: 'TF_NATIVE_NOT_BUILT' });
    else expect(answer).toMatchObject({ gpus: expect.any(Array) });
  });
});
