import { namesIn } from '../../base/files/files.js';
import type { CommandRunner } from '../../base/process/command.js';
import { type Host, sitePackages } from './places.js';

/** A TensorRT package that dpkg has installed: `libnvinfer10`, 10.6.0.26, built for CUDA 12.6. */
export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  readonly cudaVersion: string | null;
}

const TIMEOUT_MS = 5000;

const PATTERNS = ['libnvinfer*', 'libnvonnxparsers*', 'tensorrt*', 'libnvparsers*'];

/** TensorRT as the host's package manager sees it; none where there is no dpkg. */
export async function debianPackages(run: CommandRunner): Promise<readonly DebianPackage[]> {
  const format = `\${db:Status-Abbrev}\\t\${Package}\\t\${Version}\\n`;
  const { stdout } = await run('dpkg-query', ['-W', '-f', format, ...PATTERNS], { timeoutMs: TIMEOUT_MS });
  return stdout.split('\n').flatMap((line) => {
    const [status, name, version] = line.split('\t');
    if (status?.startsWith('ii') !== true || name === undefined || version === undefined) return [];
    // NVIDIA writes 10.6.0.26-1+cuda12.6.
    const parts = /^(?:\d+:)?(\d+(?:\.\d+)*)(?:-\d+)?(?:\+cuda([\d.]+))?/.exec(version);
    return parts?.[1] === undefined ? [] : [{ name, version: parts[1], cudaVersion: parts[2] ?? null }];
  });
}

/** A TensorRT package in a Python's package folder: `tensorrt_cu12_bindings`, 10.6.0. */
export interface PythonPackage {
  readonly name: string;
  readonly version: string;
  readonly folder: string;
}

/** TensorRT as the Pythons on this machine see it, from the records of their installed packages. No Python is started. */
export function pythonPackages(host: Host): readonly PythonPackage[] {
  return sitePackages(host).flatMap((folder) =>
    namesIn(folder).flatMap((record) => {
      const match = /^(tensorrt(?:_[a-z0-9]+)*)-(\d[\w.]*?)(?:\.post\d+)?\.dist-info$/i.exec(record);
      return match?.[1] === undefined || match[2] === undefined
        ? []
        : [{ name: match[1].toLowerCase(), version: match[2], folder }];
    }),
  );
}
