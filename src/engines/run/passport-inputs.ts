import { TrtforgeError } from '../../errors.js';
import { type Dtype, dtypes } from '../../formats/tensor/dtype.js';
import { type Passport, readPassport } from '../identity/passport.js';
import { readPlanHeader } from '../plan/header.js';
import type { KnownInput } from './check-sources.js';

/** The inputs of an engine; null where it has no passport, or one without inputs. */
export function inputsInPassport(passport: Passport | null): readonly KnownInput[] | null {
  if (passport === null) return null;
  const { plan } = passport;
  const known = plan.inputs.flatMap(({ name, dtype, shape }) =>
    dtype in dtypes ? [{ name, dtype: dtype as Dtype, shape }] : [],
  );
  return known.length > 0 && known.length === plan.inputs.length ? known : null;
}

/** The passport of a plan as large as this; null where there is none. */
export function passportHere(planPath: string): Passport | null {
  try {
    const passport = readPassport(planPath);
    return passport.plan.bytes === readPlanHeader(planPath).planBytes ? passport : null;
  } catch (error) {
    // Loading the engine reports what is wrong with it.
    if (error instanceof TrtforgeError) return null;
    throw error;
  }
}
