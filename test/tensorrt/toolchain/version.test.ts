import { describe, expect, it } from 'vitest';
import {
  agree,
  compareVersions,
  isInLine,
  isVersion,
  versionOfCode,
} from '../../../src/behaviour/versions.js';
import { debianPackages } from '../../../src/tensorrt/toolchain/installed-packages.js';
import { trtexecVersion, trtexecVersionIn } from '../../../src/tensorrt/toolchain/trtexec.js';
import { fakeRunner } from '../../fakes/machine.js';

describe('versions', () => {
  it.each([
    [8601, '8.6.1'],
    [10701, '1.7.1'],
    [100600, '10.6.0'],
    [101600, '10.16.0'],
    [110100, '11.1.0'],
  ])('code %i is %s', (code, version) => expect(versionOfCode(code)).toBe(version));

  it.each([
    ['10.6.0.26', '10.16.0.72', -1],
    ['10.6', '10.6', 0],
    ['10.6.0', '10.6', 1],
    ['11.0', '10.99', 1],
  ])('%s against %s', (a, b, sign) => expect(Math.sign(compareVersions(a, b))).toBe(sign));

  it('a line holds its members, two versions agree as far as both state', () => {
    expect(isInLine('10.6.0.26', '10.6')).toBe(true);
    expect(isInLine('10.60.0.1', '10.6')).toBe(false);
    expect(isInLine('10.6', '10.6.0.26')).toBe(false);
    expect(agree('10.6.0', '10.6.0.26')).toBe(true);
    expect(agree('10.6.0.26', '10.6.0')).toBe(true);
    expect(agree('10.3.0', '10.6.0.26')).toBe(false);
    expect(['10', '10.6.0.26'].every(isVersion)).toBe(true);
    expect(['', 'v10', '10.', '1.2.3.4.5'].some(isVersion)).toBe(false);
  });
});

describe('the version of a trtexec', () => {
  it.each([
    ['&&&& RUNNING TensorRT.trtexec [TensorRT v8601] # trtexec --help', '8.6.1'],
    [
      '&&&& RUNNING TensorRT.trtexec [TensorRT v101302] [b6] # /usr/src/tensorrt/bin/trtexec --help',
      '10.13.2.6',
    ],
    ['&&&& RUNNING TensorRT.trtexec [TensorRT v110100] [b106] # trtexec', '11.1.0.106'],
    ['=== Model Options ===', null],
  ])('%s', (banner, version) => expect(trtexecVersionIn(`${banner}\n=== Model Options ===\n`)).toBe(version));

  it('is asked with its own libraries before the others, and is null where it does not start', async () => {
    let path = '';
    const run = fakeRunner({
      trtexec: (_args, environment) => {
        path = environment.LD_LIBRARY_PATH ?? '';
        return '&&&& RUNNING TensorRT.trtexec [TensorRT v100600] [b26] # trtexec --help';
      },
    });
    expect(await trtexecVersion('/opt/bin/trtexec', run, { LD_LIBRARY_PATH: '/old' }, '/opt/lib')).toBe(
      '10.6.0.26',
    );
    expect(path).toBe('/opt/lib:/old');
    expect(await trtexecVersion('/opt/bin/other', run, {})).toBeNull();
  });
});

describe("the host's packages", () => {
  it('come from dpkg with version and CUDA; removed ones do not count', async () => {
    const output = [
      'ii \tlibnvinfer10\t10.6.0.26-1+cuda12.6',
      'rc \tlibnvinfer8\t8.6.1.6-1+cuda12.0',
      'ii \tlibnvonnxparsers10\t1:10.6.0.26-1',
      'un \ttensorrt\t',
      '',
    ].join('\n');
    expect(await debianPackages(fakeRunner({ 'dpkg-query': output }))).toEqual([
      { name: 'libnvinfer10', version: '10.6.0.26', cudaVersion: '12.6' },
      { name: 'libnvonnxparsers10', version: '10.6.0.26', cudaVersion: null },
    ]);
    expect(await debianPackages(fakeRunner({}))).toEqual([]);
  });
});
