import { basename } from 'node:path';
import { formatBytes, formatMs, formatShare, plural } from '../../../base/text/quantity.js';
import { badge, numbers, type Section, table } from '../../../report/blocks.js';
import {
  comparedPart,
  differ,
  fileSide,
  lacks,
  type Names,
  row,
} from '../../../report/comparison/compare.js';
import type { ComparedPart } from '../../../report/comparison/result.js';
import { defineReport } from '../../../report/pages/report.js';
import { repeatSection } from '../../../report/pages/section/run.js';
import { formatMeasure, outcomeWord } from '../../../report/sentences.js';
import { packageVersion } from '../../../version.js';
import { type ParityResult, parityResultSchema } from '../verify/result.js';
import { taskLine } from '../verify/task.js';
import { driftChart, driftSection } from './drift.js';

/** The output of `trtforge stream verify` with `--json`: verdicts, the drift chart, outputs, reasons, times. */
export const parityReport = defineReport<ParityResult>({
  source: 'stream verify',
  file: 'parity.json',
  result: parityResultSchema,
  chart: driftChart,
  compare: {
    side: ({ path, result }) => ({
      ...fileSide(path, result.candidate),
      precision: result.built?.precision ?? null,
      outcome: result.outcome,
      headline: parityHeadline(result),
    }),
    pair: (a, b, names) => ({
      identity: null,
      environment: [],
      parts: [enginePart(a, b), accuracyPart(a, b), speedPart(a, b, names)].filter((part) => part !== null),
    }),
  },
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
    },
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

const enginePart = ({ memory: a }: ParityResult, { memory: b }: ParityResult): ComparedPart | null =>
  comparedPart('engine', [
    row('size of the plan', 'bytes', a.planBytes, b.planBytes),
    row('memory of the host, at most', 'bytes', a.peakHostBytes, b.peakHostBytes),
    row('memory of the GPU after the stream', 'bytes', a.gpuBytes, b.gpuBytes),
  ]);

function accuracyPart(a: ParityResult, b: ParityResult): ComparedPart | null {
  const names = [...new Set([...a.outputs, ...b.outputs].map(({ tensor }) => tensor))];
  const of = ({ outputs }: ParityResult, name: string) => outputs.find(({ tensor }) => tensor === name);
  return comparedPart(
    'accuracy',
    [
      row('chunks that pass', 'share', a.passRate, b.passRate),
      ...names.flatMap((name) => {
        const [one, other] = [of(a, name), of(b, name)];
        return [
          row(`${name}: max error`, 'error', one?.maxAbs.max, other?.maxAbs.max),
          row(`${name}: p95 error of a chunk`, 'error', one?.maxAbs.p95, other?.maxAbs.p95),
          row(`${name}: mean error`, 'error', one?.meanAbs, other?.meanAbs),
        ];
      }),
      row('drift by chunk', 'error', slopeOf(a), slopeOf(b)),
    ],
    [
      differ('The references differ', basename(a.reference), basename(b.reference)),
      differ('The numbers of chunks differ', String(a.chunks), String(b.chunks)),
      differ('The modes differ', a.mode, b.mode),
      differ('The rules differ', a.rule, b.rule),
    ],
  );
}

const slopeOf = ({ drift }: ParityResult) => drift?.slope.robust.perChunk;

/** The results do not state the machine. */
function speedPart(a: ParityResult, b: ParityResult, names: Names): ComparedPart | null {
  const [one, other] = [a.times.rest, b.times.rest];
  const gpuTimes = (side: ParityResult) => new Map(side.gpuTimes.map((each) => [each.shapes, each]));
  const [timesA, timesB] = [gpuTimes(a), gpuTimes(b)];
  return comparedPart(
    'speed',
    [
      ...[...new Set([...timesA.keys(), ...timesB.keys()])].map((shapes) =>
        row(
          `GPU time, median (${shapes})`,
          'ms',
          timesA.get(shapes)?.computeMs,
          timesB.get(shapes)?.computeMs,
        ),
      ),
      ...(['mean', 'p50', 'p95', 'p99', 'max'] as const).map((name) =>
        row(`step, ${name}`, 'ms', one?.total[name], other?.total[name]),
      ),
    ],
    [lacks('times', one, other, names)],
    [
      differ('Run by', a.candidateBackend, b.candidateBackend),
      differ('The state stays at different places', a.state.place, b.state.place),
      'The results do not state the machine: compare times of one machine only.',
    ],
  );
}

/** The number of chunks that passed, and each verdict. */
function parityHeadline({ passed, chunks, passRate, verdicts, task }: ParityResult): string {
  const judged =
    task.kind === 'not-judged' ? `not judged (${task.why})` : `${verdicts.task}; ${taskLine(task)}`;
  return `${plural(passed, 'chunk')} of ${chunks} passed (${formatShare(passRate)}). Contract: ${verdicts.contract}. Numbers: ${verdicts.numeric}. Task: ${judged}.`;
}
