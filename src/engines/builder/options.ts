import * as is from '../../base/options/kinds.js';
import { contextOptions, needed, type OptionsOf, optional } from '../../base/options/option.js';
import { splitAtCommas } from '../../base/options/readers.js';
import { shellLine } from '../../base/text/shell-line.js';
import { behaviour } from '../../behaviour/facts.js';
import { TrtforgeError } from '../../errors.js';
import type { ConvertOptions } from '../../formats/precision/convert.js';
import { type FormatId, formatIds } from '../../formats/precision/formats/index.js';
import { type ConversionOptions, conversionOptions } from '../../formats/precision/options.js';
import type { ConversionResult } from '../../formats/precision/result.js';
import type { FoundToolchain } from '../../tensorrt/toolchain/find.js';
import type { Exporter } from '../exports/exporter.js';
import type { EngineExtension } from '../identity/engine-name.js';
import type { IdentityDocument } from '../identity/identity.js';
import type { ModelContent } from '../identity/model-digest.js';
import type { Passport } from '../identity/passport.js';
import type { Recipe } from '../identity/recipe.js';
import { parseTarget, type TargetRequest } from '../identity/target.js';
import { type ProfileRequest, parseProfile } from '../profiles/profile.js';
import { type SizeRange, type Sizes, sizeRange } from '../profiles/sizes.js';
import { storeOptions } from '../store/open-stores.js';
import type { TimingScope } from '../store/timing-caches.js';

/**
 * The caller of TensorRT: `native`, the library through the addon in a child process, or `trtexec`. Both make the same settings from the same recipe,
 * so the identity does not contain the builder; the passport does.
 */
const builderNames = ['native', 'trtexec'] as const;
export type BuilderName = (typeof builderNames)[number];

const builder = { group: 'Builder', advanced: true } as const;

