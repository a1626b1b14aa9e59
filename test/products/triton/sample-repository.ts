import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type IdentityDocument, identityDigest } from '../../../src/engines/identity/identity.js';
import type { Passport } from '../../../src/engines/identity/passport.js';
import { sampleIdentity, samplePassport } from '../../support/sample-engine.js';

/** Files by path in the repository; a path that ends in a slash is an empty folder. */
export type Files = Record<string, string | Buffer>;

export const writeFiles = (folder: string, files: Files): string => {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(join(folder, path.endsWith('/') ? path : dirname(path)), { recursive: true });
    if (!path.endsWith('/')) writeFileSync(join(folder, path), content);
  }
  return folder;
};

/** Bytes with the header that TensorRT writes. */
export function trtPlan(seed: number, version = '10.13.3.9'): Buffer {
  const plan = Buffer.alloc(256, seed);
  plan.fill(0, 0, 28);
  plan.write('ftrt', 'latin1');
  plan.set(version.split('.').map(Number), 24);
  return plan;
}

export type PassportFacts = Pick<Passport['plan'], 'inputs' | 'outputs'> & {
  readonly capability: number;
  readonly recipe?: Partial<IdentityDocument['recipe']>;
  readonly knownAnswer?: Passport['knownAnswer'];
  readonly gpu?: string;
};

/** A plan and its passport. */
export function engineFiles(path: string, plan: Buffer, facts: PassportFacts): Files {
  const { target, recipe, ...document } = sampleIdentity();
  const version = [...plan.subarray(24, 28)].join('.');
  const passport = samplePassport(plan, {
    ...document,
    recipe: { ...recipe, ...facts.recipe },
    target: { ...target, product: 'tensorrt', version, computeCapabilities: [facts.capability] },
  });
  const { inputs, outputs, knownAnswer, gpu = null } = facts;
  const whole = {
    ...passport,
    built: { ...passport.built, gpu },
    plan: { ...passport.plan, inputs, outputs },
    ...(knownAnswer && { knownAnswer }),
  };
  return { [path]: plan, [`${path}.passport.json`]: JSON.stringify(whole) };
}

const tensor = (name: string, dtype: string, ...shape: (number | null)[]) => ({ name, dtype, shape });
const range = (min: number[], opt: number[], max: number[], values = false) => ({ min, opt, max, values });

export const detector: PassportFacts = {
  capability: 89,
  inputs: [tensor('images', 'float32', null, 3, null, null)],
  outputs: [tensor('scores', 'float32', null, 4), tensor('count', 'int32', null)],
  recipe: {
    profiles: [
      { images: range([1, 3, 320, 320], [4, 3, 640, 640], [8, 3, 640, 640]) },
      { images: range([1, 3, 640, 640], [2, 3, 1280, 1280], [2, 3, 1280, 1280]) },
    ],
  },
};

export const encoder: PassportFacts = {
  capability: 89,
  inputs: [tensor('x', 'float16', null, 128, null), tensor('z', 'float16', null, 2)],
  outputs: [tensor('y', 'float16', null, 4), tensor('z_next', 'float16', null, 2)],
  recipe: {
    profiles: [{ x: range([1, 128, 41], [4, 128, 57], [8, 128, 57]), z: range([1, 2], [4, 2], [8, 2]) }],
  },
};

const shaper: PassportFacts = {
  capability: 89,
  inputs: [tensor('data', 'float32', 1, 6), tensor('size', 'int32', 2)],
  outputs: [tensor('out', 'float32', null, null)],
  recipe: { profiles: [{ size: range([1, 1], [2, 3], [3, 6], true) }] },
};

const identityOf = (files: Files, path: string): string =>
  identityDigest((JSON.parse(String(files[`${path}.passport.json`])) as Passport).identity.document);

