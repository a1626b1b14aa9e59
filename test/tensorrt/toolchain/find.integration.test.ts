import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { TrtforgeError } from '../../../src/errors.js';
import { chooseToolchain, surveyToolchains, toolchainNamed } from '../../../src/tensorrt/toolchain/find.js';
import type { Host } from '../../../src/tensorrt/toolchain/places.js';
import { placeLibrary, placeTensorrt } from '../../fakes/elf.js';
import { fakeMachine } from '../../fakes/machine.js';

const machines: Host[] = [];
afterEach(() => {
  for (const { root } of machines.splice(0)) rmSync(root, { recursive: true, force: true });
});

function machine(...given: Parameters<typeof fakeMachine>): Host {
  const made = fakeMachine(...given);
  machines.push(made);
  return made;
}

const survey = async (host: Host) => (await surveyToolchains(host)).toolchains;

describe('places where TensorRT is found', () => {
  it('finds none on an empty machine', async () => {
    expect(await surveyToolchains(machine())).toEqual({ toolchains: [], damaged: [] });
  });

  const layouts: readonly [string, string, (m: Host) => NodeJS.ProcessEnv, string][] = [
    [
      'an archive named by TENSORRT_HOME',
      'opt/any/lib',
      (m) => ({ TENSORRT_HOME: join(m.root, 'opt/any') }),
      'TENSORRT_HOME',
    ],
    [
      'the folder of libraries itself',
      'opt/libs',
      (m) => ({ TRT_HOME: join(m.root, 'opt/libs') }),
      'TRT_HOME',
    ],
    [
      'the loader path',
      'srv/trt',
      (m) => ({ LD_LIBRARY_PATH: `/nowhere:${join(m.root, 'srv/trt')}` }),
      'loader path (LD_LIBRARY_PATH)',
    ],
    ['a Debian package', 'usr/lib/x86_64-linux-gnu', () => ({}), 'Debian package'],
    ['an NGC container', 'opt/tensorrt/lib', () => ({}), 'NGC container'],
    [
      'an unpacked archive',
      'opt/TensorRT-10.6.0.26/targets/x86_64-linux-gnu/lib',
      () => ({}),
      'archive (tar)',
    ],
    ['an archive in the home folder', 'home/TensorRT-10.6.0.26/lib', () => ({}), 'archive (tar)'],
    [
      'pip in the active venv',
      'venv/lib/python3.12/site-packages/tensorrt_libs',
      (m) => ({ VIRTUAL_ENV: join(m.root, 'venv') }),
      'pip package',
    ],
    [
      'pip in pyenv',
      'home/.pyenv/versions/3.11.7/lib/python3.11/site-packages/tensorrt_libs',
      () => ({}),
      'pip package',
    ],
    [
      'pip in an active Pixi environment',
      'work/.pixi/envs/rtx5090/lib/python3.12/site-packages/tensorrt_libs',
      (m) => ({ CONDA_PREFIX: join(m.root, 'work/.pixi/envs/rtx5090') }),
      'pip package',
    ],
    ['a conda package', 'conda/lib', (m) => ({ CONDA_PREFIX: join(m.root, 'conda') }), 'conda package'],
  ];
  it.each(layouts)('%s', async (_what, folder, environment, foundBy) => {
    const here = machine();
    placeTensorrt(join(here.root, folder), { version: '10.6.0.26' });
    const found = await survey({ ...here, environment: { ...here.environment, ...environment(here) } });
    expect(found.map(({ name, foundBy: way }) => [name, way])).toEqual([['tensorrt-10.6.0.26', foundBy]]);
    expect(found[0]).toMatchObject({
      folder: join(here.root, folder),
      flavour: 'full',
      libraries: {
        inference: join(here.root, folder, 'libnvinfer.so.10'),
        parser: join(here.root, folder, 'libnvonnxparser.so.10'),
        plugins: join(here.root, folder, 'libnvinfer_plugin.so.10'),
      },
    });
  });

  it('what the loader cache names', async () => {
    const here = machine();
    const folder = join(here.root, 'srv/cached');
    placeTensorrt(folder, { version: '8.6.1.6' });
    const cache = `2 libs found\n\tlibnvinfer.so.8 (libc6,x86-64) => ${folder}/libnvinfer.so.8\n\tlibz.so.1 (libc6,x86-64) => /lib/libz.so.1\n`;
    const found = await survey({ ...here, run: fakeMachine({ ldconfig: cache }).run });
    expect(found).toMatchObject([{ version: '8.6.1.6', foundBy: 'loader path (ldconfig)' }]);
  });

  it('what the loader cache names, which is asked again when its file changed', async () => {
    let calls = 0;
    const here = machine({ ldconfig: () => `libnvinfer.so.8 (libc6) => /none${calls++}/libnvinfer.so.8` });
    const cache = join(here.root, 'etc/ld.so.cache');
    const callsAfter = async () => {
      await survey(here);
      return calls;
    };
    expect([await callsAfter(), await callsAfter()]).toEqual([1, 2]);
    mkdirSync(join(here.root, 'etc'));
    writeFileSync(cache, 'one');
    expect([await callsAfter(), await callsAfter()]).toEqual([3, 3]);
    writeFileSync(cache, 'two');
    expect([await callsAfter(), await callsAfter()]).toEqual([4, 4]);
  });

  it('one library reached in several ways is one toolchain that reports it', async () => {
    const here = machine();
    const folder = join(here.root, 'opt/TensorRT-10.6.0.26/lib');
    placeTensorrt(folder, { version: '10.6.0.26' });
    symlinkSync(join(here.root, 'opt/TensorRT-10.6.0.26'), join(here.root, 'opt/tensorrt'));
    const found = await survey({ ...here, environment: { ...here.environment, LD_LIBRARY_PATH: folder } });
    expect(found).toMatchObject([
      {
        name: 'tensorrt-10.6.0.26',
        foundBy: 'loader path (LD_LIBRARY_PATH)',
        alsoFoundBy: ['NGC container', 'archive (tar)'],
      },
    ]);
  });

  it('two majors in one folder are two toolchains, two copies of one version have two names', async () => {
    const here = machine();
    placeTensorrt(join(here.root, 'usr/lib/x86_64-linux-gnu'), { version: '10.6.0.26' });
    placeLibrary(join(here.root, 'usr/lib/x86_64-linux-gnu/libnvinfer.so.8.6.1'), {
      symbols: { getInferLibVersion: 8601 },
    });
    placeTensorrt(join(here.root, 'opt/tensorrt/lib'), { version: '10.6.0.26' });
    const found = await survey(here);
    expect(found.map(({ name }) => name)).toEqual([
      'tensorrt-10.6.0.26',
      'tensorrt-10.6.0.26@2',
      'tensorrt-8.6.1',
    ]);
    expect(toolchainNamed(found, 'tensorrt-10.6.0.26@2', here).foundBy).toBe('Debian package');
    expect(toolchainNamed(found, 'tensorrt', here).name).toBe('tensorrt-10.6.0.26');
  });
});

