import { copyFileSync, cpSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import type { TarEntry } from '../../../base/archive/tar-writer.js';
import { makeFolder } from '../../../base/files/folders.js';
import { kindOf } from '../../../base/files/user-files.js';
import { shellLine, shellWords } from '../../../base/text/shell-line.js';
import { parseProfile } from '../../../engines/profiles/profile.js';
import { inPhase } from '../../../events.js';
import { viewModel } from '../../../formats/onnx/model.js';
import { interfaceOf } from '../../../formats/onnx/values.js';
import type { CommandContext } from '../../command.js';
import {
  type FailingRun,
  isSameFailure,
  type Line,
  lineOf,
  resultIn,
  runLine,
  withoutStores,
} from './failing-run.js';
import { type PackedInputs, withPlaces } from './packed-inputs.js';
import type { Redact } from './redaction.js';
import { MOST_RUNS, reduceModels } from './reduced-models.js';
import type { BugReport } from './result.js';

/** The verb that passes when it has found a failure. */
export const SEARCH = 'bisect';

export interface Packing {
  readonly withWeights: boolean;
  readonly reduced: boolean;
  readonly captureApi: boolean;
  readonly work: string;
}

interface Packed {
  readonly line: Line;
  readonly own: FailingRun;
  readonly packed: PackedInputs;
  readonly packing: Packing;
}

type NamedFile = { readonly name: string; readonly path: string };

/** What the archive has instead of the user's files, and how the line ends with it. */
interface Seeding extends Pick<BugReport, 'isReproduced' | 'reduced' | 'repeat'> {
  readonly seeded: FailingRun | null;
  readonly files: readonly NamedFile[];
  readonly models: readonly NamedFile[];
  /** Runs the line on the packed files, with its own store. */
  readonly run: (name: string, more: NodeJS.ProcessEnv) => Promise<FailingRun>;
}

/** Runs the line on the packed files where their weights are seeded, and reduces them where that is requested. */
export async function seededRun(
  { line, own, packed, packing }: Packed,
  context: CommandContext,
): Promise<Seeding> {
  const { emit, signal, environment } = context;
  const at = (name: string) => join(packing.work, name);
  const next = resultIn<{ readonly next?: { readonly bisect?: string | null } }>(own.output)?.next?.bisect;
  // What differs in numbers alone is reduced by the search that compares the numbers inside.
  const isSearched = packing.reduced && (line.verb.path === SEARCH || typeof next === 'string');
  const chosen = isSearched && next ? await lineOf(shellWords(next), context) : line;
  let [folder, models] = [at('report'), packed.models];
  /** The lines that show the failure of the part of a search. */
  let found: string | null = null;
  /** A line on the packed models, or on parts of them. */
  const placed = (of: Line, shown: (place: string) => string): Line => {
    const [whole, parts] = [at('report'), folder].map((each) =>
      packed.models.map((name) => join(each, name)),
    );
    return withFiles(folder === at('part') ? withSizes(of, whole!, parts!) : of, packed, shown);
  };
  const run = (name: string, more: NodeJS.ProcessEnv = {}) => {
    makeFolder(at(name));
    // The engine of a run that passes goes into no store of the user.
    const ownStore = { ...environment, TENSORRT_CACHE_DIR: at('engines'), ARTIFACTS_BUCKET: '', ...more };
    const onFiles = found === null ? placed(chosen, (place) => join(folder, place)) : searched;
    return runLine(withoutStores(onFiles), at(name), context, ownStore);
  };
  const searched = placed(chosen, (place) => join(folder, place));
  const nodesOf = () => Math.max(0, ...models.map((name) => nodesIn(join(folder, name))));
  const of = nodesOf();
  const made = (
    ended: Pick<Seeding, 'seeded' | 'isReproduced'>,
    tried: number,
    why: string | null,
  ): Seeding => ({
    ...ended,
    repeat:
      found ?? shellLine(['trtforge', ...line.verb.path.split(' '), ...placed(line, (place) => place).args]),
    files: filesIn(folder),
    models: models.map((name) => ({ name, path: join(folder, name) })),
    run,
    reduced: packing.reduced ? { nodes: why === null ? nodesOf() : null, of, tried, why } : null,
  });
  if (packing.withWeights || models.length === 0)
    return made({ seeded: null, isReproduced: null }, 0, 'The line read no model.');
  const seeded = await inPhase('run with seeded weights', emit, () => run('seeded'));
  const part = isSearched ? resultIn<{ readonly reduced?: SearchedPart }>(seeded.output)?.reduced : undefined;
  const isReproduced = isSearched ? Boolean(part) : isSameFailure(seeded, own);
  if (!isReproduced || !packing.reduced)
    return made({ seeded, isReproduced }, 0, 'With seeded weights the line does not fail in the same way.');
  folder = at('part');
  cpSync(at('report'), folder, {
    recursive: true,
    filter: (path) => !models.includes(relative(at('report'), path)),
  });
  if (part) {
    for (const file of [part.model, part.inputs, part.expected]) {
      makeFolder(join(folder, 'reduced'));
      copyFileSync(file, join(folder, 'reduced', basename(file)));
    }
    models = [join('reduced', basename(part.model))];
    found = part.commands.join(' && ').replaceAll(dirname(part.model), 'reduced');
    return made({ seeded, isReproduced }, 1, null);
  }
  const { run: smallest, tried } = await inPhase('reduce', emit, () =>
    reduceModels({
      whole: at('report'),
      into: folder,
      models,
      message: seeded.error?.message ?? '',
      attempt: async (count) => {
        const ended = await run(`part-${count}`);
        emit({ type: 'progress', phase: 'reduce', done: count + 1, total: MOST_RUNS });
        return isSameFailure(ended, seeded) ? ended : null;
      },
      signal,
    }),
  );
  if (smallest !== null) return made({ seeded: smallest, isReproduced }, tried, null);
  folder = at('report');
  return made({ seeded, isReproduced }, tried, 'No part of the models fails by itself in the same way.');
}

export const asEntry = ({ name, path }: NamedFile): TarEntry => ({ name, content: { path } });

/** The part that `bisect` found: paths, and the lines that show its failure. */
interface SearchedPart {
  readonly model: string;
  readonly inputs: string;
  readonly expected: string;
  readonly commands: readonly string[];
}

/** The line for parts of models, which have other inputs than its profile names: with the sizes of the profile by the names of open dimensions. */
function withSizes(line: Line, models: readonly string[], parts: readonly string[]): Line {
  const at = line.args.indexOf('--profile');
  if (at < 0 || line.args.includes('--profile', at + 1)) return line;
  const inputsOf = (paths: readonly string[]) =>
    paths.flatMap((path) => viewModel(path, ({ proto }) => interfaceOf(proto).inputs));
  const profile = parseProfile(line.args[at + 1] ?? '');
  const sizes = new Map(
    inputsOf(models).flatMap(({ name, shape }) => {
      const { min, opt, max } = profile.get(name) ?? {};
      return (shape ?? []).map((dim, axis) => [dim, `${min?.[axis]}/${opt?.[axis]}/${max?.[axis]}`] as const);
    }),
  );
  const open = new Set(inputsOf(parts).flatMap(({ shape }) => shape ?? []));
  const dims = [...open].flatMap((dim) =>
    typeof dim === 'string' && sizes.has(dim) ? ['--dim', `${dim}=${sizes.get(dim)}`] : [],
  );
  return { ...line, args: line.args.toSpliced(at, 2, ...dims) };
}

const nodesIn = (path: string): number => viewModel(path, ({ proto }) => proto.graph!.node.length);

export const entry = (name: string, text: string): TarEntry => ({ name, content: Buffer.from(text) });

/** The line on the packed files. */
const withFiles = (line: Line, { places }: PackedInputs, shown: (place: string) => string): Line => ({
  ...line,
  args: line.args.map((arg) => withPlaces(arg, places, shown)),
});

/** The files that a run wrote before it failed: texts always, others where weights may be packed; never engines, which can be built again. */
export function outputsOf(
  run: string,
  folder: string,
  withWeights: boolean,
  redact: Redact,
): readonly TarEntry[] {
  return filesIn(join(run, 'outputs'), folder).flatMap((file): readonly TarEntry[] => {
    const kind = kindOf(file.path);
    if (kind === undefined || kind === 'a TensorRT plan') return [];
    if (/text|JSON|XML/.test(kind)) return [entry(file.name, redact(readFileSync(file.path, 'utf8')))];
    return withWeights ? [asEntry(file)] : [];
  });
}

/** The files in a folder, in whose place their names have another. */
export function filesIn(folder: string, place = ''): readonly NamedFile[] {
  if (statSync(folder, { throwIfNoEntry: false }) === undefined) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((each) => each.isFile())
    .map((each) => join(each.parentPath, each.name))
    .map((path) => ({ name: join(place, relative(folder, path)), path }));
}
