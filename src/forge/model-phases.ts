import { assertGpuPresent } from '../addon/gpus.js';
import { keepFile } from '../base/files/byte-source.js';
import { plural } from '../base/text/quantity.js';
import type { ResolvedBuild } from '../engines/builder/options.js';
import { resolveBuild } from '../engines/builder/resolve-build.js';
import { identityDigest } from '../engines/identity/identity.js';
import { targetText } from '../engines/identity/target.js';
import { profileEnds } from '../engines/profiles/profile.js';
import { assertStreamed, checkWeightBudget } from '../engines/runtime/tensorrt/options.js';
import { factsOfModel } from '../formats/onnx/inspect.js';
import { convertModel } from '../formats/precision/convert.js';
import { defaultFormat, formatNamed } from '../formats/precision/formats/index.js';
import type { SampleData, VerifyRequest } from '../quality/verify/options.js';
import { verifyModel } from '../quality/verify/verify.js';
import { conversionSentence } from '../report/sentences.js';
import type { ForgeOptions } from './options.js';
import type { Forged, ForgePhase, Run } from './phase-run.js';

/** The phases over the model: what it has, what is decided about its engine, the typed model, and whether that computes the same. */

export const inspectPhase = ({ options }: Run): ForgePhase => ({
  name: 'inspect',
  decides: true,
  skip: () => null,
  run: async () => {
    const inspection = factsOfModel(options.model);
    const { nodesTotal, findings } = inspection;
    return {
      found: { inspection },
      detail: `${plural(nodesTotal, 'node')}, ${findings.length === 0 ? 'no finding' : plural(findings.length, 'finding')}`,
    };
  },
});

/** Decides GPU, toolchain, target, profiles and identity before any minute is spent on a request that cannot be met. */
export const resolvePhase = ({ options, visible, root }: Run): ForgePhase => ({
  name: 'resolve',
  decides: true,
  skip: () => (options.skip?.includes('build') ? '--skip build' : null),
  run: async (_, context) => {
    assertGpuPresent(visible, options.device, 'Building and running an engine needs an NVIDIA GPU');
    const { logFolder = root.logs } = options;
    const prepared = await resolveBuild({ ...options, logFolder }, context);
    const { recipe, target } = prepared.identity;
    checkWeightBudget(options);
    const streams = recipe.flags.includes('weight-streaming');
    assertStreamed(`The engine of ${options.model} is`, streams, options);
    const identity = identityDigest(prepared.identity).slice(0, 12);
    return {
      found: { prepared },
      detail: `${targetText(target)} with ${target.product} ${target.version}, ${recipe.profiles.length === 0 ? 'static shapes' : plural(recipe.profiles.length, 'profile')}, identity ${identity}`,
    };
  },
});

/** Writes the strongly typed model; the build takes it from there. */
export const convertPhase = ({ options, root, needsTypedModel }: Run): ForgePhase => ({
  name: 'convert',
  skip: ({ prepared }) => {
    if (formatNamed(options.precision) === undefined) return 'the model is built as it is';
    if (prepared === undefined) return null;
    if (prepared.identity.recipe.conversion === null)
      return 'the builder itself chooses precisions in a weakly typed network';
    return needsTypedModel?.(prepared) === false ? 'only the build uses the typed model' : null;
  },
  run: async (_, context) => {
    const { id: precision } = formatNamed(options.precision) ?? defaultFormat;
    const conversion = await convertModel(
      options.model,
      root.typedModel(options.model, precision),
      { ...options.conversion, precision },
      context,
    );
    keepFile(conversion.output);
    return { found: { conversion }, detail: conversionSentence(conversion) };
  },
});

/** Compares the typed model with the original, at the shapes that the engine is optimized for and at the ends of its ranges. An output outside tolerance ends no phase: it is a finding. */
export const verifyPhase = (run: Run): ForgePhase => ({
  name: 'verify',
  skip: ({ conversion }) => whyNotVerified(run.options, conversion !== undefined),
  run: async (soFar, context) => {
    const { afterFailure } = run;
    const verification = await verifyModel(typedModelRequest(run, soFar), { ...context, afterFailure });
    return { found: { verification }, detail: outcomeText(verification) };
  },
});

/** The comparison of the typed model. */
export function typedModelRequest(
  { options }: Run,
  { conversion, prepared }: Partial<Forged>,
): VerifyRequest {
  if (conversion === undefined) throw new Error('The verify phase runs only after the convert phase.');
  return {
    shapes: builtShapes(prepared),
    profiles: prepared?.identity.recipe.profiles,
    ...options.verify,
    data: judgingData(options),
    reference: options.model,
    candidate: conversion.output,
    precision: conversion.precision,
    conversion: options.conversion ?? {},
    errorMap: true,
  };
}

/** Why the typed model would not be compared; null where it would. */
export function whyNotVerified({ skip }: Pick<ForgeOptions, 'skip'>, isConverted: boolean): string | null {
  if (skip?.includes('verify')) return '--skip verify';
  return isConverted ? null : 'the model was not converted, so there is no typed model to compare';
}

/** The samples that judge the conversion and the engine: the user's, or those held out of the calibration. */
export const judgingData = ({ verify, conversion }: ForgeOptions): SampleData | undefined =>
  verify?.data ?? conversion?.calibration?.judging;

/** Shapes the engine is built for: the first profile's optimum, scalars where the model has none. Shape tensors keep the values drawn for them. */
export function builtShapes(prepared: ResolvedBuild | undefined): ReadonlyMap<string, readonly number[]> {
  const [optimum] = profileEnds([prepared?.identity.recipe.profiles[0] ?? {}], prepared?.content.inputs);
  return optimum?.shapes ?? new Map();
}

export function outcomeText({ outputs }: Forged['verification']): string {
  const passed = outputs.filter(({ outcome }) => outcome === 'pass').length;
  return `${passed} of ${plural(outputs.length, 'output')} within tolerance`;
}
