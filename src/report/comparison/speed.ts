import type { BenchResult, BenchRun } from '../../quality/bench/result.js';
import { percentilesOf, type Spread } from '../../quality/bench/times.js';
import { modeText } from '../sentences.js';
import { comparedPart, differ, lacks, type Names, row } from './compare.js';
import type { ComparedPart } from './result.js';

/** Beginnings of the rows of speed; the first kind that is there is drawn. */
export const MEDIANS = ['GPU time, median', 'end to end, median'] as const;

/** The measurements on one GPU, in one mode, at the same shapes. */
export function speedPart(
  a: BenchResult | null,
  b: BenchResult | null,
  names: Names,
  warnings: readonly (string | null)[] = [],
): ComparedPart | null {
  const [runsA, runsB] = [a, b].map((side) => new Map(side?.runs.map((run) => [shapesText(run), run]))) as [
    Map<string, BenchRun>,
    Map<string, BenchRun>,
  ];
  const shapes = [...new Set([...runsA.keys(), ...runsB.keys()])];
  const common = shapes.filter((shape) => runsA.has(shape) && runsB.has(shape));
  const modes = common.map((shape) =>
    differ(
      `Measured in different modes (${shape})`,
      modeText(runsA.get(shape)!.mode),
      modeText(runsB.get(shape)!.mode),
    ),
  );
  const doubts = (
    [
      [names[0], runsA],
      [names[1], runsB],
    ] as const
  ).flatMap(([side, runs]) =>
    [...runs].flatMap(([shape, run]) =>
      run.doubts.map(({ why }) => `${side} (${shape}) is unreliable: ${why}`),
    ),
  );
  return comparedPart(
    'speed',
    shapes.flatMap((shape) => {
      const [one, other] = [runsA.get(shape), runsB.get(shape)];
      return [
        ...timeRows('GPU time, ', shape, one?.gpuMs, other?.gpuMs),
        ...timeRows('end to end, ', shape, one?.endToEndMs, other?.endToEndMs),
        row(`items (${shape})`, 'per-second', one?.itemsPerSecond, other?.itemsPerSecond),
      ];
    }),
    a === null || b === null
      ? [lacks('measurement', a, b, names)]
      : [
          differ('Measured on different GPUs', a.gpu?.name ?? 'no GPU', b.gpu?.name ?? 'no GPU'),
          common.length === 0 ? 'The runs have no shapes in common.' : null,
          ...modes,
        ],
    a === null || b === null
      ? []
      : [
          ...warnings,
          differ('Measured by', a.backend, b.backend),
          a.gpu === null && b.gpu === null
            ? 'The CPU model is not recorded: compare results of one machine only.'
            : null,
          differ('Drivers', a.gpu?.driver ?? 'unknown', b.gpu?.driver ?? 'unknown'),
        ],
    doubts,
  );
}

/** Medians on the GPU at the shapes that the first measured run has; of a run without, or with one that does not compare, why. */
export function gpuTimes(benches: readonly (BenchResult | null)[], letters: readonly string[]) {
  const first = benches.findIndex((bench) => bench?.gpuMs != null);
  const base = benches[first];
  if (base == null) return null;
  const shape = shapesText(base.runs[0]!);
  const figures = benches.map((bench, at) => {
    if (bench === null) return 'Its time was not measured.';
    const names = [letters[first]!, letters[at]!] as const;
    const apart = speedPart(base, bench, names)?.notComparable ?? [];
    const time = bench.runs.find((run) => shapesText(run) === shape)?.gpuMs?.median;
    return apart.join(' ') || (time ?? `Its time was not measured at ${shape}.`);
  });
  return { what: `GPU time, median (${shape})`, unit: 'ms' as const, figures };
}

const shapesText = ({ shapes }: BenchRun): string =>
  shapes
    .map(({ name, shape }) => `${name} ${shape.join('×')}`)
    .sort()
    .join(', ');

/** Median, 99 %, and the percentiles that either side was asked for. */
function timeRows(what: string, shape: string, a: Spread | null | undefined, b: Spread | null | undefined) {
  const timesOf = (spread: Spread | null | undefined) =>
    spread ? { median: spread.median, ...Object.fromEntries(percentilesOf(spread, ['p99'])) } : {};
  const [timesA, timesB]: readonly Record<string, number>[] = [timesOf(a), timesOf(b)];
  return [...new Set([...Object.keys(timesA!), ...Object.keys(timesB!)])].map((name) =>
    row(`${what}${name} (${shape})`, 'ms', timesA![name], timesB![name]),
  );
}