describe('what a library states of itself', () => {
  const cases: readonly [string, string, Parameters<typeof placeLibrary>[1], string][] = [
    [
      'the symbol with the full version',
      'libnvinfer.so.10',
      { symbols: { tensorrt_version_10_16_1_11: null } },
      '10.16.1.11',
    ],
    [
      'the number a function returns (8.x)',
      'libnvinfer.so.8',
      { symbols: { getInferLibVersion: 8601 } },
      '8.6.1',
    ],
    [
      'the number a function returns (10.x)',
      'libnvinfer.so.10',
      { symbols: { getInferLibVersion: 101600 } },
      '10.16.0',
    ],
    ['the name of the real file', 'libnvinfer.so.10.6.0', {}, '10.6.0'],
    ['the major in the name, where nothing else speaks', 'libnvinfer.so.10', {}, '10'],
  ];
  it.each(cases)('version from %s', async (_what, name, elf, version) => {
    const here = machine();
    placeLibrary(join(here.root, 'opt/tensorrt/lib', name), elf);
    expect(await survey(here)).toMatchObject([{ version }]);
  });

  it('version and CUDA from the wheel record beside a pip folder', async () => {
    const here = machine();
    const site = join(here.root, 'home/.local/lib/python3.11/site-packages');
    placeLibrary(join(site, 'tensorrt_libs/libnvinfer.so.10'), {});
    mkdirSync(join(site, 'tensorrt_cu12_libs-10.9.0.34.dist-info'));
    expect(await survey(here)).toMatchObject([{ version: '10.9.0.34', cudaMajor: 12 }]);
  });

  it('CUDA from what it links, builder resources from the files beside it, the parser version from its file name', async () => {
    const here = machine();
    const folder = join(here.root, 'opt/tensorrt/lib');
    placeTensorrt(folder, { version: '10.16.1.11', parserVersion: '10.13.0.35', cudaMajor: 13 });
    for (const name of ['_sm90.so.10.16.1', '_ptx.so.10.16.1', '_win_sm90.so.10.16.1'])
      writeFileSync(join(folder, `libnvinfer_builder_resource${name}`), '');
    expect(await survey(here)).toMatchObject([
      { cudaMajor: 13, builderResources: ['ptx', 'sm90'], parserVersion: '10.13.0' },
    ]);
  });

  it('lean and dispatch runtimes are not taken for the full library', async () => {
    const here = machine();
    const site = join(here.root, 'usr/local/lib/python3.12/dist-packages');
    const symbols = { getInferLibVersion: 101600, getInferLibBuildVersion: 72 };
    placeLibrary(join(site, 'tensorrt_lean_libs/libnvinfer_lean.so.10'), { symbols });
    placeLibrary(join(site, 'tensorrt_dispatch_libs/libnvinfer_dispatch.so.10'), { symbols });
    expect((await survey(here)).map(({ name }) => name)).toEqual([
      'tensorrt-lean-10.16.0.72',
      'tensorrt-dispatch-10.16.0.72',
    ]);
  });

  it('files that only carry the name, and libraries of another processor, are named as damaged', async () => {
    const here = machine();
    const folder = join(here.root, 'opt/tensorrt/lib');
    placeTensorrt(folder, { version: '10.6.0.26', machine: 'arm64' });
    mkdirSync(join(here.root, 'usr/local/lib'), { recursive: true });
    writeFileSync(
      join(here.root, 'usr/local/lib/libnvinfer.so.10'),
      'version https://git-lfs.github.com/spec/v1\n',
    );
    symlinkSync('libnvinfer.so.8.6.1', join(here.root, 'usr/local/lib/libnvinfer.so.8'));
    const { toolchains, damaged } = await surveyToolchains(here);
    expect(toolchains).toEqual([]);
    expect(damaged.map(({ why }) => why)).toEqual([
      expect.stringContaining('is for arm64; this machine is x64'),
      expect.stringContaining('64-bit little-endian ELF file'),
      expect.stringContaining('libnvinfer.so.8 is a link to a file that is not there'),
    ]);
  });
});

