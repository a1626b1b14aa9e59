import { formatBytes, formatMs, formatShare } from '../../../base/text/quantity.js';
import { type BarRow, barChart } from '../../../report/chart/bars.js';
import { markup } from '../../../report/markup.js';
import { badge, figure, type SectionFacts, table } from '../../../report/parts.js';
import type { BundleReport, ComponentReport, SmokeRun } from '../report-schema.js';
import { bundleSizeSentence, modelBytes, shapeText, smokeSentence } from './sentences.js';

/** What was run once, what came out, and what was not done and why. */
export function smokeSection(report: BundleReport): SectionFacts | null {
  const { components, not_checked } = report;
  const ran = components.flatMap((one) => (one.smoke === null ? [] : [{ ...one, smoke: one.smoke }]));
  if (ran.length === 0 && not_checked.length === 0) return null;
  return {
    id: 'smoke',
    title: 'Smoke runs, and what was not done',
    lead: smokeSentence(report),
    body: [
      ran.length > 0 &&
        table(
          'What ran',
          [
            { title: 'component' },
            { title: 'what ran' },
            { title: 'on' },
            { title: 'took', numeric: true },
            { title: 'outputs' },
            { title: 'why not the engine' },
          ],
          ran.map(({ component, smoke }) => [
            component,
            badge(smoke.ran, smoke.ran === 'engine' ? 'good' : 'warn'),
            smoke.backend,
            formatMs(smoke.ms),
            smoke.outputs.map(outputText),
            smoke.instead ?? '',
          ]),
        ),
      not_checked.length > 0 &&
        markup`<ul class="findings">${not_checked.map((text) => markup`<li>${badge('not done', 'warn')} ${text}</li>`)}</ul>`,
    ],
  };
}

const outputText = ({ name, dtype, shape, finite }: SmokeRun['outputs'][number]) =>
  markup`<span class="check">${name} ${dtype} ${shapeText(shape)}${!finite && [' ', badge('not finite', 'bad')]}</span>`;

/** Bytes on disk of each model and of the engine made from it. */
export function bundleSizesSection(report: BundleReport): SectionFacts | null {
  const rows = report.components.flatMap(sizeRows);
  if (rows.length === 0) return null;
  return {
    id: 'sizes',
    title: 'Sizes',
    lead: bundleSizeSentence(report),
    body: figure(
      barChart(
        {
          id: 'sizes-chart',
          title: 'Size of each model and its engine',
          description: rows.map((row) => `${row.label}: ${row.text}`).join('; '),
        },
        rows,
      ),
      'Bytes on disk, external data included.',
    ),
  };
}

function sizeRows(component: ComponentReport): readonly BarRow[] {
  const before = modelBytes(component);
  const after = component.engine_bytes;
  const row = (label: string, bytes: number, text: string, tone: 'quiet' | 'good'): BarRow => ({
    label: `${component.component}, ${label}`,
    text,
    parts: [{ amount: bytes, tone, name: formatBytes(bytes) }],
  });
  return [
    ...(before === null ? [] : [row('ONNX', before, formatBytes(before), 'quiet')]),
    ...(after === null
      ? []
      : [
          row(
            'engine',
            after,
            before === null ? formatBytes(after) : `${formatBytes(after)} · ${formatShare(after / before)}`,
            'good',
          ),
        ]),
  ];
}
