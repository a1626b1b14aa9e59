import { realpathSync } from 'node:fs';
import type { z } from 'zod';
import type { passportSchema } from './passport-schema.js';

/** The JSON beside a plan (`passport-schema.ts`). */
export interface Passport extends z.infer<typeof passportSchema> {}

/** Where the passport of an engine lies: beside it. */
export const passportPath = (planPath: string): string => `${planPath}.passport.json`;

/** What an engine should be: the expected identity, and that of its place in a store (`by-identity/xx/ID/`), also behind links. */
export function identitiesOf(planPath: string, expected?: string): readonly string[] {
  const places = [planPath, resolved(planPath)].flatMap(
    (path) => /(?:^|\/)by-identity\/([0-9a-f]{2})\/(\1[0-9a-f]{62})\/[^/]+$/.exec(path)?.[2] ?? [],
  );
  return expected === undefined ? places : [expected, ...places];
}

function resolved(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    return path;
  }
}