/** A repository without a fault: a detector for two capabilities, an encoder with state, a model with a shape tensor, another back end's, an ensemble. */
export function goodRepository(): Files {
  const engines = {
    ...engineFiles('det/1/sm_89.plan', trtPlan(1), detector),
    ...engineFiles('det/1/sm_90.plan', trtPlan(2), { ...detector, capability: 90 }),
    ...engineFiles('enc/3/model.plan', trtPlan(3), encoder),
    ...engineFiles('shape/1/model.plan', trtPlan(4), shaper),
  };
  return {
    ...engines,
    'det/config.pbtxt': `name: "det"
platform: "tensorrt_plan"
max_batch_size: 8
input [ { name: "images" data_type: TYPE_FP32 dims: [ 3, -1, -1 ] } ]
output [
  { name: "scores" data_type: TYPE_FP32 dims: [ 4 ] label_filename: "labels.txt" },
  { name: "count" data_type: TYPE_INT32 dims: [ 1 ] reshape { shape: [ ] } }
]
instance_group [ { kind: KIND_GPU count: 1 profile: [ "0", "1" ] } ]
cc_model_filenames [ { key: "8.9" value: "sm_89.plan" }, { key: "9.0" value: "sm_90.plan" } ]
dynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 500 }
model_warmup [ { name: "zeros" batch_size: 1 inputs { key: "images" value { data_type: TYPE_FP32 dims: [ 3, 640, 640 ] zero_data: true } } } ]
parameters { key: "trtforge.identity.8.9" value { string_value: "${identityOf(engines, 'det/1/sm_89.plan')}" } }
`,
    'det/labels.txt': 'cat\ndog\nbird\nfish\n',
    'enc/config.pbtxt': `name: "enc"
backend: "tensorrt"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP16 dims: [ 128, -1 ] } ]
output [ { name: "y" data_type: TYPE_FP16 dims: [ 4 ] } ]
instance_group [ { kind: KIND_GPU count: 2 } ]
sequence_batching {
  oldest { max_candidate_sequences: 8 preferred_batch_size: [ 4 ] }
  state [ {
    input_name: "z" output_name: "z_next" data_type: TYPE_FP16 dims: [ 2 ]
    initial_state { name: "ones" data_type: TYPE_FP16 dims: [ 2 ] data_file: "z" }
  } ]
}
version_policy { specific { versions: [ 3 ] } }
`,
    'enc/initial_state/z': Buffer.alloc(4, 60),
    'shape/warmup/size': Buffer.from([2, 0, 0, 0, 3, 0, 0, 0]),
    'enc/contract.json': JSON.stringify({
      schema: 'trtforge.contract/1',
      name: 'enc',
      inputs: [{ name: 'z' }],
      outputs: [{ name: 'z_next' }],
      state: [{ input: 'z', output: 'z_next', initial: 1 }],
    }),
    'shape/config.pbtxt': `backend: "tensorrt"
input [ { name: "data" data_type: TYPE_FP32 dims: [ 1, 6 ] }, { name: "size" data_type: TYPE_INT32 dims: [ 2 ] is_shape_tensor: true } ]
output [ { name: "out" data_type: TYPE_FP32 dims: [ -1, -1 ] } ]
model_warmup [ {
  name: "file" batch_size: 1
  inputs { key: "data" value { data_type: TYPE_FP32 dims: [ 1, 6 ] random_data: true } }
  inputs { key: "size" value { data_type: TYPE_INT32 dims: [ 2 ] input_data_file: "size" } }
} ]
`,
    'post/1/model.py': '',
    'post/config.pbtxt': `backend: "python"
max_batch_size: 8
input [ { name: "scores" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "best" data_type: TYPE_INT32 dims: [ 1 ] } ]
`,
    'pipe/1/': '',
    'pipe/config.pbtxt': `platform: "ensemble"
max_batch_size: 8
input [ { name: "image" data_type: TYPE_FP32 dims: [ 3, 640, 640 ] } ]
output [ { name: "best" data_type: TYPE_INT32 dims: [ 1 ] } ]
ensemble_scheduling { step [
  { model_name: "det" model_version: -1 input_map { key: "images" value: "image" } output_map { key: "scores" value: "s" } },
  { model_name: "post" model_version: -1 input_map { key: "scores" value: "s" } output_map { key: "best" value: "best" } }
] }
`,
  };
}
