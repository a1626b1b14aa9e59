import type { Profile } from '../engine/profile.js';
import { plural } from '../report/quantity.js';
import { verifyModel } from '../verify/verify.js';
import type { Forged, ForgePhase, Run } from './forged.js';
import { writeJson } from './run-root.js';

/** Holds the typed model against the original, at the shapes that the engine is optimized for. An output outside tolerance ends no phase: it is a finding. */
export const verifyPhase = ({ options, root }: Run): ForgePhase => ({
  name: 'verify',
  skip: ({ conversion }) => {
    if (options.skip?.includes('verify')) return 'it was to be left out';
    return conversion === undefined
      ? 'the model was not converted, so there is no second model to hold against it'
      : null;
  },
  run: async (soFar, { emit, signal }) => {
    const { conversion, prepared } = soFar;
    if (conversion === undefined) throw new Error('The verify phase runs only after the convert phase.');
    const verification = await verifyModel(
      {
        shapes: optimumShapes(prepared?.identity.recipe.profiles[0]),
        ...options.verify,
        reference: options.model,
        candidate: conversion.output,
        precision: conversion.precision,
      },
      { emit, ...(signal === undefined ? {} : { signal }) },
    );
    writeJson(root.stepResult('verify'), verification);
    return { found: { verification }, detail: outcomeText(verification) };
  },
});

/** The shapes of the first profile's optimum; inputs that are shape tensors keep the values drawn for them. */
export function optimumShapes(profile: Profile | undefined): ReadonlyMap<string, readonly number[]> {
  return new Map(
    Object.entries(profile ?? {}).flatMap(([name, range]) =>
      range.values ? [] : [[name, range.opt] as const],
    ),
  );
}

export function outcomeText({ outputs }: Forged['verification']): string {
  const passed = outputs.filter(({ outcome }) => outcome === 'pass').length;
  return `${passed} of ${plural(outputs.length, 'output')} within tolerance`;
}
