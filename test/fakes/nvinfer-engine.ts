import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { defaultRecipe, type Recipe } from '../../src/engines/identity/recipe.js';
import { buildModel, type Dimension, GraphBuilder } from '../../src/formats/onnx/builder.js';
import { writeModel } from '../../src/formats/onnx/write.js';
import type { Dtype } from '../../src/formats/tensor/dtype.js';
import { sampleIdentity, samplePassport } from '../support/sample-engine.js';

export interface DetectorOptions {
  readonly input?: readonly Dimension[];
  readonly outputs?: Readonly<Record<string, readonly Dimension[]>>;
  readonly metadata?: Readonly<Record<string, string>>;
  /** Of the picture and the outputs. */
  readonly dtype?: Dtype;
  /** float16 makes a model with types of its own. */
  readonly weight?: 'float32' | 'float16';
}

/** A model of one picture and the outputs of a detector, which it does not compute from the picture. */
export async function writeDetector(path: string, options: DetectorOptions = {}): Promise<string> {
  const { input = ['batch', 3, 64, 64], outputs = { output0: ['batch', 6, 84] } } = options;
  const { metadata = {}, weight = 'float32', dtype = 'float32' } = options;
  mkdirSync(dirname(path), { recursive: true });
  const graph = new GraphBuilder('detector');
  graph.input('images', dtype, input);
  const bytes = new Uint8Array(weight === 'float32' ? 4 : 2);
  graph.initializer('one', { dtype: weight, shape: [1], bytes });
  for (const [name, shape] of Object.entries(outputs)) {
    graph.node('Identity', { name, inputs: ['images'], outputs: [name] });
    graph.output(name, dtype, shape);
  }
  const model = buildModel(graph);
  for (const [key, value] of Object.entries(metadata))
    model.proto.metadataProps.push({ $typeName: 'onnx.StringStringEntryProto', key, value });
  await writeModel(model, path);
  return path;
}

export interface PlanOptions {
  readonly product?: 'tensorrt' | 'tensorrt-rtx';
  readonly outputs?: Readonly<Record<string, readonly (number | null)[]>>;
  readonly maxBatch?: number;
  readonly recipe?: Partial<Recipe>;
  readonly passport?: boolean;
  /** Digest of the model that it was built from, and its name. */
  readonly model?: string;
  readonly name?: string;
  /** How the images of its calibration were prepared. */
  readonly preprocess?: string;
}

/** A plan of TensorRT 10.14.1.48 by its header, for sm_89, with a passport of the detector above. */
export function writePlan(path: string, options: PlanOptions = {}): string {
  const { product = 'tensorrt', maxBatch = 8, recipe = {}, passport = true } = options;
  const { outputs = { output0: [null, 6, 84] } } = options;
  const plan = Buffer.alloc(64);
  plan.write(product === 'tensorrt' ? 'ftrt' : 'vtrt', 0, 'latin1');
  plan.writeBigUInt64LE(64n, 16);
  plan.set([10, 14, 1, 48], 24);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, plan);
  if (!passport) return path;
  const dims = (batch: number) => [batch, 3, 64, 64];
  const profile = { min: dims(1), opt: dims(maxBatch), max: dims(maxBatch), values: false };
  const identity = sampleIdentity(options.model);
  const content = samplePassport(plan, {
    ...identity,
    recipe: { ...defaultRecipe, profiles: [{ images: profile }], ...recipe },
    target: { ...identity.target, product, version: '10.14.1.48' },
  });
  const tensor = ([name, shape]: [string, readonly (number | null)[]]) => ({
    name,
    dtype: 'float32',
    shape: [...shape],
  });
  if (options.preprocess !== undefined) content.model.preprocess = options.preprocess;
  content.model.name = options.name ?? content.model.name;
  content.plan.inputs = [tensor(['images', [null, 3, 64, 64]])];
  content.plan.outputs = Object.entries(outputs).map(tensor);
  writeFileSync(`${path}.passport.json`, JSON.stringify(content));
  return path;
}
