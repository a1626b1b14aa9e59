import { describe, expect, test } from 'vitest';
import { builderEnvironment, withLibraries } from '../../../src/tensorrt/toolchain/environment.js';
import type { Toolchain } from '../../../src/tensorrt/toolchain/toolchain.js';

const toolchain: Toolchain = {
  product: 'tensorrt',
  version: '10.6.0.26',
  libraries: {
    inference: '/opt/trt/lib/libnvinfer.so.10',
    parser: '/opt/trt/lib/libnvonnxparser.so.10',
    plugins: '/opt/plugins/libnvinfer_plugin.so.10',
  },
  trtexec: null,
  foundBy: 'test',
};

describe('the environment of a process that loads TensorRT', () => {
  test('has each folder of its libraries once, before what the user looks in', () => {
    expect(withLibraries(toolchain, { LD_LIBRARY_PATH: '/usr/lib', HOME: '/home/me' })).toEqual({
      LD_LIBRARY_PATH: '/opt/trt/lib:/opt/plugins:/usr/lib',
      HOME: '/home/me',
    });
    expect(withLibraries(toolchain, {}).LD_LIBRARY_PATH).toBe('/opt/trt/lib:/opt/plugins');
  });

  test.each(['', ':', '/usr/lib:', ':/usr/lib', '/usr/lib::/lib'])(
    'has no empty item, which would be the working folder: LD_LIBRARY_PATH=%s',
    (given) => {
      const items = withLibraries(toolchain, { LD_LIBRARY_PATH: given }).LD_LIBRARY_PATH?.split(':');
      expect(items).toEqual(['/opt/trt/lib', '/opt/plugins', ...given.split(':').filter(Boolean)]);
    },
  );

  test('asks the C library for huge pages where it builds, unless the user has set that already', () => {
    const built = (given?: string) =>
      builderEnvironment(toolchain, given === undefined ? {} : { GLIBC_TUNABLES: given });
    expect(built()).toEqual({
      LD_LIBRARY_PATH: '/opt/trt/lib:/opt/plugins',
      GLIBC_TUNABLES: 'glibc.malloc.hugetlb=1',
    });
    expect(built('glibc.malloc.arena_max=1').GLIBC_TUNABLES).toBe(
      'glibc.malloc.arena_max=1:glibc.malloc.hugetlb=1',
    );
    expect(built('glibc.malloc.hugetlb=0').GLIBC_TUNABLES).toBe('glibc.malloc.hugetlb=0');
  });
});