describe('trtexec', () => {
  it('belongs to the library in its own tree', async () => {
    const here = machine();
    placeTensorrt(join(here.root, 'opt/TensorRT-10.6.0.26/lib'), { version: '10.6.0.26' });
    mkdirSync(join(here.root, 'opt/TensorRT-10.6.0.26/bin'));
    writeFileSync(join(here.root, 'opt/TensorRT-10.6.0.26/bin/trtexec'), '');
    expect(await survey(here)).toMatchObject([
      { trtexec: join(here.root, 'opt/TensorRT-10.6.0.26/bin/trtexec') },
    ]);
  });

  it('in its usual place belongs to the one library of the loader path', async () => {
    const here = machine();
    placeTensorrt(join(here.root, 'usr/lib/x86_64-linux-gnu'), { version: '10.6.0.26' });
    mkdirSync(join(here.root, 'usr/src/tensorrt/bin'), { recursive: true });
    writeFileSync(join(here.root, 'usr/src/tensorrt/bin/trtexec'), '');
    expect(await survey(here)).toMatchObject([{ trtexec: join(here.root, 'usr/src/tensorrt/bin/trtexec') }]);
  });

  it('belongs to the lean and dispatch runtimes beside that library too', async () => {
    const here = machine();
    const folder = join(here.root, 'usr/lib/x86_64-linux-gnu');
    placeTensorrt(folder, { version: '10.6.0.26' });
    for (const name of ['lean', 'dispatch'])
      placeLibrary(join(folder, `libnvinfer_${name}.so.10`), {
        soname: `libnvinfer_${name}.so.10`,
        symbols: { tensorrt_version_10_6_0_26: null },
      });
    mkdirSync(join(here.root, 'usr/src/tensorrt/bin'), { recursive: true });
    const trtexec = join(here.root, 'usr/src/tensorrt/bin/trtexec');
    writeFileSync(trtexec, '');
    expect((await survey(here)).map((each) => [each.flavour, each.trtexec])).toEqual([
      ['full', trtexec],
      ['lean', trtexec],
      ['dispatch', trtexec],
    ]);
  });

  it('is not lent when two libraries could be the one it loads', async () => {
    const here = machine();
    placeTensorrt(join(here.root, 'usr/lib/x86_64-linux-gnu'), { version: '10.6.0.26' });
    placeTensorrt(join(here.root, 'srv/trt'), { version: '10.3.0.26' });
    mkdirSync(join(here.root, 'usr/src/tensorrt/bin'), { recursive: true });
    writeFileSync(join(here.root, 'usr/src/tensorrt/bin/trtexec'), '');
    const environment = { ...here.environment, LD_LIBRARY_PATH: join(here.root, 'srv/trt') };
    expect((await survey({ ...here, environment })).map(({ trtexec }) => trtexec)).toEqual([null, null]);
  });
});

