import { formatBytes, formatMs, plural } from '../../../base/text/quantity.js';
import { defineReport } from '../../../report/pages/kind.js';
import { repeatSection } from '../../../report/section/run.js';
import { badge, numbers, type Section, table } from '../../../report/section.js';
import { formatMeasure, outcomeWord } from '../../../report/sentences.js';
import { packageVersion } from '../../../version.js';
import { type ParityResult, parityResultSchema } from '../verify/result.js';
import { compareParities } from './compare.js';
import { driftChart, driftSection } from './drift.js';
import { parityHeadline } from './sentences.js';

/** The output of `trtforge stream verify` with `--json`: verdicts, the drift chart, outputs, reasons, times. */
export const parityReport = defineReport<ParityResult>({
  source: 'stream verify',
  file: 'parity.json',
  result: parityResultSchema,
  chart: driftChart,
  compare: compareParities,
  page: (result) => ({
    name: result.candidate,
    subtitle: `against ${result.reference}, ${result.mode}, on ${result.candidateBackend}`,
    kind: 'stream verify',
    version: packageVersion(),
    verdict: {
      outcome: result.outcome,
      word: outcomeWord[result.outcome],
      headline: parityHeadline(result),
      reasons: result.reasons,
      remedies: [],
    },
    figures: [],
    sections: [
      driftSection(result),
      outputsSection(result),
      reasonsSection(result),
      timesSection(result),
      repeatSection(result.repeat),
    ],
  }),
});

const outputsSection = ({ outputs, rule }: ParityResult): Section => ({
  id: 'outputs',
  title: 'Outputs',
  lead: `Floating-point outputs pass by the rule "${rule}", with numpy's allclose beside it; integers must be the same. State is compared where it is valid.`,
  blocks: [
    table(
      'Every output over all chunks',
      [
        'output',
        ...numbers('passed', 'allclose', 'max', 'p95', 'mean', 'max relative', 'least cosine'),
        'allowed',
      ],
      outputs.map((each) => [
        each.tensor,
        `${each.passed}/${each.chunks}`,
        `${each.allclosePassed}/${each.chunks}`,
        ...[each.maxAbs.max, each.maxAbs.p95, each.maxAbs.mean, each.maxRel, each.minCosine].map(
          formatMeasure,
        ),
        each.tolerance === null
          ? 'nothing'
          : `${formatMeasure(each.tolerance.absolute)}, ${formatMeasure(each.tolerance.relative)} relative (${each.tolerance.why})`,
      ]),
    ),
  ],
});

const tones = { error: 'bad', warning: 'warn', note: 'quiet' } as const;

const reasonsSection = ({ explanations }: ParityResult): Section | null =>
  explanations.length === 0
    ? null
    : {
        id: 'why',
        title: 'Why',
        lead: `${plural(explanations.length, 'finding')} about the cause, from the numbers.`,
        blocks: [
          table(
            'What was found',
            ['finding', 'weight', 'what it is', 'what to do'],
            explanations.map(({ id, severity, sentence, remedy }) => [
              id,
              badge(severity, tones[severity]),
              sentence,
              remedy,
            ]),
          ),
        ],
      };

function timesSection({ times, gpuTimes, memory, state }: ParityResult): Section | null {
  const { first, rest, recorded } = times;
  if (rest === null) return null;
  return {
    id: 'times',
    title: 'Times',
    lead: `A chunk takes ${formatMs(rest.total.mean)}; the first one took ${formatMs(first?.totalMs ?? 0)}, with what it prepares. ${state.place === 'device' ? 'State stays on the device.' : (state.why ?? '')}`,
    blocks: [
      table(
        `Host milliseconds of ${plural(rest.chunks, 'chunk')}, first calls of a size left out`,
        ['part', ...numbers('mean', 'p50', 'p95', 'p99', 'max')],
        [
          ...(['copy', 'run', 'state', 'total'] as const).map((name) => [name, rest[name]] as const),
          ...(recorded === null ? [] : [['total, as the reference was recorded', recorded] as const]),
        ].map(([name, { mean, p50, p95, p99, max }]) => [name, ...[mean, p50, p95, p99, max].map(formatMs)]),
      ),
      table(
        "On the GPU's clock, measured after the stream; state is transferred too",
        ['shapes', ...numbers('in', 'compute', 'out', 'a step in a row of steps (host)')],
        gpuTimes.map(({ shapes, inputMs, computeMs, outputMs, inARowMs }) => [
          shapes,
          ...[inputMs, computeMs, outputMs, inARowMs].map(formatMs),
        ]),
      ),
      table('Memory', numbers('plan', 'host, at most', 'GPU, in use after the stream'), [
        [memory.planBytes, memory.peakHostBytes, memory.gpuBytes].map((bytes) =>
          bytes === null ? '–' : formatBytes(bytes),
        ),
      ]),
    ],
  };
}
