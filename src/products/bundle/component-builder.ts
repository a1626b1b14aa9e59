import type { PlanBuilder, ResolvedBuild } from '../../engines/builder/options.js';
import { TrtforgeError } from '../../errors.js';
import { formatNamed } from '../../formats/precision/formats/index.js';
import { dtypes } from '../../formats/tensor/dtype.js';
import type { Component } from './component.js';

/** The component that a plan is checked against. */
interface CheckedPart {
  readonly component: Component;
  /** The log of the build, for messages. */
  readonly log: string;
}

/** Builds a plan, and rejects one that the builder passed and nothing can use: TF_ENGINE_TOO_SMALL. */
export async function buildChecked(
  build: PlanBuilder,
  [resolved, files, context]: Parameters<PlanBuilder>,
  part: CheckedPart,
): ReturnType<PlanBuilder> {
  const outcome = await build(resolved, files, context);
  assertNotSmall(resolved, outcome.bytes, part);
  return outcome;
}

/** With fewer bytes of weights than this the size of an engine shows nothing. */
const FEWEST_BYTES = 1 << 20;

/** An engine holds its weights in their type, though builders drop what leads to no output and fold what is constant; a quarter is beyond that. */
const SMALLEST_SHARE = 0.25;

/** Plans that leave weights out on purpose. */
const LEAN_FLAGS = new Set(['strip-plan', 'refit-identical', 'refit-individual']);

function assertNotSmall(build: ResolvedBuild, bytes: number, { component, log }: CheckedPart): void {
  const expected = typedWeightBytes(build);
  const isLean = build.identity.recipe.flags.some((flag) => LEAN_FLAGS.has(flag));
  if (isLean || expected < FEWEST_BYTES || bytes >= expected * SMALLEST_SHARE) return;
  throw new TrtforgeError(
    'TF_ENGINE_TOO_SMALL',
    `The engine of the ${component.name} has ${bytes} bytes, though the model's weights alone are ${expected} bytes in its precision; an earlier engine is left as it was. The log is ${log}.`,
    { details: { component: component.name, bytes, weightBytes: expected, log } },
  );
}

/** Bytes of the weights in the precision that the builder gets; an upper bound, since some stay FP32. */
export const typedWeightBytes = ({ identity, content }: ResolvedBuild): number => {
  const format = formatNamed(identity.recipe.precision);
  const dtype = format === undefined ? 'float32' : 'dtype' in format ? format.dtype : format.storedDtype;
  return (content.weightBytes * dtypes[dtype].bits) / dtypes.float32.bits;
};
