/** The middle of a list, or the mean of the two middle ones. */
export function median(list) {
  const sorted = [...list].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/**
 * Runs each side once per round, the order turned around every other round, and gives the medians. A side that throws is null from then on,
 * and `problem` is told once.
 */
export async function inTurns(rounds, sides, problem) {
  const found = Object.fromEntries(Object.keys(sides).map((name) => [name, []]));
  const failed = new Set();
  for (let round = 0; round < rounds; round++) {
    const names = Object.keys(sides).filter((name) => sides[name] !== null && !failed.has(name));
    for (const name of round % 2 === 0 ? names : names.reverse()) {
      try {
        found[name].push(await sides[name]());
      } catch (error) {
        failed.add(name);
        problem(`${name}: ${error.code ?? error.name}: ${error.message.split('\n')[0]}`);
      }
    }
  }
  return Object.fromEntries(
    Object.entries(found).map(([name, values]) => [name, values.length === 0 ? null : median(values)]),
  );
}

/** One line of the report. `atMost` and `atLeast` bound the ratio trtforge / peer, `within` its distance from 1. */
export function figure(what, unit, ours, peer, { atMost, atLeast, within } = {}) {
  const ratio = ours === null || peer === null ? null : ours / peer;
  const limit =
    atMost !== undefined
      ? `≤ ${atMost}`
      : atLeast !== undefined
        ? `≥ ${atLeast}`
        : within !== undefined
          ? `1 ± ${within}`
          : null;
  const met =
    ratio === null || limit === null
      ? undefined
      : atMost !== undefined
        ? ratio <= atMost
        : atLeast !== undefined
          ? ratio >= atLeast
          : Math.abs(ratio - 1) <= within;
  return { what, unit, ours, peer, ratio, limit, met };
}