/** A build as it is requested; all but the model has a default. */
export const buildOptions = {
  /** Path of an ONNX model. */
  model: needed(is.text),
  /** `tensorrt-rtx:sm_89,sm_120` or the like; default: TensorRT where this machine has it and a GPU, else tensorrt-rtx. */
  target: optional(is.either(is.text, is.object<TargetRequest>()), {
    flags: '--target <target>',
    group: 'Target',
    describe:
      'tensorrt-rtx:sm_89,sm_120, tensorrt-rtx, tensorrt, tensorrt:sm_90, tensorrt@10.13.3.9:sm_90:linux-aarch64 (default: tensorrt with a GPU, else tensorrt-rtx)',
    parse: parseTarget,
  }),
  /** A toolchain, its name or its folder; default: the first found for the target. */
  toolchain: optional(is.either(is.text, is.object<FoundToolchain>()), {
    flags: '--toolchain <name>',
    group: 'Target',
    trust: true,
    advanced: true,
    describe:
      'which TensorRT: a name of `trtforge toolchain list`, or its folder (default: the first for the target)',
  }),
  /**
   * Which of the visible GPUs TensorRT builds on, which decides the target's compute capability; default: the first. What runs the engine afterwards
   * runs there too. tensorrt-rtx builds without a GPU.
   */
  device: optional(is.whole(0), {
    flags: '--device <number>',
    group: 'Target',
    describe: 'which visible GPU builds and runs (default: 0); tensorrt-rtx builds without one',
    advanced: true,
  }),
  /** `as-is` builds the graph's own types; a format converts it first. */
  precision: optional(is.word<'as-is' | FormatId>(), {
    flags: '--precision <type>',
    describe: `${formatIds.join(', ')} convert the graph first; as-is builds the graph's own types, such as FP32`,
    choices: ['as-is', ...formatIds],
    default: 'as-is',
  }),
  /** TensorRT 10: let the builder choose precisions (with `precision` as permission) instead of converting the graph. */
  weaklyTyped: optional(is.flag, {
    flags: '--weakly-typed',
    ...builder,
    describe: `before TensorRT ${behaviour['weak-typing'].tensorrt.until}: the builder chooses types up to --precision, and nothing is converted`,
  }),
  /** Build an engine that takes the weights of other models with the same graph (`session.refit`); such a one may be slower. The builder flag `refit` of the recipe. */
  refit: optional(is.flag, {
    flags: '--refit',
    ...builder,
    describe:
      'an engine that takes other weights of the same graph without a new build: `trtforge engine refit`; it may be slower',
  }),
  /** The options of the model's conversion. */
  conversion: optional(is.object<ConversionOptions>(conversionOptions)),
  /** Everything else of the recipe that differs from the library's defaults. */
  settings: optional(
    is.object<
      Partial<Omit<Recipe, 'precision' | 'conversion' | 'stronglyTyped' | 'profiles' | 'pluginDigests'>>
    >(),
  ),
  /** Paths of plug-in libraries. */
  plugins: optional(is.list<string>(), {
    flags: '--plugin <library>',
    ...builder,
    trust: true,
    describe: 'a plug-in library that the model needs',
    repeat: true,
  }),
  /** One for each optimization profile, as text (`x:1x3x224x224/8x3x224x224/32x3x224x224`) or as data. */
  profiles: optional(is.list<string | ProfileRequest>(), {
    flags: '--profile <ranges>',
    describe:
      'an optimization profile: x:1x3x224x224, or NAME:MIN/OPT/MAX, several inputs by comma; NAME=MIN/OPT/MAX for values of a shape tensor',
    parse: parseProfile,
    repeat: true,
    group: 'Profiles',
  }),
  /** Sizes of the open first axis of every input, instead of `profiles`: `8`, `'1/8/64'` or `{ min, opt, max }`. */
  batch: optional(is.either(is.whole(1), is.either(is.text, is.object())) as is.Kind<Sizes>, {
    flags: '--batch <n>',
    describe: 'size of the open first axis of every input: 8, or MIN/OPT/MAX as 1/8/64',
    parse: (written: string) => sizeRange(written),
    group: 'Profiles',
  }),
  /** Sizes of open dimensions by the names that the model gives them, instead of `profiles`: `{ height: 640, width: '320/640/640' }`. */
  dims: optional(is.object<Readonly<Record<string, Sizes>>>(), {
    flags: '--dim <name=size>',
    describe: 'an open dimension by its name in the model: height=640, batch=1/8/64',
    parse: parseDimensions,
    repeat: true,
    make: (read: readonly ReturnType<typeof parseDimensions>[]): Readonly<Record<string, SizeRange>> =>
      Object.fromEntries(read.flat()),
    group: 'Profiles',
  }),
  /** For the readable name; default: the file's name and the digest's first digits. */
  modelName: optional(is.text),
  modelVersion: optional(is.text),
  extension: optional(is.word<EngineExtension>()),
  /** Default: native. */
  builder: optional(is.word<BuilderName>(), {
    flags: '--builder <builder>',
    ...builder,
    describe: 'native calls the library; trtexec runs that program (logs: ~/.cache/trtforge/build_logs)',
    choices: builderNames,
    default: 'native',
  }),
  /** Whether the library's verbose lines are reported too: tens of thousands on a large model. */
  verbose: optional(is.flag),
  /** Folder for logs of trtexec; default: `build_logs` in trtforge's cache folder. */
  logFolder: optional(is.text),
  /** Build even though the store has the engine. */
  forceRebuild: optional(is.flag, {
    flags: '--force-rebuild',
    describe: 'build although the store has the engine, and replace it there',
    group: 'Store',
  }),
  /** A file, `auto` (default) for those of the store and its bucket, null for none. tensorrt-rtx uses none; naming a file is a warning. */
  timingCache: optional(is.either(is.text, is.only(null)), {
    flags: '--timing-cache <file>',
    describe:
      'a file of measured kernel times to use and extend (default: those of the store); none for none',
    default: 'auto',
    // The first bytes of a cache are TensorRT's own affair and may look like a plan.
    writes: ['binary data', 'a TensorRT plan'],
    group: 'Store',
    advanced: true,
    make: (file: string) => (file === 'none' ? null : file),
  }),
  /** Where to put the engine; default: it stays in the store. */
  output: optional(is.text, {
    flags: '-o, --output <file>',
    describe: 'put the engine there, its passport beside it (default: it stays in the store)',
    writes: ['a TensorRT plan'],
  }),
  /** Put a known answer into the passport however long the reference runs, also of an engine that is found; false: none. Default: in a fifth of the build's time. */
  knownAnswer: optional(is.flag, {
    flags: '--known-answer',
    describe:
      'put a known answer into the passport however long the FP32 model runs, also of an engine that is found (default: in a fifth of the time of the build)',
    advanced: true,
    make: (isSet: boolean) => isSet || undefined,
  }),
  ...storeOptions,
};

export interface BuildOptions extends OptionsOf<typeof buildOptions> {}

