import { TrtforgeError } from '../../errors.js';
import { type Dtype, dtypes } from '../../formats/tensor/dtype.js';
import { type Passport, readPassport } from '../identity/passport.js';
import { readPlanHeader } from '../plan/header.js';
import type { EngineBinding } from '../runtime/tensorrt/engine-interface.js';
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

/** The same with their profiles, as the engine itself states them; null also where a profile is not known of every input. */
export function bindingsInPassport(passport: Passport | null): readonly EngineBinding[] | null {
  const { profiles = [] } = passport?.identity.document.recipe ?? {};
  const bindings = (inputsInPassport(passport) ?? []).map(({ name, dtype, shape }): EngineBinding | null => {
    if (shape === null) return null;
    const sizes = shape.flatMap((size) => (typeof size === 'number' ? [size] : []));
    const fixed = sizes.length === shape.length ? { min: sizes, opt: sizes, max: sizes } : null;
    // Without dynamic inputs an engine has one profile, which the recipe leaves out.
    const ranges = (profiles.length === 0 ? [{}] : profiles).map(({ [name]: range = fixed }) => range);
    const known = ranges.filter((range) => range !== null);
    if (known.length < ranges.length) return null;
    const hostValues = profiles.some(({ [name]: range }) => range?.values === true);
    const open = shape.map((size) => (typeof size === 'number' ? size : null));
    return { name, dtype, shape: open, hostValues, profiles: known };
  });
  const known = bindings.filter((binding) => binding !== null);
  return known.length > 0 && known.length === bindings.length ? known : null;
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
