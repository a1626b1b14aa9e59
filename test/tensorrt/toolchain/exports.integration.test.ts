import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { exportsOf, exportText } from '../../../src/tensorrt/toolchain/exports.js';
import type { FoundToolchain } from '../../../src/tensorrt/toolchain/find.js';

function toolchain(changes: Partial<FoundToolchain>): FoundToolchain {
  return {
    name: 'tensorrt-10.6.0.26',
    product: 'tensorrt',
    version: '10.6.0.26',
    libraries: { inference: '/opt/TensorRT-10.6.0.26/lib/libnvinfer.so.10', parser: null, plugins: null },
    trtexec: '/opt/TensorRT-10.6.0.26/bin/trtexec',
    foundBy: 'archive (tar)',
    folder: '/opt/TensorRT-10.6.0.26/lib',
    flavour: 'full',
    alsoFoundBy: [],
    parserVersion: null,
    cudaMajor: null,
    builderResources: [],
    ...changes,
  };
}

const archive = toolchain({});
const wheel = toolchain({
  name: 'tensorrt-rtx-1.7.1.116',
  product: 'tensorrt-rtx',
  version: '1.7.1.116',
  folder: "/home/it's me/tensorrt_rtx_libs",
  trtexec: null,
});
const debian = toolchain({
  folder: '/usr/lib/x86_64-linux-gnu',
  trtexec: '/usr/src/tensorrt/bin/trtexec',
  foundBy: 'Debian package',
});

/** What a shell has in its variables after the lines ran, starting from these. */
function afterShell(text: string, environment: NodeJS.ProcessEnv): Record<string, string> {
  const script = `${text}\nprintf '%s\\n' "$TENSORRT_HOME" "$TENSORRT_RTX_HOME" "$LD_LIBRARY_PATH" "$PATH"`;
  const [home = '', rtxHome = '', libraries = '', path = ''] = execFileSync('/bin/sh', ['-c', script], {
    env: environment,
  })
    .toString()
    .split('\n');
  return { home, rtxHome, libraries, path };
}

describe.skipIf(process.platform === 'win32')('exports for a shell', () => {
  it('put the toolchain before what is there', () => {
    const after = afterShell(exportText(archive, 'shell'), { PATH: '/bin', LD_LIBRARY_PATH: '/old' });
    expect(after).toEqual({
      home: '/opt/TensorRT-10.6.0.26',
      rtxHome: '',
      libraries: '/opt/TensorRT-10.6.0.26/lib:/old',
      path: '/opt/TensorRT-10.6.0.26/bin:/bin',
    });
  });

  it('leave no empty element, which would mean the working folder, and survive any folder name', () => {
    const after = afterShell(exportText(wheel, 'shell'), { PATH: '/bin' });
    expect(after).toMatchObject({
      rtxHome: "/home/it's me/tensorrt_rtx_libs",
      libraries: "/home/it's me/tensorrt_rtx_libs",
      path: '/bin',
    });
  });
});

describe('exports for Pixi and Docker', () => {
  it('Pixi: a table of activation variables', () => {
    const lines = exportText(archive, 'pixi').split('\n');
    expect(lines.slice(lines.indexOf('[activation.env]'))).toEqual([
      '[activation.env]',
      'TENSORRT_HOME = "/opt/TensorRT-10.6.0.26"',
      `LD_LIBRARY_PATH = "/opt/TensorRT-10.6.0.26/lib\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"`,
      `PATH = "/opt/TensorRT-10.6.0.26/bin\${PATH:+:$PATH}"`,
    ]);
  });

  it.each(['shell', 'pixi'] as const)('%s: the Python bindings of the same version', (format) => {
    expect(exportText(archive, format)).toContain("'tensorrt==10.6.0.*'");
    expect(exportText(wheel, format)).toContain("'tensorrt-rtx==1.7.1.*'");
  });

  it.each([[undefined], ['/old']])('Pixi: no empty item where LD_LIBRARY_PATH is %s', (given) => {
    // Pixi writes `export NAME="value"` for each line of the table.
    const table = exportText(archive, 'pixi').split('[activation.env]\n')[1] ?? '';
    const script = table.replace(/^(\w+) = /gm, 'export $1=');
    const { libraries } = afterShell(script, {
      PATH: '/bin',
      ...(given === undefined ? {} : { LD_LIBRARY_PATH: given }),
    });
    expect(libraries?.split(':')).toEqual(
      ['/opt/TensorRT-10.6.0.26/lib', given].filter((item) => item !== undefined),
    );
  });

  it('Dockerfile: the folder copied in, the variables of the copy', () => {
    const text = exportText(archive, 'dockerfile');
    expect(text).toContain('--build-context tensorrt=/opt/TensorRT-10.6.0.26');
    expect(text.split('\n').filter((line) => !line.startsWith('#'))).toEqual([
      'COPY --from=tensorrt . /opt/tensorrt-10.6.0.26/',
      'ENV TENSORRT_HOME=/opt/tensorrt-10.6.0.26',
      `ENV LD_LIBRARY_PATH=/opt/tensorrt-10.6.0.26/lib\${LD_LIBRARY_PATH:+:\${LD_LIBRARY_PATH}}`,
      `ENV PATH=/opt/tensorrt-10.6.0.26/bin:\${PATH}`,
    ]);
  });

  it('a system folder is not copied or put on the loader path: the same package is installed', () => {
    expect(exportsOf(debian)).toEqual({
      home: { variable: 'TENSORRT_HOME', folder: '/usr/lib/x86_64-linux-gnu' },
      libraryFolder: null,
      binaryFolder: '/usr/src/tensorrt/bin',
      python: 'tensorrt==10.6.0.*',
    });
    expect(exportText(debian, 'dockerfile')).toMatch(/apt-get install .*libnvinfer10=10\.6\.0\.26-\*/);
    expect(exportText(debian, 'shell')).not.toContain('LD_LIBRARY_PATH');
  });
});
