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

export type NamedFile = { readonly name: string; readonly path: string };

/** What the archive has instead of the user's files, and how the line ends with it. */
export interface Seeding extends Pick<BugReport, 'isReproduced' | 'reduced' | 'repeat'> {
  readonly seeded: FailingRun | null;
  readonly files: readonly NamedFile[];
  readonly models: readonly NamedFile[];
  /** Runs the line on the packed files, with its own store. */
  readonly run: (name: string, more: NodeJS.ProcessEnv) => Promise<FailingRun>;
}

/** Runs the line on the packed files where their weights are seeded, and reduces them where that is requested. */
export async function seededRun(request: Packed, context: CommandContext): Promise<Seeding> {
  const { line, own, packed, packing } = request;
  const { emit, signal } = context;
  const next = resultIn<{ readonly next?: { readonly bisect?: string | null } }>(own.output)?.next?.bisect;
  // What differs in numbers alone is reduced by the search that compares the numbers inside.
  const isSearched = packing.reduced && (line.verb.path === SEARCH || typeof next === 'string');
  const chosen = isSearched && next ? await lineOf(shellWords(next), context) : line;
  const files = new PackedFiles(request, chosen, context);
  if (packing.withWeights || packed.models.length === 0)
    return files.seeding({ seeded: null, isReproduced: null }, 0, 'The line read no model.');
  const seeded = await inPhase('run with seeded weights', emit, () => files.run('seeded'));
  const part = isSearched ? resultIn<{ readonly reduced?: SearchedPart }>(seeded.output)?.reduced : undefined;
  const isReproduced = isSearched ? Boolean(part) : isSameFailure(seeded, own);
  const ended = { seeded, isReproduced };
  if (!isReproduced || !packing.reduced)
    return files.seeding(ended, 0, 'With seeded weights the line does not fail in the same way.');
  files.beginPart();
  if (part) {
    files.takeSearched(part);
    return files.seeding(ended, 1, null);
  }
  const { run: smallest, tried } = await inPhase('reduce', emit, () =>
    reduceModels({
      whole: files.whole,
      into: files.part,
      models: packed.models,
      message: seeded.error?.message ?? '',
      attempt: async (count) => {
        const attempted = await files.run(`part-${count}`);
        emit({ type: 'progress', phase: 'reduce', done: count + 1, total: MOST_RUNS });
        return isSameFailure(attempted, seeded) ? attempted : null;
      },
      signal,
    }),
  );
  if (smallest !== null) return files.seeding({ seeded: smallest, isReproduced }, tried, null);
  files.takeWhole();
  return files.seeding(ended, tried, 'No part of the models fails by itself in the same way.');
}

/** The files of the archive: all that are packed, or, once there is one, the part of them that fails. */
class PackedFiles {
  readonly whole: string;
  readonly part: string;
  readonly #request: Packed;
  /** What runs on them: the line, or the search in its place. */
  readonly #chosen: Line;
  readonly #context: CommandContext;
  readonly #wholeLine: Line;
  readonly #wholeNodes: number;
  #folder: string;
  #models: readonly string[];
  /** The lines that show the failure of the part of a search. */
  #searchedLines: string | null = null;

  constructor(request: Packed, chosen: Line, context: CommandContext) {
    this.#request = request;
    this.#chosen = chosen;
    this.#context = context;
    this.whole = this.#at('report');
    this.part = this.#at('part');
    this.#folder = this.whole;
    this.#models = request.packed.models;
    this.#wholeLine = this.#placed(chosen, (place) => join(this.whole, place));
    this.#wholeNodes = this.#nodes();
  }

  /** Runs the line on the files, with its own store. */
  run(name: string, more: NodeJS.ProcessEnv = {}): Promise<FailingRun> {
    const { environment } = this.#context;
    makeFolder(this.#at(name));
    // The engine of a run that passes goes into no store of the user.
    const ownStore = {
      ...environment,
      TENSORRT_CACHE_DIR: this.#at('engines'),
      ARTIFACTS_BUCKET: '',
      ...more,
    };
    const onFiles =
      this.#searchedLines === null
        ? this.#placed(this.#chosen, (place) => join(this.#folder, place))
        : this.#wholeLine;
    return runLine(withoutStores(onFiles), this.#at(name), this.#context, ownStore);
  }

  /** From here on the files are those of the part, which has no models yet. */
  beginPart(): void {
    this.#folder = this.part;
    cpSync(this.whole, this.part, {
      recursive: true,
      filter: (path) => !this.#models.includes(relative(this.whole, path)),
    });
  }

  takeSearched({ model, inputs, expected, commands }: SearchedPart): void {
    for (const file of [model, inputs, expected]) {
      makeFolder(join(this.part, 'reduced'));
      copyFileSync(file, join(this.part, 'reduced', basename(file)));
    }
    this.#models = [join('reduced', basename(model))];
    this.#searchedLines = commands.join(' && ').replaceAll(dirname(model), 'reduced');
  }

  takeWhole(): void {
    this.#folder = this.whole;
  }

  /** `why` states why there is no part, null where there is one. */
  seeding(ended: Pick<Seeding, 'seeded' | 'isReproduced'>, tried: number, why: string | null): Seeding {
    const { line, packing } = this.#request;
    const nodes = () => (why === null ? this.#nodes() : null);
    return {
      ...ended,
      repeat: this.#searchedLines ?? this.#repeat(line),
      files: filesIn(this.#folder),
      models: this.#models.map((name) => ({ name, path: join(this.#folder, name) })),
      run: (name, more) => this.run(name, more),
      reduced: packing.reduced ? { nodes: nodes(), of: this.#wholeNodes, tried, why } : null,
    };
  }

  #repeat(line: Line): string {
    const { args } = this.#placed(line, (place) => place);
    return shellLine(['trtforge', ...line.verb.path.split(' '), ...args]);
  }

  /** A line on the files; on a part of the models with sizes that it has. */
  #placed(line: Line, shown: (place: string) => string): Line {
    const { packed } = this.#request;
    const inFolder = (folder: string) => packed.models.map((name) => join(folder, name));
    const isPart = this.#folder === this.part;
    const sized = isPart ? withSizes(line, inFolder(this.whole), inFolder(this.part)) : line;
    return withFiles(sized, packed, shown);
  }

  #nodes(): number {
    return Math.max(0, ...this.#models.map((name) => nodesIn(join(this.#folder, name))));
  }

  #at(name: string): string {
    return join(this.#request.packing.work, name);
  }
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
