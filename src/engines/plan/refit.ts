import { TrtforgeError } from '../../errors.js';
import type { WorkContext } from '../../events.js';
import { editModel } from '../../formats/onnx/model.js';
import { clearPlaceholders } from '../../formats/onnx/open-dimensions.js';
import { writeModel } from '../../formats/onnx/write.js';
import { convertModel } from '../../formats/precision/convert.js';
import { formatNamed } from '../../formats/precision/formats/index.js';
import { conversionOptionsOf } from '../../formats/precision/options.js';
import { generationOf, numberOf, sinceIn, versionsWith } from '../../tensorrt/toolchain/abi.js';
import { isAtLeast, type Toolchain } from '../../tensorrt/toolchain/toolchain.js';
import { isCoded, refittableLine } from '../identity/build-line.js';
import { changedWeights, graphDifferences, readNamedGraph } from '../identity/model-graph.js';
import type { ModelGraph, Passport } from '../identity/passport.js';
import type { Recipe } from '../identity/recipe.js';
import { carriesHostCode } from './loads.js';

/** The model as the library's parser reads it: as it is, or a copy of it in which axes that an exporter left without a name may differ; a typed model is one already. */
export const withoutPlaceholders = (path: string, copy: string, work: WorkContext): Promise<string> =>
  editModel(path, async (model) => {
    if (!clearPlaceholders(model.proto)) return path;
    await writeModel(model, copy, work, work.emit);
    return copy;
  });

/** Whether an engine of a recipe takes other weights. */
export const isRefittable = ({ flags }: Pick<Recipe, 'flags'>): boolean => flags.includes('refit');

/** Whether an engine has none of its weights: it was built without them, and not refitted since. */
export const isStripped = ({ identity, built }: Pick<Passport, 'identity' | 'built'>): boolean =>
  identity.document.recipe.flags.includes('strip-plan') && built.refitted === undefined;

/** An engine whose weights are replaced by those of another model. */
export interface Skeleton {
  readonly planPath: string;
  readonly passport: Passport;
}

/** A plan with its passport as one. Throws TF_ENGINE_NOT_REFITTABLE where it has none. */
export function skeletonOf({
  path,
  passport,
}: {
  readonly path: string;
  readonly passport: Passport | null;
}): Skeleton {
  if (passport !== null) return { planPath: path, passport };
  throw new TrtforgeError('TF_ENGINE_NOT_REFITTABLE', `${path} has no passport: nothing states its graph.`);
}

/** Whether engines of a recipe take the weights of other models. */
export const takesWeights = (recipe: Pick<Recipe, 'flags' | 'precision' | 'stronglyTyped'>): boolean =>
  isRefittable(recipe) && !isCoded(recipe);

/** Rejects a build with `--refit` whose engine would take no other weights, before any work for it. Throws TF_ENGINE_NOT_REFITTABLE, TF_OPTION_UNSUPPORTED. */
export function assertMakesRefittable(
  recipe: Pick<Recipe, 'precision' | 'stronglyTyped'>,
  toolchain: Pick<Toolchain, 'product' | 'version'>,
): void {
  assertParserRefits(toolchain, 'Leave --refit out, or use a version that has it.');
  if (!isCoded(recipe)) return;
  throw new TrtforgeError(
    'TF_ENGINE_NOT_REFITTABLE',
    `--refit is for an engine that takes other weights, and ${recipe.precision} codes are made for the weights of its model.`,
    {
      remedy:
        'Leave --refit out and build an engine of each model, or choose a precision without codes: fp16, bf16, as-is.',
    },
  );
}

/** The remedy of a model that an engine does not take: the line that builds its engine as that one was built. `others`: plug-ins, and profiles for another interface. */
export const buildInstead = (
  { passport }: Skeleton,
  model: string,
  others?: Parameters<typeof refittableLine>[2],
): string => `Build its engine: ${refittableLine(passport.identity.document, model, others)}`;

/** The library that TensorRT looked for to write an engine, in its own words. */
const MISSING = /Unable to load library: (?<library>\S+?)\)?$/m;

const OF_REFIT: ReadonlySet<string> = new Set([
  'TF_REFIT_FAILED',
  'TF_REFIT_MODEL_MISMATCH',
  'TF_ENGINE_NOT_REFITTABLE',
]);

/** An error of the addon's refit with the remedy for this engine and model. Any other stays as it is. */
export function withRefitRemedy(error: unknown, skeleton: Skeleton, model: string): unknown {
  if (!(error instanceof TrtforgeError) || !OF_REFIT.has(error.code)) return error;
  const { code, message, details } = error;
  const { library } = MISSING.exec(message)?.groups ?? {};
  const remedy =
    library === undefined
      ? buildInstead(skeleton, model)
      : `Put ${library} of the same version beside the TensorRT that refits.`;
  return new TrtforgeError(code, message, { remedy, details, cause: error });
}

