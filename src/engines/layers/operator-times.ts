import { formatMs } from '../../base/text/quantity.js';
import type { OperatorTime } from './result.js';

export interface OperatorTable {
  readonly heads: readonly string[];
  /** The last has the sums, which are those of all layers. */
  readonly rows: readonly (readonly string[])[];
}

/** Layers and time by ONNX operator in words; with two sides what B takes more, and no times where nothing was timed. */
export function operatorTable(operators: readonly OperatorTime[]): OperatorTable {
  const letters = operators[0]?.sides.length === 2 ? [' A', ' B'] : [''];
  const isTimed = operators.some(({ sides }) => sides.some(({ ms }) => ms !== null));
  const isCompared = isTimed && letters.length > 1;
  const total = (side: number): OperatorTime['sides'][number] => {
    const all = operators.map(({ sides }) => sides[side]!);
    const times = all.flatMap(({ ms }) => ms ?? []);
    return {
      layers: all.reduce((sum, { layers }) => sum + layers, 0),
      ms: times.length === 0 ? null : times.reduce((sum, ms) => sum + ms, 0),
    };
  };
  const cells = ({ op, sides }: OperatorTime): string[] => {
    const [a = null, b = null] = sides.map(({ ms }) => ms);
    const more = a === null && b === null ? null : (b ?? 0) - (a ?? 0);
    return [
      op,
      ...sides.flatMap(({ layers, ms }) => [String(layers), ...(isTimed ? [timeText(ms)] : [])]),
      ...(isCompared ? [more === null ? '' : signedMs(more)] : []),
    ];
  };
  return {
    heads: [
      'operator',
      ...letters.flatMap((letter) => [`layers${letter}`, ...(isTimed ? [`time${letter}`] : [])]),
      ...(isCompared ? ['B - A'] : []),
    ],
    rows: [...operators, { op: 'all', sides: letters.map((_, side) => total(side)) }].map(cells),
  };
}

const timeText = (ms: number | null): string => (ms === null ? '' : formatMs(ms));

export const signedMs = (ms: number): string => `${ms < 0 ? '-' : '+'}${formatMs(Math.abs(ms))}`;