describe('choosing', () => {
  async function several() {
    const here = machine();
    placeTensorrt(join(here.root, 'opt/tensorrt/lib'), { version: '9.3.0.1' });
    placeTensorrt(join(here.root, 'opt/TensorRT-10.6.0.26/lib'), { version: '10.6.0.26' });
    placeTensorrt(join(here.root, 'opt/TensorRT-10.60.0.1/lib'), { version: '10.60.0.1' });
    placeTensorrt(join(here.root, 'opt/TensorRT-8.6.1.6/lib'), { version: '8.6.1.6', hasParser: false });
    return survey(here);
  }

  it('takes the first of the product, or of the line asked for', async () => {
    const found = await several();
    expect(chooseToolchain(found, { product: 'tensorrt' }).version).toBe('10.6.0.26');
    expect(chooseToolchain(found, { product: 'tensorrt', version: '10.60' }).version).toBe('10.60.0.1');
    expect(chooseToolchain(found, { product: 'tensorrt', version: '10.6' }).version).toBe('10.6.0.26');
    expect(chooseToolchain(found, { product: 'tensorrt', version: '8', purpose: 'run' }).version).toBe(
      '8.6.1.6',
    );
  });

  const refused: readonly [Parameters<typeof chooseToolchain>[1], RegExp, RegExp][] = [
    [
      { product: 'tensorrt', version: '7' },
      /no tensorrt 7 to build with: found are 9\.3\.0\.1, 10\.6\.0\.26, 10\.60\.0\.1, 8\.6\.1\.6/,
      /TENSORRT_HOME/,
    ],
    [
      { product: 'tensorrt', version: '8' },
      /tensorrt-8\.6\.1\.6 in .* cannot build: its ONNX parser library is missing/,
      /TENSORRT_HOME/,
    ],
    [
      { product: 'tensorrt', version: '9' },
      /tensorrt-9\.3\.0\.1 in .* cannot build: trtforge drives TensorRT 8\.6, TensorRT 10\.x/,
      /TENSORRT_HOME/,
    ],
    [
      { product: 'tensorrt-rtx' },
      /no tensorrt-rtx is installed where trtforge looks/,
      /toolchain install tensorrt-rtx --accept-license/,
    ],
    [
      { product: 'tensorrt-rtx', version: '1.7.1.116' },
      /no tensorrt-rtx 1\.7\.1\.116/,
      /--version 1\.7\.1\.116 --accept-license/,
    ],
  ];
  it.each(refused)('rejects %j by name, with what to do and exit code 3', async (wish, message, remedy) => {
    const found = await several();
    const error = caught(() => chooseToolchain(found, wish));
    expect(error).toMatchObject({ code: 'TF_TOOLCHAIN_NOT_FOUND', exitCode: 3 });
    expect(error.message).toMatch(message);
    expect(error.remedy).toMatch(remedy);
  });

  it.each([
    // A Jetson, which TensorRT-RTX does not serve, and a card that it does.
    [87, 'tensorrt@VERSION:sm_87', null],
    [89, 'tensorrt@VERSION:sm_89', '--target tensorrt-rtx:sm_89'],
  ])('for a target of sm_%i without TensorRT, the remedy has %s', (sm, elsewhere, instead) => {
    const wish = { product: 'tensorrt', computeCapability: sm } as const;
    const { remedy } = caught(() => chooseToolchain([], wish));
    expect(remedy).toContain(`--target ${elsewhere}`);
    if (instead === null) expect(remedy).not.toContain('tensorrt-rtx');
    else expect(remedy).toContain(instead);
  });

  it('a library that has disappeared or is damaged is named, with the way to have it again', async () => {
    const here = machine();
    mkdirSync(join(here.root, 'opt/tensorrt/lib'), { recursive: true });
    symlinkSync('libnvinfer.so.10.6.0', join(here.root, 'opt/tensorrt/lib/libnvinfer.so.10'));
    const { toolchains, damaged } = await surveyToolchains(here);
    for (const purpose of ['build', 'run'] as const) {
      const error = caught(() => chooseToolchain(toolchains, { product: 'tensorrt', purpose }, damaged));
      expect(error.code).toBe('TF_TOOLCHAIN_NOT_FOUND');
      expect(error.message).toMatch(/looks\. .*libnvinfer\.so\.10 is a link to a file that is not there\.$/);
      expect(error.remedy).toMatch(/^Install the package of the library named again\. /);
      // What is built for another product runs no plan of this one.
      expect(error.remedy.includes('--target tensorrt-rtx')).toBe(purpose === 'build');
    }
  });

  it('an unknown name lists the names there are', async () => {
    const error = caught(() => toolchainNamed([], 'tensorrt-9', machine()));
    expect(error.message).toBe('There is no toolchain named tensorrt-9; found is none.');
  });
});

