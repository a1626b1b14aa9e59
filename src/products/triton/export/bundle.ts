import { readFileSync } from 'node:fs';
import type { StoredEngine } from '../../../engines/store/store.js';
import { type BundleMeta, logitsOf } from '../../../formats/contract/model-meta.js';
import { refused, type ServedModel } from './served-model.js';

const roles = { encoder: /encoder/i, predictor: /predict|decoder/i, joint: /joint/i } as const;
type Role = keyof typeof roles;

/** The engines of each component, by the names of their models. Throws TF_SERVING_REFUSED. */
export function componentsOf(
  engines: readonly StoredEngine[],
): readonly (readonly [role: Role, engines: readonly StoredEngine[]])[] {
  const names = Object.keys(roles) as Role[];
  const components = names.map((role) => {
    const isOf = (engine: StoredEngine) =>
      names.find((each) => roles[each].test(engine.passport.model.name)) === role;
    return [role, engines.filter(isOf)] as const;
  });
  const missing = components.find(([, own]) => own.length === 0)?.[0];
  if (missing === undefined && components.flatMap(([, own]) => own).length === engines.length)
    return components;
  throw refused(
    missing === undefined
      ? 'One of the engines is of no component of the bundle.'
      : `The bundle has no engine of its ${missing}.`,
    `Name the engines of encoder, predictor and joint; their models are ${engines.map(({ passport }) => passport.model.name).join(', ')}.`,
  );
}

const CLIENT = new URL('../../../../examples/triton/main.ts', import.meta.url);

/** A program that decodes with the models, and what it reads: by name. Throws TF_SERVING_REFUSED where the meta file leaves open how. */
export function clientFiles(
  start: string,
  models: readonly ServedModel[],
  meta: BundleMeta,
): readonly (readonly [string, string])[] {
  const [, , joint] = models;
  const logits = logitsOf(meta, joint?.outputs[0]?.shape?.at(-1));
  if (typeof logits === 'string')
    throw refused(
      `${meta.path} cannot be decoded with: ${logits}.`,
      'Correct blank_id, duration_values and joint_vocab_size in it.',
    );
  const decoding = { ...logits, labels: meta.labels, streaming: meta.streaming };
  const described = models.map(({ name, maxBatch, states, fed, inputs, outputs }) => ({
    ...{ model: name, isBatched: maxBatch > 0, isStateful: states.length > 0, inputs, outputs, fed },
  }));
  return [
    [`${start}.client.json`, `${JSON.stringify({ models: described, decoding }, null, 1)}\n`],
    [`${start}.client.mts`, readFileSync(CLIENT, 'utf8').replace('client.json', `${start}.client.json`)],
  ];
}
