import { z } from 'zod';
import { withLoaderPath } from '../../base/process/command.js';
import { runSupervised } from '../../base/process/supervise.js';
import {
  findOrtLibraries,
  howToInstall,
  neighbourFolders,
  type OrtLibrary,
  providerNames,
} from '../../engines/runtime/onnxruntime/find-library.js';
import { ortEnvironment } from '../../engines/runtime/onnxruntime/provider-options.js';
import { catalogue } from '../../errors.js';
import type { Host } from '../../tensorrt/toolchain/places.js';
import { type Finding, findingsOf } from './finding.js';

const LOAD_TIMEOUT_MS = 20_000;

/** A build of ONNX Runtime on this machine. */
export const onnxRuntimeSchema = z.object({
  path: z.string(),
  foundBy: z.string(),
  /** null where it cannot be loaded; `why` is then the reason. */
  version: z.string().nullable(),
  buildInfo: z.string().nullable(),
  why: z.string().nullable(),
  /** Those with a library beside it; the CPU is in every build. `missing`: shared libraries that it needs and that are not found. */
  providers: z.array(z.object({ name: z.enum(['cuda', 'tensorrt']), missing: z.array(z.string()) })),
});
export type OnnxRuntimeFacts = z.infer<typeof onnxRuntimeSchema>;

/** The answer of the child that loads a library. */
export interface OnnxRuntimeAnswer {
  readonly version: string;
  readonly buildInfo: string;
  readonly providers: readonly { readonly name: 'cuda' | 'tensorrt'; readonly missing: readonly string[] }[];
}

/** Loads every library that sessions would choose from. */
export const lookForOnnxRuntimes = (host: Host): Promise<readonly OnnxRuntimeFacts[]> =>
  Promise.all(findOrtLibraries(host).map((library) => factsOfOnnxRuntime(library, host.environment)));

/** Loads a library in a process of its own, with the loader path that sessions have. */
async function factsOfOnnxRuntime(
  { path, foundBy }: OrtLibrary,
  environment: NodeJS.ProcessEnv,
): Promise<OnnxRuntimeFacts> {
  const module = new URL('../../../dist/quality/doctor/onnxruntime-child.js', import.meta.url);
  try {
    const answer = (await runSupervised(
      module,
      { path },
      {
        emit: () => {},
        signal: AbortSignal.timeout(LOAD_TIMEOUT_MS),
        graceMs: 500,
        doing: 'loading ONNX Runtime',
        env: withLoaderPath(ortEnvironment(environment), neighbourFolders(path)),
      },
    )) as OnnxRuntimeAnswer;
    const providers = answer.providers.map(({ name, missing }) => ({ name, missing: [...missing] }));
    return { path, foundBy, ...answer, providers, why: null };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { path, foundBy, version: null, buildInfo: null, why, providers: [] };
  }
}

const onnxruntime = findingsOf('onnxruntime');

export function judgeOnnxRuntime(libraries: readonly OnnxRuntimeFacts[] | undefined): readonly Finding[] {
  if (libraries === undefined) return [];
  if (libraries.length === 0)
    return [
      onnxruntime.warning(
        'missing',
        'ONNX Runtime is not installed: run, verify, record and bench have nothing to run models with.',
        catalogue.TF_ONNXRUNTIME_MISSING.remedy,
      ),
    ];
  const ready = libraries.flatMap(({ providers }) =>
    providers.filter(({ missing }) => missing.length === 0).map(({ name }) => name),
  );
  const absent = (['cuda', 'tensorrt'] as const).filter((name) => !ready.includes(name));
  return [
    ...libraries.flatMap((library, index) => judgeLibrary(library, index)),
    ...(absent.length === 0
      ? []
      : [
          onnxruntime.info(
            'providers',
            `No ONNX Runtime here has a provider that loads for ${absent.map((name) => providerNames[name]).join(' and ')}.`,
            howToInstall(absent.includes('tensorrt') ? 'tensorrt' : 'cuda'),
          ),
        ]),
  ];
}

function judgeLibrary(library: OnnxRuntimeFacts, index: number): readonly Finding[] {
  const { path, foundBy, version, buildInfo, why, providers } = library;
  if (version === null)
    return [onnxruntime.warning(`library-${index}`, `${path} (${foundBy}) cannot be loaded: ${why}`)];
  const loaded = ['cpu', ...providers.filter(({ missing }) => missing.length === 0).map(({ name }) => name)];
  const commit = /git-commit-id=(\w+)/.exec(buildInfo ?? '')?.[1];
  const build = commit === undefined ? '' : `, commit ${commit}`;
  return [
    onnxruntime.ok(
      `library-${index}`,
      `ONNX Runtime ${version} (${foundBy}${build}): ${path}; providers: ${loaded.join(', ')}`,
    ),
    ...providers
      .filter(({ missing }) => missing.length > 0)
      .map(({ name, missing }) =>
        onnxruntime.warning(
          `${name}-${index}`,
          `Its ${providerNames[name]} provider does not load: it needs ${missing.join(', ')}.`,
          'Add their folders to LD_LIBRARY_PATH, or install them beside it with pip (docs/onnxruntime.md).',
        ),
      ),
  ];
}
