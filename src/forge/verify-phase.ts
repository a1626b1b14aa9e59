import { plural } from '../base/text/quantity.js';
import type { ResolvedBuild } from '../engines/builder/prepare.js';
import { verifyModel } from '../quality/verify/verify.js';
import { writeJson } from './run-root.js';
import type { Forged, ForgePhase, Run } from './run-state.js';

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
        shapes: builtShapes(prepared),
        ...options.verify,
        reference: options.model,
        candidate: conversion.output,
        precision: conversion.precision,
        conversion: options.conversion ?? {},
      },
      { emit, ...(signal === undefined ? {} : { signal }) },
    );
    writeJson(root.stepResult('verify'), verification);
    return { found: { verification }, detail: outcomeText(verification) };
  },
});

/** What the engine is built for: the first profile's optimum, and scalars where the model declares no shape. Inputs that are shape tensors keep the values drawn for them. */
export function builtShapes(prepared: ResolvedBuild | undefined): ReadonlyMap<string, readonly number[]> {
  const scalars = prepared?.content.inputs.filter(({ shape }) => shape === null) ?? [];
  const ranges = Object.entries(prepared?.identity.recipe.profiles[0] ?? {});
  return new Map<string, readonly number[]>([
    ...scalars.map(({ name }) => [name, []] as const),
    ...ranges.flatMap(([name, range]) => (range.values ? [] : [[name, range.opt] as const])),
  ]);
}

export function outcomeText({ outputs }: Forged['verification']): string {
  const passed = outputs.filter(({ outcome }) => outcome === 'pass').length;
  return `${passed} of ${plural(outputs.length, 'output')} within tolerance`;
}