/**
 * The graph of an engine that may be refitted. Throws TF_ENGINE_NOT_REFITTABLE for one that was built without `--refit`, whose weights are quantized, or whose passport
 * does not state its graph.
 */
export function assertRefittable(skeleton: Skeleton, model: string): ModelGraph {
  const { planPath, passport } = skeleton;
  const { recipe } = passport.identity.document;
  const { graph } = passport.plan;
  if (takesWeights(recipe) && graph !== undefined) return graph;
  const codes = `has ${recipe.precision} codes, which are made for the weights of its model`;
  const built = isCoded(recipe) ? codes : 'has a passport that does not state its graph';
  const why = isRefittable(recipe) ? built : 'was built without --refit';
  throw new TrtforgeError('TF_ENGINE_NOT_REFITTABLE', `${planPath} ${why}.`, {
    remedy: buildInstead(skeleton, model),
  });
}

/** Compares a model, typed as that of the engine was, with the engine's graph. Returns the names of the changed weights that it must take. Throws TF_REFIT_MODEL_MISMATCH. */
export async function weightsToRefit(
  skeleton: Skeleton,
  model: string,
  typed: string,
  work: WorkContext = {},
): Promise<readonly string[]> {
  const recorded = assertRefittable(skeleton, model);
  const found = await readNamedGraph(typed, work);
  const differences = graphDifferences(recorded, found);
  if (differences.length === 0) return changedWeights(recorded, found.graph);
  const { conversion, precision } = skeleton.passport.identity.document.recipe;
  const converted = conversion === null ? '' : `, converted to ${precision},`;
  throw new TrtforgeError(
    'TF_REFIT_MODEL_MISMATCH',
    `The graph of ${model}${converted} is not the one that ${skeleton.planPath} was built from: ${differences.join('; ')}.`,
    { remedy: buildInstead(skeleton, model), details: { differences } },
  );
}

/** A model typed as that of the engine was: converted into `output`, or the model itself. Throws TF_ENGINE_NOT_REFITTABLE, and what `convertModel` throws. */
export async function typedForRefit(
  skeleton: Skeleton,
  model: string,
  output: string,
  work: WorkContext,
): Promise<string> {
  assertRefittable(skeleton, model);
  const { conversion, precision } = skeleton.passport.identity.document.recipe;
  const format = formatNamed(precision)?.id;
  if (conversion === null || format === undefined) return withoutPlaceholders(model, output, work);
  const converted = await convertModel(
    model,
    output,
    { ...conversionOptionsOf(conversion), precision: format },
    work,
  );
  return converted.output;
}

const REFITTER = { class: 'IParserRefitter', name: 'refitFromFile' } as const;

function assertParserRefits(
  { product, version }: Pick<Toolchain, 'product' | 'version'>,
  remedy: string,
): void {
  const generation = generationOf({ product, version });
  const since = generation === null ? null : sinceIn(generation, REFITTER);
  if (since !== null && isAtLeast(version, since)) return;
  throw new TrtforgeError(
    'TF_OPTION_UNSUPPORTED',
    `The ONNX parser of ${product} ${version} refits no engines; ${versionsWith(REFITTER)} do.`,
    { remedy },
  );
}

/** The ONNX parser that refits engines of a toolchain. Throws TF_OPTION_UNSUPPORTED where its version has no such, TF_LIBRARY_LOAD_FAILED for a runtime without a parser. */
export function refittingParser({ product, version, libraries }: Toolchain): string {
  assertParserRefits(
    { product, version },
    'Build the engine of the other model instead, or use a version that has it.',
  );
  if (libraries.parser !== null) return libraries.parser;
  throw new TrtforgeError(
    'TF_LIBRARY_LOAD_FAILED',
    `${libraries.inference} is a runtime without an ONNX parser beside it, so it cannot refit engines.`,
    {
      remedy: 'Install the whole toolchain (libnvonnxparser), or choose another: `trtforge toolchain list`.',
    },
  );
}

/**
 * Bits of `SerializationFlag` with which a refitted engine is written whole: without the lean runtime, which need not be installed, unless the
 * engine carries it; one of a stripped plan remains refittable only where the version can.
 */
export function serializationFlags(toolchain: Toolchain, { flags }: Pick<Recipe, 'flags'>): number {
  const generation = generationOf(toolchain);
  if (generation === null) return 0;
  const wanted = [
    ...(flags.includes('strip-plan') ? ['kINCLUDE_REFIT'] : []),
    ...(carriesHostCode({ flags }) ? [] : ['kEXCLUDE_LEAN_RUNTIME']),
  ];
  return wanted
    .map((name) => numberOf(generation, toolchain.version, 'SerializationFlag', name))
    .reduce((bits: number, bit) => (bit === null ? bits : bits | (1 << bit)), 0);
}
