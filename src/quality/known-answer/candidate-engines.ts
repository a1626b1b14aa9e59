import { join } from 'node:path';
import { canonicalJson, sha256, sha256OfFile } from '../../base/files/digest.js';
import { shellLine } from '../../base/text/shell-line.js';
import type { BuildOptions } from '../../engines/builder/options.js';
import { resolveBuild } from '../../engines/builder/resolve-build.js';
import { buildWords, profileText } from '../../engines/identity/build-line.js';
import type { IdentityDocument } from '../../engines/identity/identity.js';
import type { Recipe } from '../../engines/identity/recipe.js';
import type { Target } from '../../engines/identity/target.js';
import { isEngineFile, readPlanHeader } from '../../engines/plan/header.js';
import { type PlanProgram, readPlanProgram } from '../../engines/plan/program.js';
import { verifyEngineInPieces } from '../../engines/plan/verify-engine.js';
import type { Profile } from '../../engines/profiles/profile.js';
import { TrtforgeError } from '../../errors.js';
import { ignoreEvents } from '../../events.js';
import { type FormatId, floatFormats, formatNamed } from '../../formats/precision/formats/index.js';
import { type ConversionOptions, conversionOptionsOf } from '../../formats/precision/options.js';
import { chooseToolchain, surveyToolchains, thisMachine } from '../../tensorrt/toolchain/find.js';
import type { VerifyContext, VerifyRequest } from '../verify/options.js';
import { buildOrLoad } from './build-or-load.js';

/** An engine of a candidate. */
export interface BuiltEngine {
  readonly path: string;
  /** null where the plan's program cannot be read. */
  readonly program: PlanProgram | null;
}

/** The build of candidates as engines. Target, recipe and profiles of an engine that is searched are those of its passport. */
export type CandidateBuild = Omit<
  BuildOptions,
  'model' | 'precision' | 'conversion' | 'weaklyTyped' | 'output' | 'extension' | 'modelName' | 'modelVersion'
>;

/** The name of an engine, and the way its kind is built. */
interface EnginesRequest
  extends Pick<VerifyRequest, 'reference' | 'candidate' | 'conversion' | 'device' | 'toolchain' | 'plugins'> {
  /** Where the engine of a candidate that is a model is written. */
  readonly output: string;
  readonly build?: CandidateBuild;
}

/** The compiler's freedom besides the recipe. */
export interface Freedom {
  /** False: products of FP32 tensors are not shortened to TF32. */
  readonly tf32?: false;
}

/** The engine that is searched. */
interface SearchedEngine {
  readonly path: string;
  readonly identity: IdentityDocument;
  readonly inputs: readonly { readonly dtype: string | null }[];
  readonly toolchain: BuildOptions['toolchain'];
  /** The options that build it from the candidate; null where it is the candidate. */
  readonly build: BuildOptions | null;
}

/** Builds candidates as the engine that is searched was built. */
export class CandidateEngines {
  readonly #searched: SearchedEngine;
  readonly #request: EnginesRequest;
  readonly #options: Omit<BuildOptions, 'model'>;
  readonly #context: VerifyContext;

