import type { CommandRuns, Cost } from './measure.js';

/** The figure the project set itself for one measurement. */
export interface Bar {
  readonly limit: number;
  readonly better: 'lower' | 'higher';
}

/** One line of a benchmark: ours beside the peer's, in the same run on the same machine. */
export interface Measurement {
  readonly what: string;
  readonly unit:
    | 's'
    | 'MB'
    | 'M pairs/s'
    | 'M values/s'
    | 'times plain'
    | 'MB/s'
    | 'images/s'
    | 'µs'
    | 'nodes';
  readonly ours: number;
  readonly peer?: { readonly name: string; readonly figure: number };
  readonly bar?: Bar;
}

/** Results that are more than a figure beside another. */
export interface Table {
  readonly caption: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

export interface CaseResult {
  readonly case: string;
  readonly title: string;
  /** The commands or calls that were compared, ours first. */
  readonly commands: readonly string[];
  readonly measurements: readonly Measurement[];
  readonly tables?: readonly Table[];
  /** Why parts of the case, or all of it, did not run here. */
  readonly skipped: readonly string[];
}

/** How many times better ours is than the peer: above 1 is in our favour whatever the unit. */
export function advantage({ ours, peer, unit }: Measurement): number | undefined {
  if (peer === undefined) return undefined;
  return unit.endsWith('/s') ? ours / peer.figure : peer.figure / ours;
}

export function isMet({ ours, bar }: Measurement): boolean | undefined {
  if (bar === undefined) return undefined;
  return bar.better === 'lower' ? ours <= bar.limit : ours >= bar.limit;
}

/** Wall time and, where they could be measured, processor time and peak memory of a command beside a peer's. */
export function costs(
  what: string,
  ours: CommandRuns,
  peer: { readonly name: string; readonly runs: CommandRuns } | undefined,
  bars: { readonly seconds?: number; readonly megabytes?: number },
): Measurement[] {
  const line = (
    kind: string,
    unit: 's' | 'MB',
    figure: (cost: Cost) => number | null,
    limit?: number,
  ): Measurement[] => {
    const own = figure(ours.median);
    if (own === null) return [];
    const other = peer === undefined ? null : figure(peer.runs.median);
    return [
      {
        what: `${what}, ${kind}`,
        unit,
        ours: own,
        ...(other === null || peer === undefined ? {} : { peer: { name: peer.name, figure: other } }),
        ...(limit === undefined ? {} : { bar: { limit, better: 'lower' as const } }),
      },
    ];
  };
  const megabytes = ({ peakBytes }: Cost) => (peakBytes === null ? null : peakBytes / 1e6);
  return [
    ...line('wall time', 's', ({ seconds }) => seconds, bars.seconds),
    ...line('processor time', 's', ({ cpuSeconds }) => cpuSeconds),
    ...line('peak memory', 'MB', megabytes, bars.megabytes),
  ];
}
