import { formatBytes, formatCount, formatMs, formatShare } from '../../base/text/quantity.js';
import { code, facts, fold, labelled, note, numbers, type Section, table } from '../../report/blocks.js';
import { defineReport } from '../../report/pages/report.js';
import { packageVersion } from '../../version.js';
import { SIZING_FILE } from './names.js';
import { type StreamsResult, streamsResultSchema } from './result.js';

/** The report that `trtforge deepstream size` leaves in `models/NAME`, and prints with `--json`. */
export const sizingReport = defineReport<StreamsResult>({
  source: 'deepstream size',
  file: SIZING_FILE,
  result: streamsResultSchema,
  isRunRoot: true,
  page: (result) => {
    const { model, engine, maxBatch, fps, peakGpuStreams, stop, exitCode } = result;
    const peak = result.engines.find((one) => one.maxBatch === maxBatch)?.peak ?? null;
    return {
      name: model.name,
      subtitle: engine ?? 'no engine',
      kind: 'deepstream size',
      version: packageVersion(),
      verdict: {
        outcome: exitCode === 0 ? 'pass' : 'inconclusive',
        word: exitCode === 0 ? 'Sized' : 'Inconclusive',
        headline:
          peakGpuStreams === null
            ? `No number of streams is known. ${stop.text}`
            : `At most ${peakGpuStreams} streams of ${fps} frames per second, with batches of ${maxBatch}.`,
        reasons: result.warnings,
      },
      figures: [
        { text: peakGpuStreams === null ? '–' : formatCount(peakGpuStreams), name: `streams at ${fps} fps` },
        ...(peak === null
          ? []
          : [
              { text: formatCount(Math.round(peak.imagesPerSecond)), name: 'images a second' },
              { text: formatMs(peak.gpuMeanMs), name: `GPU time of a batch of ${peak.batch}` },
            ]),
      ],
      sections: [answersSection(result), enginesSection(result), sensitivitySection(result)],
    };
  },
});

const answersSection = ({ answers, steps, stop, notes, summary }: StreamsResult): Section => ({
  id: 'streams',
  title: 'Streams',
  lead: stop.text,
  blocks: [
    table(
      'Streams by frame rate',
      ['frames per second', ...numbers('streams that the GPU serves', 'largest batch', 'in one batch')],
      answers.map((one) => [one.fps, one.peakGpuStreams, one.maxBatch, one.streams].map(String)),
    ),
    facts([
      ['engine builds', secondsText(steps.step4Seconds)],
      ['measurements', secondsText(steps.step5Seconds)],
    ]),
    labelled('note', 'accent', notes),
    fold('The summary as DeepStream’s scripts print it', ...summary.map((line) => note(code(line)))),
  ],
});

const secondsText = (seconds: number | null): string | null =>
  seconds === null ? null : formatMs(seconds * 1000);

const enginesSection = ({ engines, baseline }: StreamsResult): Section => ({
  id: 'engines',
  title: 'Engines',
  lead: 'Each engine at its largest batch, and the first one at batch 1.',
  blocks: [
    table(
      'Measurements',
      ['log', ...numbers('batch', 'images a second', 'mean GPU time', 'p99', 'engine')],
      [
        ...(baseline === null ? [] : [{ peak: baseline, bytes: null }]),
        ...engines.filter(({ peak }) => peak?.log !== baseline?.log),
      ].flatMap(({ peak, bytes }) =>
        peak === null
          ? []
          : [
              [
                code(peak.log),
                String(peak.batch),
                formatCount(Math.round(peak.imagesPerSecond)),
                formatMs(peak.gpuMeanMs),
                peak.gpuP99Ms === null ? '–' : formatMs(peak.gpuP99Ms),
                bytes === null ? '–' : formatBytes(bytes),
              ],
            ],
      ),
    ),
  ],
});

const sensitivitySection = ({ sensitivity }: StreamsResult): Section | null =>
  sensitivity && {
    id: 'sensitivity',
    title: 'Other batches',
    lead: 'The chosen engine at smaller batches.',
    blocks: [
      table(
        'Images a second by batch',
        ['batch', ...numbers('images a second', 'mean GPU time', 'change')],
        sensitivity.map((one) => [
          String(one.batch),
          formatCount(Math.round(one.imagesPerSecond)),
          formatMs(one.gpuMeanMs),
          one.changePercent === null ? '–' : formatShare(one.changePercent / 100),
        ]),
      ),
    ],
  };
