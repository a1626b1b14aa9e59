import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The newest of each that this Python takes, but of pycocotools the release whose figures ours are; results record which. */
const PACKAGES = [
  'onnx',
  'onnxconverter-common',
  'numpy',
  'onnxruntime',
  'polygraphy',
  'pycocotools==2.0.11',
  'faster-coco-eval',
  'jiwer==4.0.0',
  'opencv-python-headless',
  'onnxsim',
  'onnxslim',
  'onnx-graphsurgeon',
];

/** A Python with the peers installed. */
export interface Peers {
  readonly python: string;
  readonly polygraphy: string;
  /** Name to version, Python's own among them. */
  readonly versions: Readonly<Record<string, string>>;
}

/** Makes the peers' virtual environment in `folder`, once. Returns the reason where there can be none: no python3, no venv, no package index. */
export function preparePeers(folder: string): Peers | { readonly missing: string } {
  const made = pythonWith(PACKAGES, folder);
  if ('missing' in made) return made;
  return { ...made, polygraphy: join(folder, 'bin', 'polygraphy'), versions: installedVersions(made.python) };
}

/** NVIDIA's ModelOpt with its CUDA libraries takes 6 GB: it is installed in `folder` on request only, or MODELOPT_PYTHON names a Python that has it. */
export function modelOptIn(
  folder: string,
  install: boolean,
): { readonly python: string } | { readonly missing: string } {
  const own = process.env.MODELOPT_PYTHON;
  if (own !== undefined) return { python: own };
  if (install || existsSync(folder)) return pythonWith(['nvidia-modelopt[onnx]==0.47.0'], folder);
  return { missing: '--modelopt installs it (6 GB), MODELOPT_PYTHON names a Python that has it' };
}

/** A Python with these packages, in a virtual environment that is made in `folder` unless it is there. */
export function pythonWith(
  packages: readonly string[],
  folder: string,
): { readonly python: string } | { readonly missing: string } {
  const complete = join(folder, 'trtforge-complete');
  const python = join(folder, 'bin', 'python');
  const list = packages.join('\n');
  if (!existsSync(complete) || readFileSync(complete, 'utf8') !== list) {
    rmSync(folder, { recursive: true, force: true });
    const problem =
      problemOf('python3', ['-m', 'venv', folder]) ??
      problemOf(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...packages]);
    if (problem !== undefined) return { missing: problem };
    writeFileSync(complete, list);
  }
  return { python };
}

function problemOf(program: string, parameters: readonly string[]): string | undefined {
  const child = spawnSync(program, parameters, { encoding: 'utf8' });
  if (child.error) return `${program} cannot be started (${child.error.message})`;
  if (child.status === 0) return undefined;
  const last = (child.stderr || child.stdout).trim().split('\n').at(-1);
  return `«${program} ${parameters.join(' ')}» failed: ${last}`;
}

function installedVersions(python: string): Record<string, string> {
  const script = `
import importlib.metadata, json, platform, sys
versions = {name: importlib.metadata.version(name) for name in sys.argv[1:]}
print(json.dumps({"python": platform.python_version(), **versions}))`;
  const child = spawnSync(python, ['-c', script, ...PACKAGES.map((each) => each.replace(/=.*/, ''))], {
    encoding: 'utf8',
  });
  return child.status === 0 ? (JSON.parse(child.stdout) as Record<string, string>) : {};
}