  private constructor(searched: SearchedEngine, request: EnginesRequest, context: VerifyContext) {
    const { identity, toolchain } = searched;
    this.#searched = searched;
    this.#request = request;
    this.#context = context;
    const { recipe, target } = identity;
    const { precision, conversion, stronglyTyped, profiles, pluginDigests, ...settings } = recipe;
    const { batch, dims, ...build } = request.build ?? {};
    this.#options = {
      ...build,
      toolchain,
      target: { product: target.product, computeCapabilities: target.computeCapabilities },
      precision: 'as-is',
      weaklyTyped: !stronglyTyped,
      settings,
    };
  }

  /**
   * The engines of a request; null where candidates are models. Builds nothing. Throws TF_USAGE for an engine whose types its builder chose, and for plug-ins
   * that are not those of the engine; what verifying an engine and resolving a build throw.
   */
  static async decide(request: EnginesRequest, context: VerifyContext): Promise<CandidateEngines | null> {
    const { candidate, build, output } = request;
    if (!isEngineFile(candidate)) {
      if (build === undefined) return null;
      const path = join(output, 'candidate.engine');
      const own = { ...build, model: candidate, output: path };
      const { identity, content } = await resolveBuild(own, buildContext(context));
      const { inputs } = content;
      const { toolchain } = build;
      return new CandidateEngines({ path, identity, inputs, toolchain, build: own }, request, context);
    }
    const { identity, plan } = await verifyEngineInPieces(candidate);
    const { recipe, target } = identity.document;
    if (!recipe.stronglyTyped && formatNamed(recipe.precision) !== undefined)
      throw new TrtforgeError(
        'TF_USAGE',
        `The types of ${candidate} were chosen by its builder, so no node can be kept FP32.`,
        { remedy: 'Build it strongly typed: remove --weakly-typed.' },
      );
    const plugins = build?.plugins ?? [];
    if (canonicalJson(plugins.map(sha256OfFile).sort()) !== canonicalJson(recipe.pluginDigests))
      throw new TrtforgeError(
        'TF_USAGE',
        `${candidate} was built with ${recipe.pluginDigests.length} plug-in libraries, of which the digests differ from those passed.`,
        { remedy: 'Pass the same libraries: `plugin` in the configuration file.' },
      );
    const toolchain = build?.toolchain ?? (await toolchainOf(target, context));
    const { inputs } = plan;
    const searched = { path: candidate, identity: identity.document, inputs, toolchain, build: null };
    return new CandidateEngines(searched, request, context);
  }

  /** The engine that is searched; `obtain` makes it of a candidate that is a model. */
  get engine(): string {
    return this.#searched.path;
  }

  /** The options that build the engine from the candidate; null where it is the candidate. */
  get candidateBuild(): BuildOptions | null {
    return this.#searched.build;
  }

  /** Builds the engine that is searched where the candidate is a model. Throws what building throws. */
  async obtain(): Promise<void> {
    const { build } = this.#searched;
    if (build === null) return;
    // The search judges it itself.
    const context = { ...buildContext(this.#context), areSizesKnown: false };
    await buildOrLoad({ ...build, knownAnswer: false }, context);
  }

  /** The place where its engines are run, where it was passed for the build. */
  get place(): Pick<VerifyRequest, 'device' | 'toolchain' | 'plugins'> {
    const { device, toolchain, plugins } = { ...this.#request, ...this.#request.build };
    return { device, toolchain, plugins };
  }

  get recipe(): Recipe {
    return this.#searched.identity.recipe;
  }

  get hasTf32(): boolean {
    return !this.recipe.flags.includes(NO_TF32);
  }

  get hasTypedInput(): boolean {
    return this.#searched.inputs.some(({ dtype }) => floatFormats.some((format) => format.dtype === dtype));
  }

  /** Whether the engine was built from the model with this digest. */
  isOf(model: string): boolean {
    return this.#searched.identity.model === model;
  }

  /**
   * The conversion of the engine's model; null where it was built as it is. Throws TF_USAGE where another model, by its digest, was converted,
   * and for another calibration than was passed.
   */
  conversion(model: string): { readonly precision: FormatId; readonly options: ConversionOptions } | null {
    const { conversion: recorded, precision } = this.recipe;
    const { conversion = {} } = this.#request;
    const format = formatNamed(precision)?.id;
    if (format === undefined || recorded === null) return null;
    const { reference } = this.#request;
    if (!this.isOf(model))
      throw new TrtforgeError(
        'TF_USAGE',
        `${this.engine} was converted from another model than ${reference}.`,
        {
          remedy: 'Pass the model that the engine was built from: --against model.onnx',
        },
      );
    const options = conversionOptionsOf(recorded, conversion.calibration);
    if ((options.calibration?.digest() ?? null) !== recorded.calibration)
      throw new TrtforgeError(
        'TF_USAGE',
        `${this.engine} was converted with ${recorded.calibration === null ? 'no calibration' : 'another calibration'}.`,
        {
          remedy:
            recorded.calibration === null
              ? 'Remove --calibration.'
              : 'Pass the samples that it was built with: --calibration.',
        },
      );
    return { precision: format, options };
  }

  /** All that decides an engine besides its model. */
  question(): string {
    const { recipe, target } = this.#searched.identity;
    const { precision, conversion, ...more } = recipe;
    return sha256(canonicalJson({ recipe: more, target }));
  }

  /** Builds a model into `output`. Throws what building throws. */
  async build(
    model: string,
    output: string,
    freedom: Freedom = {},
    profiles: readonly Profile[] = this.recipe.profiles,
  ): Promise<BuiltEngine> {
    const { engine } = await buildOrLoad(
      {
        ...this.#options,
        profiles: profiles.map((profile) => new Map(Object.entries(profile))),
        settings: this.#settings(freedom),
        model,
        output,
        // Nobody loads a candidate but the search.
        knownAnswer: false,
      },
      buildContext(this.#context),
    );
    return { path: engine, program: programOf(engine) };
  }

  /** The command line that builds a model so. */
  line(
    model: string,
    output: string,
    freedom: Freedom = {},
    profiles: readonly Profile[] = this.recipe.profiles,
  ): string {
    const { target, recipe } = this.#searched.identity;
    return shellLine([
      ...buildWords(
        // The model is typed already.
        {
          target,
          recipe: { ...recipe, ...this.#settings(freedom), precision: 'as-is', conversion: null },
        },
        model,
        profiles.map(profileText),
      ),
      ...['-o', output],
    ]);
  }

  #settings({ tf32 }: Freedom): NonNullable<BuildOptions['settings']> {
    const settings = this.#options.settings ?? {};
    return tf32 === false ? { ...settings, flags: [...this.recipe.flags, NO_TF32] } : settings;
  }
}

const NO_TF32 = 'no-tf32';

const buildContext = ({ signal, environment }: VerifyContext) => ({
  emit: ignoreEvents,
  signal,
  environment,
  areSizesKnown: true,
});

/** The compiled program of an engine; null where it cannot be read. */
export const programOf = (engine: string): PlanProgram | null => readPlanProgram(readPlanHeader(engine));

/** Names what an engine computes: its program, and the ONNX nodes of each kernel, which the digest of the program leaves out. */
export const programKey = (program: PlanProgram | null): string | null =>
  program &&
  sha256(
    canonicalJson([
      program.digest,
      program.graphs.map(({ kernels }) => kernels.map(({ nodes }) => [...nodes])),
    ]),
  );

async function toolchainOf({ product, version }: Target, { environment }: VerifyContext) {
  const { toolchains, damaged } = await surveyToolchains(thisMachine(environment));
  return chooseToolchain(toolchains, { product, version }, damaged);
}
