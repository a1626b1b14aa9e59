import { formatBytes, formatMs, formatShare } from '../../base/text/quantity.js';
import { type BarRow, barChart } from '../chart/bars.js';
import { markup } from '../markup.js';
import { code, details, facts, figure, type SectionFacts } from '../parts.js';
import type { ForgeResult } from '../result.js';
import { engineSentence, gpusOf, libraryOf, modelBytes, precisionLabel, sizeSentence } from '../sentences.js';

/** The engine and its passport. `scope` begins the ids where a page has several results. */
export function engineSection({ engine, passport, build }: ForgeResult, scope = ''): SectionFacts | null {
  if (build === null) return null;
  const { os, arch } = build.passport.identity.document.target;
  return {
    id: `${scope}engine`,
    title: 'The engine',
    lead: engineSentence(build),
    body: [
      facts([
        ['name', code(build.passport.name), 'wide'],
        ['identity', code(build.identity), 'wide'],
        ['plan', code(engine ?? '–'), 'wide'],
        ['passport', code(passport ?? '–'), 'wide'],
        ['size', formatBytes(build.passport.plan.bytes)],
        ['build', formatMs(build.passport.built.ms)],
        ['made with', libraryOf(build.passport)],
        ['serves', gpusOf(build.passport) || 'the GPU it was built on'],
        ['platform', `${os} ${arch}`],
      ]),
      details(
        'The passport in full',
        markup`<pre class="json"><code>${JSON.stringify(build.passport, null, 2)}</code></pre>`,
      ),
    ],
  };
}

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
      ? [row(`ONNX typed ${precisionLabel(conversion.precision)}`, conversion.bytes.after, 'accent')]
      : []),
    ...(build ? [row('engine', build.passport.plan.bytes, 'good')] : []),
  ];
}
