import { isFloat32, isStored, type Operation, operatorName, type Value } from './flow.js';
import { movers, sums } from './operator-traits.js';

/** Where the values come from that `value-ranges` follows: integers, classes, their own norm. */

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '));
const integers = words('int32 int64 uint32 uint64');

/** Whether a value has integers that may be large. */
export const isCounted = (value: Value | undefined): boolean =>
  value?.type !== undefined && integers.has(value.type);

/** Whether a value is made by an operation of a kind, and handed on by others since. */
function comesFrom(
  value: Value | undefined,
  isOrigin: (operation: Operation) => boolean,
  isStep: (name: string) => boolean,
): boolean {
  let level = [value];
  for (let depth = 0; depth < 8; depth++) {
    const producers = level.flatMap((one) => one?.producer ?? []);
    if (producers.some(isOrigin)) return true;
    const steps = producers.filter((operation) => isStep(operatorName(operation)));
    level = [...new Set(steps.flatMap(({ inputs }) => inputs.filter((one) => one && !isStored(one))))];
  }
  return false;
}

const isCastOfIntegers = ({ inputs: [input], outputs, node }: Operation): boolean =>
  node.opType === 'Cast' && isFloat32(outputs[0]) && isCounted(input);

/** Whether a float was cast from integers, perhaps moved since. */
export const comesFromIntegers = (value: Value | undefined): boolean =>
  comesFrom(value, isCastOfIntegers, (name) => movers.has(name));

const indexSteps = words('Cast Mod Div Sub Add');
const counting = words('ArgMax ArgMin TopK NonZero NonMaxSuppression');
const isCount = (operation: Operation): boolean => counting.has(operatorName(operation));
const isExtent = (operation: Operation): boolean => operatorName(operation) === 'ReduceMax';

/** Classes times a step that is computed, by which the boxes of each are set apart. Integers that nothing counted, times anything but an extent, are a mask. */
export function isClassOffset({ inputs }: Operation): boolean {
  if (inputs.some((value) => value === undefined || isStored(value))) return false;
  return inputs.some((value, index) => {
    if (!comesFromIntegers(value)) return false;
    const isClass = comesFrom(value, isCount, (name) => movers.has(name) || indexSteps.has(name));
    const step = inputs[1 - index];
    return (
      isClass || comesFrom(step, isExtent, (name) => movers.has(name) || sums.has(name) || name === 'Cast')
    );
  });
}

/** Whether a value is a norm of another, reduced from it within a few steps: what is divided by its own norm is at most 1. */
export function isNormOf(value: Value | undefined, origin: Value | undefined): boolean {
  let level = new Set([value]);
  let isReduced = false;
  for (let depth = 0; depth < 10; depth++) {
    if (isReduced && level.has(origin)) return true;
    const producers = [...level].flatMap((one) => one?.producer ?? []);
    isReduced ||= producers.some(({ node }) => node.opType.startsWith('Reduce'));
    level = new Set(
      producers.flatMap(({ inputs }) => inputs.filter((one) => one !== undefined && !isStored(one))),
    );
  }
  return false;
}