describe('a toolchain that is named by a folder', () => {
  it.each([
    ['an installation where nobody looks', 'srv/trt', 'srv/trt/lib'],
    ['the libraries in it', 'srv/trt/lib', 'srv/trt/lib'],
    ['an installation with a slash at its end', 'srv/trt/', 'srv/trt/lib'],
    ['an installation below the working folder', '../srv/trt', 'srv/trt/lib'],
  ])('is %s', async (_what, name, folder) => {
    const here = machine();
    placeTensorrt(join(here.root, 'srv/trt/lib'), { version: '10.6.0.26' });
    const path = name.startsWith('..') ? name : `${here.root}/${name}`;
    const found = await survey(here);
    expect(found).toEqual([]);
    expect(toolchainNamed(found, path, here)).toMatchObject({
      version: '10.6.0.26',
      folder: join(here.root, folder),
      foundBy: 'its folder',
    });
  });

  it('is the one that was found there, by its own name', async () => {
    const here = machine();
    for (const folder of ['opt/tensorrt/lib', 'opt/TensorRT-10.6.0.26/lib'])
      placeTensorrt(join(here.root, folder), { version: '10.6.0.26' });
    const found = await survey(here);
    const name = (folder: string) => toolchainNamed(found, join(here.root, folder), here).name;
    expect(name('opt/TensorRT-10.6.0.26')).toBe('tensorrt-10.6.0.26@2');
    expect(name('opt/tensorrt/lib')).toBe('tensorrt-10.6.0.26');
  });

  it.each([
    ['an unpacked archive', 'TensorRT-10.6.0.26/lib'],
    ['.venv', '.venv/lib/python3.12/site-packages/tensorrt_libs'],
    ['a Pixi environment', '.pixi/envs/default/lib/python3.12/site-packages/tensorrt_libs'],
    ['a conda package of a Pixi environment', '.pixi/envs/default/lib'],
  ])('is %s of the working folder when that is named, and never otherwise', async (_what, folder) => {
    const here = machine();
    placeTensorrt(join(here.workingFolder, folder), { version: '10.6.0.26' });
    const found = await survey(here);
    expect(found).toEqual([]);
    expect(toolchainNamed(found, '.', here).folder).toBe(join(here.workingFolder, folder));
  });

  it('is the full one where its runtimes lie beside it', () => {
    const here = machine();
    const at = (file: string) => join(here.root, 'srv/trt/lib', file);
    const symbols = { getInferLibVersion: 100600 };
    for (const file of ['libnvinfer_dispatch.so.10', 'libnvinfer_lean.so.10', 'libnvinfer.so.10'])
      placeLibrary(at(file), { symbols });
    expect(toolchainNamed([], join(here.root, 'srv/trt'), here).flavour).toBe('full');
  });

  it('is rejected with what is wrong with the libraries there', () => {
    const here = machine();
    const folder = join(here.root, 'srv/trt');
    expect(caught(() => toolchainNamed([], folder, here)).message).toMatch(/srv\/trt holds no TensorRT/);
    mkdirSync(join(folder, 'lib'), { recursive: true });
    writeFileSync(join(folder, 'lib/libnvinfer.so.10'), 'text');
    const error = caught(() => toolchainNamed([], folder, here));
    expect([error.code, error.message]).toEqual([
      'TF_TOOLCHAIN_NOT_FOUND',
      expect.stringMatching(/holds no TensorRT .*libnvinfer\.so\.10/),
    ]);
  });
});

function caught(action: () => unknown): TrtforgeError {
  try {
    action();
  } catch (error) {
    if (error instanceof TrtforgeError) return error;
    throw error;
  }
  throw new Error('Nothing was thrown.');
}
