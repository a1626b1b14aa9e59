import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { faultText } from '../../../base/text/schema-error.js';
import { readYaml } from '../../../base/text/yaml.js';
import type { StoredEngine } from '../../../engines/store/store.js';
import { type ErrorCode, TrtforgeError } from '../../../errors.js';
import { type Contract, contractSchema, knownStates, statesByName } from '../states.js';
import { refused, type ServedModel } from './served-model.js';

/** Throws TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_CONTRACT_INVALID. */
export const readContract = (path: string): Contract => read(path, contractSchema, 'TF_CONTRACT_INVALID');

/** A bundle's `model_meta.json`, of which the client reads the rest. Throws TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_BUNDLE_META_INVALID. */
export const readBundleMeta = (path: string) =>
  read(path, z.looseObject({ model_name: z.string().nullish() }), 'TF_BUNDLE_META_INVALID');

function read<T>(path: string, schema: z.ZodType<T>, code: ErrorCode): T {
  const parsed = schema.safeParse(readYaml(path, code).content);
  if (parsed.success) return parsed.data;
  throw new TrtforgeError(code, `${path} cannot be used for Triton: ${faultText(parsed.error)}.`);
}

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

/** The states of a component whose known answer has none, by their names. */
export function namedStates({ passport }: StoredEngine): Contract | undefined {
  if (knownStates(passport).length > 0) return undefined;
  return { inputs: [], state: [...statesByName(passport)] };
}

const CLIENT = new URL('../../../../examples/triton/main.ts', import.meta.url);

/** A program that decodes with the models, and what it reads: by name. */
export function clientFiles(
  start: string,
  models: readonly ServedModel[],
  meta: object,
): readonly (readonly [string, string])[] {
  const described = models.map(({ name, maxBatch, states, fed, inputs, outputs }) => ({
    ...{ model: name, isBatched: maxBatch > 0, isStateful: states.length > 0, inputs, outputs, fed },
  }));
  return [
    [`${start}.client.json`, `${JSON.stringify({ models: described, meta }, null, 1)}\n`],
    [`${start}.client.mts`, readFileSync(CLIENT, 'utf8').replace('client.json', `${start}.client.json`)],
  ];
}
