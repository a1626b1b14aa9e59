import { formatBytes, formatCount, formatMs, formatShare } from '../../base/text/quantity.js';
import {
  type BenchResult,
  type BenchSubject,
  benchResultSchema,
  coldPhaseName,
  coldPhases,
} from '../../quality/bench/result.js';
import { packageVersion } from '../../version.js';
import { code, numbers, type Section, table } from '../blocks.js';
import { comparedPart, fileSide, row } from '../comparison/compare.js';
import { speedPart } from '../comparison/speed.js';
import { nameOfFile, speedSentence } from '../sentences.js';
import { defineReport } from './report.js';
import { speedSection } from './section/speed.js';

/** The result that `trtforge bench` and `bench model` print with `--json`. */
export const benchReport = defineReport<BenchResult>({
  source: 'bench',
  file: 'bench.json',
  result: benchResultSchema,
  page: (result) => {
    const { subject, backend, gpu, runs, gpuMs, endToEndMs, itemsPerSecond } = result;
    const isSteady = runs.every(({ doubts }) => doubts.length === 0);
    const spread = gpuMs ?? endToEndMs;
    return {
      name: subject.name ?? nameOfFile(subject.path),
      subtitle: `${subject.path}, ${backend}${gpu === null ? '' : ` on ${gpu.name}`}`,
      kind: 'bench',
      version: packageVersion(),
      verdict: {
        outcome: isSteady ? 'pass' : 'inconclusive',
        word: isSteady ? 'Measured' : 'Unreliable',
        headline: speedSentence(result),
        reasons: [],
        remedies: [],
      },
      figures: [
        ...(spread === null
          ? []
          : [
              { text: formatMs(spread.median), name: 'median' },
              { text: formatMs(spread.p99), name: 'p99' },
            ]),
        { text: formatCount(Math.round(itemsPerSecond)), name: 'items a second' },
        { text: formatBytes(subject.bytes), name: 'file' },
      ],
      sections: [speedSection({ bench: result }), coldSection(result), layersSection(result)],
    };
  },
  compare: {
    side: ({ path, result }) => ({
      ...fileSide(path, result.subject.path),
      headline: speedSentence(result),
      identity: result.subject.identity,
    }),
    pair: (a, b, names) => ({
      identity: null,
      environment: [],
      parts: [sizesPart(a.subject, b.subject), speedPart(a, b, names)].filter((part) => part !== null),
    }),
  },
});

function coldSection({ cold }: BenchResult): Section | null {
  if (cold === undefined) return null;
  const { warm, dropped, starts } = cold;
  return {
    id: 'cold',
    title: 'Cold start',
    lead: `A new process has its first answer after ${formatMs(warm.ms.total.median)}, ${formatMs(dropped.ms.total.median)} once the page cache was dropped. Loading takes up to ${formatBytes(dropped.hostMemory.peakBytes)} of host memory.`,
    blocks: [
      table(
        `Medians of ${starts} processes each`,
        ['phase', ...numbers('page cache as it is', 'dropped')],
        coldPhases.flatMap((phase) => {
          const sides = [warm.ms[phase], dropped.ms[phase]].flatMap((spread) => spread ?? []);
          return sides.length < 2
            ? []
            : [[coldPhaseName(phase), ...sides.map(({ median }) => formatMs(median))]];
        }),
      ),
    ],
  };
}

function layersSection({ layers }: BenchResult): Section | null {
  if (layers === null) return null;
  const slowest = layers.layers.toSorted((a, b) => b.ms - a.ms);
  return {
    id: 'layers',
    title: 'Layers',
    lead: `${formatCount(layers.layers.length)} layers take ${formatMs(layers.totalMs)} together; profiling makes them slower than the measured time.`,
    blocks: [
      table(
        'Every layer, the slowest first',
        ['layer', 'type', 'precision', ...numbers('time', 'share')],
        slowest.map(({ name, type, precision, ms, share }) => [
          code(name),
          type ?? '–',
          precision ?? '–',
          formatMs(ms),
          formatShare(share),
        ]),
      ),
    ],
  };
}

/** What the engines take. */
const sizesPart = (a: BenchSubject, b: BenchSubject) =>
  comparedPart('engine', [
    row('size of the file', 'bytes', a.bytes, b.bytes),
    row('layers', 'count', a.layers, b.layers),
    row('activations of one context', 'bytes', a.contextBytes, b.contextBytes),
    row('GPU memory that loading took', 'bytes', a.loadedBytes, b.loadedBytes),
    row('time of loading', 'ms', a.loadMs, b.loadMs),
  ]);
