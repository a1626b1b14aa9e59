import type { PlanBuilder } from '../../engines/builder/build-engine.js';
import type { ResolvedBuild } from '../../engines/builder/prepare.js';
import type { ProfileRequest } from '../../engines/identity/profile.js';
import { TrtforgeError } from '../../errors.js';
import { formatNamed } from '../../formats/precision/formats/index.js';
import { dtypes } from '../../formats/tensor/dtype.js';
import type { Component } from './component.js';
import { explainImpossibleProfile, impossibleLine } from './impossible-profile.js';

/** A component with everything decided. */
export interface PreparedComponent {
  readonly component: Component;
  readonly profile: ProfileRequest;
  readonly prepared: ResolvedBuild;
  readonly enginePath: string;
}

/**
 * A builder whose plans of one component are checked before they are kept: TF_ENGINE_TOO_SMALL and TF_PROFILE_INVALID for plans that the builder passed
 * and nobody can use. `logPath` is named in the message.
 */
export function componentBuilder(
  build: PlanBuilder,
  target: PreparedComponent,
  logPath: string,
  environment: NodeJS.ProcessEnv,
): PlanBuilder {
  const { component, profile } = target;
  return async (request, options) => {
    const impossible = (line: string) =>
      explainImpossibleProfile(component, profile, line, {
        emit: options.emit,
        signal: options.signal,
        environment,
      });
    let outcome: Awaited<ReturnType<PlanBuilder>>;
    try {
      outcome = await build(request, options);
    } catch (error) {
      const isRefusal = error instanceof TrtforgeError && error.code === 'TF_BUILD_FAILED';
      const line = isRefusal ? impossibleLine([error.message]) : undefined;
      throw line === undefined ? error : await impossible(line);
    }
    const line = impossibleLine(outcome.warnings);
    if (line !== undefined) throw await impossible(line);
    assertNotSmall(target, outcome.bytes, logPath);
    return outcome;
  };
}

/** Models with less weights than this say nothing about the size of their engines. */
const TELLING_BYTES = 1 << 20;

/** An engine holds its weights in their type, though builders drop what leads to no output and fold what is constant; a quarter is beyond that. */
const SMALLEST_SHARE = 0.25;

/** Plans that leave weights out on purpose. */
const LEAN_FLAGS = new Set(['strip-plan', 'refit-identical', 'refit-individual']);

function assertNotSmall(
  { component, prepared, enginePath }: PreparedComponent,
  bytes: number,
  logPath: string,
): void {
  const expected = typedWeightBytes(prepared);
  const isLean = prepared.identity.recipe.flags.some((flag) => LEAN_FLAGS.has(flag));
  if (isLean || expected < TELLING_BYTES || bytes >= expected * SMALLEST_SHARE) return;
  throw new TrtforgeError(
    'TF_ENGINE_TOO_SMALL',
    `The engine of the ${component.name} has ${bytes} bytes, though the model's weights alone are ${expected} bytes in its precision; ${enginePath} is left as it was. The log is ${logPath}.`,
    { details: { component: component.name, bytes, weightBytes: expected, log: logPath } },
  );
}

/** Bytes of the weights in the precision that the builder gets; an upper bound, since some stay FP32. */
export const typedWeightBytes = ({ identity, content }: ResolvedBuild): number => {
  const { dtype } = formatNamed(identity.recipe.precision) ?? { dtype: 'float32' };
  return (content.weightBytes * dtypes[dtype].bits) / dtypes.float32.bits;
};
