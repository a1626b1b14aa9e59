import { shellLine } from '../../base/process/shell-quote.js';
import { TrtforgeError } from '../../errors.js';
import type { WorkContext } from '../../events.js';
import { convertModel } from '../../formats/precision/convert.js';
import { formatNamed } from '../../formats/precision/formats/index.js';
import { conversionOptionsOf } from '../../formats/precision/recipe.js';
import { generationOf, isAtLeast, numberOf, sinceIn, versionsWith } from '../../tensorrt/toolchain/abi.js';
import type { Toolchain } from '../../tensorrt/toolchain/toolchain.js';
import { changedWeights, graphDifferences, readModelGraph } from '../identity/model-graph.js';
import type { ModelGraph, Passport } from '../identity/passport.js';
import type { Recipe } from '../identity/recipe.js';
import { carriesHostCode } from './loads.js';
import { withoutPlaceholders } from './parsed-model.js';

/** Whether an engine of a recipe takes other weights. */
export const isRefittable = ({ flags }: Pick<Recipe, 'flags'>): boolean => flags.includes('refit');

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

/** The line that builds an engine of a model, to be refitted later. */
export const refittableBuild = (model: string): string => shellLine(['trtforge', 'build', model, '--refit']);

/**
 * The graph of an engine that may be refitted. Throws TF_ENGINE_NOT_REFITTABLE for one that was built without `--refit`, whose weights are quantized, or whose passport
 * does not state its graph.
 */
export function assertRefittable({ planPath, passport }: Skeleton): ModelGraph {
  const { recipe } = passport.identity.document;
  const { graph } = passport.plan;
  const why = !isRefittable(recipe)
    ? 'was built without --refit'
    : recipe.conversion?.quantization !== undefined
      ? `has ${recipe.precision} codes, which are made for the weights of its model`
      : graph === undefined
        ? 'has a passport that does not state its graph'
        : null;
  if (why === null && graph !== undefined) return graph;
  throw new TrtforgeError('TF_ENGINE_NOT_REFITTABLE', `${planPath} ${why}.`, {
    remedy: `Build an engine that takes other weights: ${refittableBuild(`${passport.model.name}.onnx`)}`,
  });
}

/** Compares a model, typed as that of the engine was, with the engine's graph. Returns the names of the changed weights that it must take. Throws TF_REFIT_MODEL_MISMATCH. */
export async function weightsToRefit(
  skeleton: Skeleton,
  model: string,
  typed: string,
  work: WorkContext = {},
): Promise<readonly string[]> {
  const recorded = assertRefittable(skeleton);
  const found = await readModelGraph(typed, work);
  const differences = graphDifferences(recorded, found);
  if (differences.length === 0) return changedWeights(recorded, found);
  const { conversion, precision } = skeleton.passport.identity.document.recipe;
  const converted = conversion === null ? '' : `, converted to ${precision},`;
  throw new TrtforgeError(
    'TF_REFIT_MODEL_MISMATCH',
    `The graph of ${model}${converted} is not the one that ${skeleton.planPath} was built from: ${differences.join('; ')}.`,
    { remedy: `Build an engine of it: ${refittableBuild(model)}`, details: { differences } },
  );
}

/** A model typed as that of the engine was: converted into `output`, or the model itself. Throws TF_ENGINE_NOT_REFITTABLE, and what `convertModel` throws. */
export async function typedForRefit(
  skeleton: Skeleton,
  model: string,
  output: string,
  work: WorkContext,
): Promise<string> {
  assertRefittable(skeleton);
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

/** The ONNX parser that refits engines of a toolchain. Throws TF_OPTION_UNSUPPORTED where its version has no such, TF_LIBRARY_LOAD_FAILED for a runtime without a parser. */
export function refittingParser({ product, version, libraries }: Toolchain): string {
  const generation = generationOf({ product, version });
  const since = generation === null ? null : sinceIn(generation, REFITTER);
  if (since === null || !isAtLeast(version, since))
    throw new TrtforgeError(
      'TF_OPTION_UNSUPPORTED',
      `The ONNX parser of ${product} ${version} refits no engines; ${versionsWith(REFITTER)} do.`,
      { remedy: 'Build the engine of the other model instead, or use a version that has it.' },
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
