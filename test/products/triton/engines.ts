import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Passport } from '../../../src/engines/identity/passport.js';
import { defaultRecipe, type Recipe } from '../../../src/engines/identity/recipe.js';
import { planBytes } from '../../fakes/tensorrt/engine.js';
import { sampleIdentity, samplePassport } from '../../support/sample-engine.js';

type Tensor = Passport['plan']['inputs'][number];

export interface EngineFacts {
  readonly name?: string;
  readonly capability?: number;
  readonly rtx?: boolean;
  readonly inputs?: readonly Tensor[];
  readonly outputs?: readonly Tensor[];
  readonly recipe?: Partial<Recipe>;
  readonly knownAnswer?: Passport['knownAnswer'];
  readonly gpu?: string;
  readonly model?: string;
  readonly preprocess?: string;
}

export const tensor = (name: string, shape: Tensor['shape'], dtype = 'float32'): Tensor => ({
  name,
  dtype,
  shape,
});

/** A range of dimensions, or of the values of a shape tensor. */
export const range = (min: number[], opt: number[], max: number[], values = false) => ({
  min,
  opt,
  max,
  values,
});

const images = [1, 4, 16].map((batch) => [batch, 3, 8, 8]) as [number[], number[], number[]];

/** A plan of TensorRT 10 with a passport; unless told a classifier of batches 1 to 16. Only their bytes are read. */
export function writeEngine(
  folder: string,
  file: string,
  {
    name = 'classifier',
    capability = 89,
    rtx = false,
    inputs = [tensor('x', [null, 3, 8, 8])],
    outputs = [tensor('y', [null, 10])],
    recipe = { profiles: [{ x: range(...images) }] },
    knownAnswer,
    gpu,
    model = 'a'.repeat(64),
    preprocess,
  }: EngineFacts = {},
): string {
  const plan = planBytes(rtx ? 'rtx1' : '10', { kind: 'copy', memory: file.length + capability });
  const sample = sampleIdentity(model);
  const version = [...plan.subarray(24, 28)].join('.');
  const product = rtx ? 'tensorrt-rtx' : 'tensorrt';
  const passport = samplePassport(plan, {
    ...sample,
    recipe: { ...defaultRecipe, ...recipe },
    target: { ...sample.target, product, version, computeCapabilities: [capability] },
  });
  const path = join(folder, file);
  writeFileSync(path, plan);
  writeFileSync(
    `${path}.passport.json`,
    JSON.stringify({
      ...passport,
      name: `${name}_${model.slice(0, 4)}_sm_${capability}.engine`,
      model: { ...passport.model, name, preprocess },
      plan: { ...passport.plan, inputs, outputs },
      built: { ...passport.built, gpu: gpu ?? null },
      knownAnswer,
    }),
  );
  return path;
}
