import type { z } from 'zod';
import { faultText } from '../../base/text/schema-error.js';
import { TrtforgeError } from '../../errors.js';
import { type Dtype, dtypes } from '../tensor/dtype.js';

/** Parses with a schema that leaves out what it does not know, or throws TF_CONTRACT_INVALID with the first field that is wrong. */
export function parseForm<T>(path: string, schema: z.ZodType<T>, content: unknown): T {
  const parsed = schema.safeParse(content);
  if (parsed.success) return parsed.data;
  throw contractInvalid(path, faultText(parsed.error));
}

/** Leaves of `given` that `taken` lacks, as paths; positions in lists are one path (`inputs[].description`). */
export function ignoredFields(given: unknown, taken: unknown, path = ''): readonly string[] {
  const found = new Set<string>();
  collect(given, taken, path, found);
  return [...found];
}

function collect(given: unknown, taken: unknown, path: string, found: Set<string>): void {
  if (Array.isArray(given)) {
    const kept = Array.isArray(taken) ? taken : undefined;
    if (kept === undefined && given.every((item) => typeof item !== 'object')) found.add(path);
    else
      given.forEach((item, at) => {
        collect(item, kept?.[at], `${path}[]`, found);
      });
  } else if (typeof given === 'object' && given !== null) {
    const kept = typeof taken === 'object' && taken !== null ? new Map(Object.entries(taken)) : undefined;
    for (const [key, item] of Object.entries(given))
      collect(item, kept?.get(key), path === '' ? key : `${path}.${key}`, found);
  } else if (taken === undefined) found.add(path);
}

/** A dtype by numpy's name; absent is null: any. */
export function contractDtype(path: string, tensor: string, name: string | null | undefined): Dtype | null {
  if (name === undefined || name === null) return null;
  const plain = name.replace(/^(?:torch|np|numpy)\./, '');
  const dtype = aliases[plain] ?? plain;
  if (Object.hasOwn(dtypes, dtype)) return dtype as Dtype;
  throw contractInvalid(path, `the dtype ${JSON.stringify(name)} of ${tensor} is unknown`);
}

const aliases: Readonly<Record<string, Dtype>> = {
  float: 'float32',
  fp32: 'float32',
  half: 'float16',
  fp16: 'float16',
  bf16: 'bfloat16',
  long: 'int64',
  int: 'int32',
};

export const contractInvalid = (path: string, why: string): TrtforgeError =>
  new TrtforgeError('TF_CONTRACT_INVALID', `${path} is not a valid contract: ${why}.`);
