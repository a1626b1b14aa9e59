import { formatBytes, formatShare } from '../../base/text/quantity.js';
import { type BarRow, barChart } from '../chart/bars.js';
import { figure, type SectionFacts } from '../parts.js';
import type { ForgeResult } from '../result.js';
import { modelBytes, precisionWord, sizeSentence } from '../sentences.js';

/** Bytes on disk at each station of the way. `scope` begins the ids where a page has several results. */
export function sizesSection(result: ForgeResult, scope = ''): SectionFacts | null {
  if (result.model === null) return null;
  const rows = sizeRows(result);
  return {
    id: `${scope}sizes`,
    title: 'Sizes',
    lead: sizeSentence(result),
    body: figure(
      barChart(
        {
          id: `${scope}sizes-chart`,
          title: 'Size at each station',
          description: rows.map((row) => `${row.label}: ${row.text}`).join('; '),
        },
        rows,
      ),
      'Bytes on disk, external data included.',
    ),
  };
}

function sizeRows({ model, conversion, build }: ForgeResult): readonly BarRow[] {
  const original = model === null ? 0 : modelBytes(model);
  const row = (label: string, bytes: number, tone: 'accent' | 'quiet' | 'good'): BarRow => ({
    label,
    text:
      bytes === original || original === 0
        ? formatBytes(bytes)
        : `${formatBytes(bytes)} · ${formatShare(bytes / original)}`,
    parts: [{ amount: bytes, tone, name: formatBytes(bytes) }],
  });
  return [
    row('ONNX as given', original, 'quiet'),
    ...(conversion
      ? [row(`ONNX typed ${precisionWord(conversion.precision)}`, conversion.bytes.after, 'accent')]
      : []),
    ...(build ? [row('engine', build.bytes, 'good')] : []),
  ];
}
