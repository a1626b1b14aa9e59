import { formatBytes, formatCount, formatMs } from '../../base/text/quantity.js';
import type { BenchResult } from '../../quality/bench/result.js';
import { percentilesOf } from '../../quality/bench/spread.js';
import { badge, code, labelled, numbers, type Section, table } from '../section.js';
import { modeText, speedSentence } from '../sentences.js';

/** The speed of an engine or a model where it was measured, the way of measuring, and what makes the measurement unreliable. */
export function speedSection({ bench }: { readonly bench: BenchResult | null }): Section | null {
  if (bench === null) return null;
  const { gpu, subject, warnings, backend } = bench;
  const sizes: readonly (readonly [string, number | null])[] = [
    ['file', subject.bytes],
    ['activations of one context', subject.contextBytes],
    ['GPU memory that loading took', subject.loadedBytes],
  ];
  return {
    id: 'speed',
    title: 'Speed',
    lead: speedSentence(bench),
    blocks: [
      timesTable(`GPU compute time on ${gpu?.name ?? backend}, and how it was measured`, bench, 'gpuMs'),
      timesTable(`Time end to end on ${backend}, and how it was measured`, bench, 'endToEndMs'),
      table(
        'What it takes',
        ['what', ...numbers('size')],
        sizes.flatMap(([what, bytes]) => (bytes === null ? [] : [[what, formatBytes(bytes)]])),
      ),
      labelled('warning', 'warn', warnings),
    ],
  };
}

/** The runs of which a clock has times, with the percentiles that were requested; null without any. */
function timesTable(caption: string, { runs }: BenchResult, clock: 'gpuMs' | 'endToEndMs') {
  const timed = runs.flatMap((run) => {
    const spread = run[clock];
    return spread === null ? [] : [{ ...run, spread }];
  });
  const percentiles = timed.slice(0, 1).flatMap(({ spread }) => percentilesOf(spread, ['p99']));
  const names = percentiles.map(([name]) => name);
  return table(
    caption,
    ['shapes', ...numbers('median', ...names, 'max', 'items/s', 'samples'), 'mode', 'measurement'],
    timed.map(({ shapes, spread, itemsPerSecond, mode, doubts }) => [
      code(shapes.map(({ name, shape }) => `${name} ${shape.join('×')}`).join(', ')),
      ...[spread.median, ...percentilesOf(spread, ['p99']).map(([, ms]) => ms), spread.max].map(formatMs),
      formatCount(Math.round(itemsPerSecond)),
      formatCount(spread.count),
      modeText(mode),
      doubts.length === 0 ? badge('steady', 'good') : badge('unreliable', 'warn'),
    ]),
  );
}
