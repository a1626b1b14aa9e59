import { TrtforgeError } from '../../errors.js';
import { type Dtype, dtypes } from '../../formats/tensor/dtype.js';
import { readPassport } from '../identity/passport.js';
import { readPlanHeader } from '../plan/header.js';
import type { KnownInput } from './check-sources.js';

/** The inputs of an engine from its passport; null where this plan has no passport, or one without inputs. */
export function inputsInPassport(planPath: string): readonly KnownInput[] | null {
  try {
    const { plan } = readPassport(planPath);
    if (plan.bytes !== readPlanHeader(planPath).planBytes) return null;
    const known = plan.inputs.flatMap(({ name, dtype, shape }) =>
      dtype in dtypes ? [{ name, dtype: dtype as Dtype, shape }] : [],
    );
    return known.length > 0 && known.length === plan.inputs.length ? known : null;
  } catch (error) {
    // Loading the engine reports what is wrong with it.
    if (error instanceof TrtforgeError) return null;
    throw error;
  }
}
