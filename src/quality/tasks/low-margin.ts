/** Two scores of a row that move by as much as the others do, towards each other. */
const MOVEMENTS = 2;

/**
 * How far the candidate's scores of one row are from the reference's: the largest difference but for those of the two choices, which differ by as much as they
 * were moved whatever moved them. Scores that are equal did not move, also where they are infinite. NaN where one has no number.
 */
export function movementOf(
  reference: Float32Array,
  candidate: Float32Array,
  choices: readonly number[],
): number {
  const isOther = (at: number) => reference.length <= choices.length || !choices.includes(at);
  return reference.reduce(
    (most, score, at) =>
      isOther(at) && score !== candidate[at] ? Math.max(most, Math.abs(candidate[at]! - score)) : most,
    0,
  );
}

/** Whether the movement of a row explains that the candidate chose otherwise: `lead` is that of the reference's choice over the candidate's, in the reference. */
export const isLowMargin = (lead: number, movement: number): boolean =>
  Number.isFinite(movement) && lead <= MOVEMENTS * movement;
