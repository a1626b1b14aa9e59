import { existsSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { namesIn } from '../../../base/files/files.js';
import { flagOf } from '../../../base/options/option.js';
import { behaviour } from '../../../behaviour/facts.js';
import { TrtforgeError } from '../../../errors.js';
import { thisMachine } from '../../../tensorrt/toolchain/find.js';
import { type Host, sitePackages } from '../../../tensorrt/toolchain/places.js';
import { placeOptions } from '../back-end.js';
import type { OrtProvider } from './ort-provider.js';

/** A build of ONNX Runtime: its core library, and beside it those of its providers. */
export interface OrtLibrary {
  readonly path: string;
  /** `ORT_HOME`, `onnxruntime-node`, `pip package`, … */
  readonly foundBy: string;
}

/** Folders of an installation, a wheel and a build tree that hold the library. */
const SUBFOLDERS = ['', 'lib', 'lib64', 'capi', 'onnxruntime/capi', 'Release', 'build/Linux/Release'];

/** The library of a provider, which ONNX Runtime loads from beside its own. */
export const providerLibrary = (path: string, provider: 'shared' | 'cuda' | 'tensorrt'): string =>
  join(dirname(path), `libonnxruntime_providers_${provider}.so`);

/** The libraries on this machine, the most deliberate first: what ORT_HOME names, the npm package's, Python packages'. */
export function findOrtLibraries(host: Host): readonly OrtLibrary[] {
  const { ORT_HOME } = host.environment;
  return [
    ...(ORT_HOME ? librariesIn(ORT_HOME, 'ORT_HOME') : []),
    ...npmLibraries(),
    ...sitePackages(host).flatMap((site) => librariesIn(join(site, 'onnxruntime', 'capi'), 'pip package')),
  ];
}

/** The library that `named`, a file or a folder, is or has. */
function librariesIn(named: string, foundBy: string): readonly OrtLibrary[] {
  if (existsSync(named) && statSync(named).isFile()) return [{ path: named, foundBy }];
  for (const sub of SUBFOLDERS) {
    const [name] = namesIn(join(named, sub)).filter((each) => /^libonnxruntime\.so(\.[\d.]+)?$/.test(each));
    if (name !== undefined) return [{ path: join(named, sub, name), foundBy }];
  }
  return [];
}

function npmLibraries(): readonly OrtLibrary[] {
  try {
    const package_ = dirname(createRequire(import.meta.url).resolve('onnxruntime-node/package.json'));
    const bin = join(package_, 'bin');
    return namesIn(bin).flatMap((napi) =>
      librariesIn(join(bin, napi, process.platform, process.arch), 'onnxruntime-node'),
    );
  } catch {
    return [];
  }
}

/**
 * The library for a provider: the one that is named (`named`, else ORT_HOME), else the first that has the provider. Undefined on the CPU where there is none.
 * Throws TF_ONNXRUNTIME_MISSING where a named place has no library, or none has the provider's.
 */
export function chooseOrtLibrary(
  provider: OrtProvider,
  named: string | undefined,
  environment: NodeJS.ProcessEnv,
): OrtLibrary | undefined {
  const place = named ?? environment.ORT_HOME;
  const flag = named === undefined ? 'ORT_HOME' : flagOf(placeOptions.onnxRuntime);
  const found = place ? librariesIn(place, flag) : findOrtLibraries(thisMachine(environment));
  if (place && found.length === 0)
    throw new TrtforgeError('TF_ONNXRUNTIME_MISSING', `${place} (${flag}) has no libonnxruntime.so.`, {
      remedy: `Pass the library, or the folder of an installation: a wheel's onnxruntime/capi, or lib of an archive.`,
    });
  if (provider === 'cpu') return found[0];
  const able = found.find(({ path }) => existsSync(providerLibrary(path, provider)));
  if (able !== undefined) return able;
  const where = found.length === 0 ? 'nowhere' : `not beside ${found.map(({ path }) => path).join(', ')}`;
  throw new TrtforgeError(
    'TF_ONNXRUNTIME_MISSING',
    `ONNX Runtime's ${providerNames[provider]} provider is not installed: libonnxruntime_providers_${provider}.so is ${where}.`,
    { remedy: howToInstall(provider) },
  );
}

export const providerNames = { cpu: 'CPU', cuda: 'CUDA', tensorrt: 'TensorRT' } as const;

/** Instructions to install a provider, and its needs. */
export const howToInstall = (provider: 'cuda' | 'tensorrt'): string =>
  `Run pip install "onnxruntime-gpu[cuda,cudnn]"${provider === 'tensorrt' ? ` and pip install ${behaviour['onnxruntime-provider'].value}` : ''} in the active Python environment, or set ORT_HOME to a build with --use_${provider} (docs/onnxruntime.md). Without it: --provider cpu.`;

/**
 * The folders that the loader needs besides the library's own: pip puts CUDA, cuDNN and TensorRT into packages beside onnxruntime's, where nothing finds
 * them; Python's onnxruntime preloads them in the same way. Empty for a library elsewhere.
 */
export function neighbourFolders(path: string): readonly string[] {
  const capi = dirname(path);
  if (!capi.endsWith(join('onnxruntime', 'capi'))) return [];
  const site = dirname(dirname(capi));
  const nvidia = join(site, 'nvidia');
  return [...namesIn(nvidia).map((name) => join(nvidia, name, 'lib')), join(site, 'tensorrt_libs')].filter(
    (folder) => existsSync(folder),
  );
}
