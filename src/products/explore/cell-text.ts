import { formatBytes, formatCount, formatMs, formatShare, plural } from '../../base/text/quantity.js';
import { signedMs } from '../../engines/layers/operator-times.js';
import type { Comparison, Side } from './result.js';

export type Cell = string | number | null;
export type Kind = 'text' | 'ms' | 'signed-ms' | 'share' | 'bytes' | 'count' | 'db' | 'flops';

/** A figure as the page and the text have it; nothing where there is none. */
export function cellText(kind: Kind, cell: Cell): string {
  if (cell === null) return '';
  if (typeof cell === 'string') return cell;
  switch (kind) {
    case 'ms':
      return formatMs(cell);
    case 'signed-ms':
      return signedMs(cell);
    case 'share':
      return formatShare(cell);
    case 'bytes':
      return formatBytes(cell);
    case 'db':
      return Number.isFinite(cell) ? `${cell.toFixed(1)} dB` : cell > 0 ? '∞ dB' : 'none';
    case 'flops':
      return cell >= 1e9
        ? `${(cell / 1e9).toFixed(2)} G`
        : cell >= 1e6
          ? `${(cell / 1e6).toFixed(2)} M`
          : formatCount(cell);
    default:
      return formatCount(cell);
  }
}

const KINDS: Readonly<Record<Side['kind'], string>> = {
  engine: 'engine',
  layers: 'layers of an engine',
  program: 'compiled program',
  bench: 'measured layers',
  onnx: 'model',
};

/** What a side is, and what its rows have together. */
export function aboutSide({ kind, totals, timing }: Omit<Side, 'rows' | 'tensors'>): string {
  const { rows, copies, weightBytes, flops } = totals;
  const whole = timing?.measuredMs ?? null;
  return [
    KINDS[kind],
    plural(rows, kind === 'onnx' ? 'node' : 'layer'),
    ...(copies === 0 ? [] : [`${copies} of them copies`]),
    ...(timing === null ? [] : [`${formatMs(timing.totalMs)} together`]),
    ...(whole === null ? [] : [`${formatMs(whole)} measured as a whole, without timing layers`]),
    ...(weightBytes === 0 ? [] : [`weights ${formatBytes(weightBytes)}`]),
    ...(flops === null || flops === 0 ? [] : [`${cellText('flops', flops)} FLOPs`]),
  ].join(' · ');
}

export function aboutComparison({ counts, newReformats, goneReformats }: Comparison): string {
  const { same, changed, fused, onlyA, onlyB } = counts;
  return `${plural(same, 'layer')} alike, ${changed} changed, ${plural(fused, 'group')} fused in another way, ${onlyA} in A alone, ${onlyB} in B alone; ${plural(newReformats, 'new reformat')}, ${goneReformats} gone`;
}
