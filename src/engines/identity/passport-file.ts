import type { z } from 'zod';
import type { passportSchema } from './passport-schema.js';

/** The JSON beside a plan (`passport-schema.ts`). */
export interface Passport extends z.infer<typeof passportSchema> {}

/** Where the passport of an engine lies: beside it. */
export const passportPath = (planPath: string): string => `${planPath}.passport.json`;