/** Reads `height=640` and `batch=1/8/64`, several by comma; the last `=` separates. */
function parseDimensions(text: string): readonly (readonly [name: string, size: SizeRange])[] {
  return splitAtCommas(text).map((part) => {
    const [, name, size] = /^['"]?(.+?)['"]?=([^=]*)$/.exec(part) ?? [];
    if (name !== undefined && size !== undefined) return [name, sizeRange(size, 0)];
    throw new TrtforgeError('TF_USAGE', `"${part}" is not written as name=size.`, {
      remedy: 'Write height=640, or batch=1/8/64 for minimum, optimum and maximum.',
    });
  });
}

/** The builds of a bundle's components, by its meta file and what they share. Throws what reading the models throws. */
export type BundleParts = (
  meta: string,
  shared: Omit<BuildOptions, 'model'>,
) => Promise<readonly { readonly name: string; readonly request: BuildOptions }[]>;

/** A build with every default filled in: the identity, and what lies outside of it. */
export interface ResolvedBuild {
  readonly modelPath: string;
  readonly content: ModelContent;
  readonly model: Passport['model'];
  readonly identity: IdentityDocument;
  readonly toolchain: FoundToolchain;
  /** The model's conversion before the build; null where it is built as it is. */
  readonly conversion: ConvertOptions | null;
  /** The converted model, where the caller has it already. */
  readonly converted?: Pick<ConversionResult, 'output' | 'ms' | 'quantization' | 'warnings'>;
  readonly pluginPaths: readonly string[];
  readonly extension: EngineExtension;
  /** Which of the visible GPUs builds, and is the only one its builder sees; undefined: the first. */
  readonly device: number | undefined;
  /** Read when it exists and replaced atomically after the build; null for none. */
  readonly timingCache: string | null;
  /** More that are read, of one scope. */
  readonly timingCachesRead?: readonly string[];
  /** What kernel times are shared by, where the stores keep them; null where the user named a file, or none. */
  readonly timingScope: TimingScope | null;
  readonly builder: BuilderName;
  readonly verbose: boolean;
  readonly logFolder: string;
  /** Build even though the store has the engine. */
  readonly forceRebuild: boolean;
  /** Where the user wants the engine; null leaves it in the store (without a store: the readable name, in the working folder). */
  readonly output: string | null;
}

/** The files of one call of the builder. */
export interface BuildFiles {
  /** The file that the builder reads: the model, or its converted copy. */
  readonly modelPath: string;
  /** An unpublished file: the caller checks and publishes it. */
  readonly planPath: string;
}

/** The event receiver, abort signal and environment of a build. */
export const buildContextOptions = {
  ...contextOptions,
  /** Time that a cancelled build has to stop by itself before its process is killed. */
  graceMs: optional(is.decimal(0)),
};

export interface BuildContext extends OptionsOf<typeof buildContextOptions> {}

/** The same for rooms of this package, each of which may stand in for a part of it. */
export interface BuildSeams extends BuildContext {
  /** The writer of plans; default: the builder that the build names. */
  readonly build?: PlanBuilder;
  /** The name of its phase; default: build. */
  readonly phase?: 'refit';
  /** Whether the model is made of one whose sizes ran: they are not run again. */
  readonly areSizesKnown?: boolean;
  /** Makes what an engine proves itself by where it is loaded; default: passports have none. */
  readonly answer?: AnswerMaker;
  /** Whether the caller judges an engine that does not give its known answer; default: TF_ENGINE_WRONG_ANSWER. */
  readonly takesWrong?: boolean;
  /** The layout in which the engine is written below `output`; default: `output` is the path of the plan. */
  readonly exporter?: Exporter;
}

/** Writes the plan of a build whose model is converted already. */
export type PlanBuilder = (
  build: ResolvedBuild,
  files: BuildFiles,
  context: BuildContext,
) => Promise<BuildOutcome>;

/** An engine that was just built and is not kept yet, or that was found. */
export interface UnansweredEngine extends BuildFiles {
  readonly passport: Passport;
  readonly isFound: boolean;
}

/** What an engine has to give, and why it does not give it here; null where it does, or was not run. */
export interface Answered {
  readonly answer: NonNullable<Passport['knownAnswer']>;
  readonly wrong: string | null;
}

/** Runs the reference of an engine, and the engine itself where it can; a text is why it has no answer. What this throws ends the build. */
export type AnswerMaker = (
  build: ResolvedBuild,
  engine: UnansweredEngine,
  context: BuildContext,
) => Promise<Answered | string>;

/** The error of an engine that does not give its known answer. */
export function wrongAnswer(
  { passport, isFound }: Pick<UnansweredEngine, 'passport' | 'isFound'>,
  reason: string,
  model: string,
): TrtforgeError {
  const search = shellLine(['trtforge', 'bisect', 'ENGINE', '--against', model, '-o', 'bisect']);
  const remedy = isFound
    ? 'It was found in a store, which keeps it until it is built again: --force-rebuild.'
    : `No store keeps it. To look for the cause, write it to a file (--output ENGINE), then run ${search}`;
  const message = `${passport.name} does not give its known answer: ${reason}`;
  return new TrtforgeError('TF_ENGINE_WRONG_ANSWER', message, { remedy });
}

/** A builder's report on the plan that it wrote. */
export interface BuildOutcome extends Pick<Passport['plan'], 'bytes' | 'layers' | 'inputs' | 'outputs'> {
  /** Undefined: the library itself, through the addon. */
  readonly builder?: 'trtexec';
  /** From the first call on the library to the plan's last byte on disk; for trtexec its whole run. */
  readonly buildMs: number;
  readonly libraryVersion: string;
  readonly timingCache: Passport['built']['timingCache'];
  /** Those of the build's timing caches that were used, and those that the library would not take. */
  readonly timingCachesMerged?: readonly string[];
  readonly timingCachesRejected?: readonly string[];
  /** Most resident memory of the building process; null where the system does not count it. */
  readonly peakMemoryBytes: number | null;
  readonly warnings: readonly string[];
  /** Of a plan that was not built: the engine whose weights were replaced. */
  readonly refitted?: Passport['built']['refitted'];
}
