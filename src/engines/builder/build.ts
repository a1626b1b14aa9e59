import type { EventListener } from '../../events.js';
import type { ConversionResult } from '../../formats/precision/conversion.js';
import type { ConvertOptions } from '../../formats/precision/convert.js';
import type { FormatId } from '../../formats/precision/formats/index.js';
import type { ConversionOptions } from '../../formats/precision/options.js';
import type { FoundToolchain } from '../../tensorrt/toolchain/find.js';
import type { Exporter } from '../exports/exporter.js';
import type { EngineExtension } from '../identity/engine-name.js';
import type { IdentityDocument } from '../identity/identity.js';
import type { Passport } from '../identity/passport.js';
import type { ModelContent } from '../identity/read-model.js';
import type { Recipe } from '../identity/recipe.js';
import type { TargetRequest } from '../identity/target.js';
import type { ProfileRequest } from '../profiles/profile.js';
import type { Sizes } from '../profiles/sizes.js';
import type { StoreOptions } from '../store/open-stores.js';

/**
 * What calls TensorRT: `native`, the library through the addon in a child process, or `trtexec`. Both make the same settings from the same recipe, so
 * the identity does not contain the builder; the passport does.
 */
export const builderNames = ['native', 'trtexec'] as const;
export type BuilderName = (typeof builderNames)[number];

/** A build as it is requested; all but the model has a default. */
export interface BuildOptions extends StoreOptions {
  /** Path of an ONNX model. */
  readonly model: string;
  /** `tensorrt-rtx:sm_89,sm_120` or the like; default: TensorRT where this machine has it and a GPU, else tensorrt-rtx. */
  readonly target?: string | TargetRequest;
  /** A toolchain, its name or its folder; default: the first found for the target. */
  readonly toolchain?: FoundToolchain | string;
  /** `as-is` builds the graph's own types; a format converts it first. */
  readonly precision?: 'as-is' | FormatId;
  /** How the model is converted. */
  readonly conversion?: ConversionOptions;
  /** TensorRT 10: let the builder choose precisions (with `precision` as permission) instead of converting the graph. */
  readonly weaklyTyped?: boolean;
  /** One for each optimization profile, as text (`x:1x3x224x224/8x3x224x224/32x3x224x224`) or as data. */
  readonly profiles?: readonly (string | ProfileRequest)[];
  /** Sizes of the open first axis of every input, instead of `profiles`: `8`, `'1/8/64'` or `{ min, opt, max }`. */
  readonly batch?: Sizes;
  /** Sizes of open dimensions by the names that the model gives them, instead of `profiles`: `{ height: 640, width: '320/640/640' }`. */
  readonly dims?: Readonly<Record<string, Sizes>>;
  /** Everything else of the recipe that differs from the library's defaults. */
  readonly settings?: Partial<
    Omit<Recipe, 'precision' | 'conversion' | 'stronglyTyped' | 'profiles' | 'pluginDigests'>
  >;
  /** Paths of plug-in libraries. */
  readonly plugins?: readonly string[];
  /** For the readable name; default: the file's name and the digest's first digits. */
  readonly modelName?: string;
  readonly modelVersion?: string;
  readonly extension?: EngineExtension;
  /**
   * Which of the visible GPUs TensorRT builds on, which decides the target's compute capability; default: the first. What runs the engine afterwards
   * runs there too. tensorrt-rtx builds without a GPU.
   */
  readonly device?: number;
  /** A file, `auto` (default) for the one trtforge keeps per target, null for none. tensorrt-rtx uses none; naming a file is a warning. */
  readonly timingCache?: string | null;
  /** Default: native. */
  readonly builder?: BuilderName;
  /** Whether the library's verbose lines are reported too: tens of thousands on a large model. */
  readonly verbose?: boolean;
  /** Folder for logs of trtexec; default: `build_logs` in trtforge's cache folder. */
  readonly logFolder?: string;
  /** Build even though the store has the engine. */
  readonly forceRebuild?: boolean;
  /** Where to put the engine; default: it stays in the store. */
  readonly output?: string;
  /** Put a known answer into the passport however long the reference runs, also of an engine that is found; false: none. Default: in a fifth of the build's time. */
  readonly knownAnswer?: boolean;
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
  /** How the model is converted before the build; null where it is built as it is. */
  readonly conversion: ConvertOptions | null;
  /** The converted model, where the caller has it already. */
  readonly converted?: Pick<ConversionResult, 'output' | 'ms' | 'quantization' | 'warnings'>;
  readonly pluginPaths: readonly string[];
  readonly extension: EngineExtension;
  /** Which of the visible GPUs builds, and is the only one its builder sees; undefined: the first. */
  readonly device: number | undefined;
  /** Read when it exists and replaced atomically after the build; null for none. */
  readonly timingCache: string | null;
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
  /** What the builder reads: the model, or its converted copy. */
  readonly modelPath: string;
  /** An unpublished file: the caller checks and publishes it. */
  readonly planPath: string;
}

/** What a build reports to, what stops it, and where it runs. */
export interface BuildContext {
  readonly emit: EventListener;
  readonly signal?: AbortSignal;
  /** Default: that of this process. */
  readonly environment?: NodeJS.ProcessEnv;
  /** How long a cancelled build may take to stop by itself before its process is killed. */
  readonly graceMs?: number;
}

/** The same for rooms of this package, each of which may stand in for a part of it. */
export interface BuildSeams extends BuildContext {
  /** What writes plans; default: the builder that the build names. */
  readonly build?: PlanBuilder;
  /** Whether the model is made of one whose sizes ran: they are not run again. */
  readonly areSizesKnown?: boolean;
  /** Makes what an engine proves itself by where it is loaded; default: passports have none. */
  readonly answer?: AnswerMaker;
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

/** Runs the reference of an engine, and the engine itself where it can; a text is why it has no answer. What this throws ends the build. */
export type AnswerMaker = (
  build: ResolvedBuild,
  engine: UnansweredEngine,
  context: BuildContext,
) => Promise<NonNullable<Passport['knownAnswer']> | string>;

/** What a builder reports of the plan it wrote. */
export interface BuildOutcome extends Pick<Passport['plan'], 'bytes' | 'layers' | 'inputs' | 'outputs'> {
  /** Undefined: the library itself, through the addon. */
  readonly builder?: 'trtexec';
  /** From the first call on the library to the plan's last byte on disk; for trtexec its whole run. */
  readonly buildMs: number;
  readonly libraryVersion: string;
  readonly timingCache: Passport['built']['timingCache'];
  /** Most resident memory of the building process; null where the system does not count it. */
  readonly peakMemoryBytes: number | null;
  readonly warnings: readonly string[];
}
