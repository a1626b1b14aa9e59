import { formatMs, formatShare, plural } from '../../../base/text/quantity.js';
import { markup } from '../../../report/markup.js';
import { page } from '../../../report/page.js';
import { badge, type SectionFacts, table } from '../../../report/parts.js';
import { verdictBanner } from '../../../report/section/verdict.js';
import { formatMeasure, outcomeWord } from '../../../report/sentences.js';
import { packageVersion } from '../../../version.js';
import type { ParityResult } from '../verify/result.js';
import { taskLine } from '../verify/task.js';
import { driftSection } from './drift-section.js';

/** A stream's result as one HTML file: verdicts, the drift chart, outputs, reasons, times. The result itself is inside as JSON. */
export function renderParityHtml(result: ParityResult): string {
  const sections = [driftSection, outputsSection, reasonsSection, timesSection, repeatSection];
  return page({
    title: `${result.candidate}: ${outcomeWord[result.outcome].toLowerCase()} · trtforge`,
    version: packageVersion(),
    header: header(result),
    sections: sections.map((describe) => describe(result)).filter((facts) => facts !== null),
    dataBeside: '',
    result,
  });
}

function header(result: ParityResult) {
  const { contract, numeric, task } = result.verdicts;
  const headline = `${plural(result.passed, 'chunk')} of ${result.chunks} passed (${formatShare(result.passRate)}). Contract: ${contract}. Numbers: ${numeric}. Task: ${taskWords(result, task)}.`;
  return markup`<header><p class="kicker">trtforge verify</p><h1>${result.candidate}</h1><p class="subtitle">against ${result.reference}, ${result.mode}, on ${result.candidateBackend}</p>${verdictBanner({ outcome: result.outcome, headline, reasons: result.reasons })}</header>`;
}

const taskWords = ({ task }: ParityResult, outcome: ParityResult['verdicts']['task']): string =>
  task.kind === 'not-judged' ? `not judged (${task.why})` : `${outcome}; ${taskLine(task)}`;

function outputsSection({ outputs, rule }: ParityResult): SectionFacts {
  return {
    id: 'outputs',
    title: 'Outputs',
    lead: `Floating-point outputs pass by the rule «${rule}», with numpy's allclose beside it; integers must be the same. State is compared where it is valid.`,
    body: table(
      'Every output over all chunks',
      [
        { title: 'output' },
        { title: 'passed', numeric: true },
        { title: 'allclose', numeric: true },
        { title: 'max', numeric: true },
        { title: 'p95', numeric: true },
        { title: 'mean', numeric: true },
        { title: 'max relative', numeric: true },
        { title: 'least cosine', numeric: true },
        { title: 'allowed' },
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
  };
}

const tones = { error: 'bad', warning: 'warn', note: 'quiet' } as const;

function reasonsSection({ explanations }: ParityResult): SectionFacts | null {
  if (explanations.length === 0) return null;
  return {
    id: 'why',
    title: 'Why',
    lead: `${plural(explanations.length, 'thing')} that the numbers say about their cause.`,
    body: table(
      'What was found',
      [{ title: 'finding' }, { title: 'weight' }, { title: 'what it is' }, { title: 'what to do' }],
      explanations.map(({ id, severity, sentence, remedy }) => [
        id,
        badge(severity, tones[severity]),
        sentence,
        remedy,
      ]),
    ),
  };
}

function timesSection({ times, gpuTimes, state }: ParityResult): SectionFacts | null {
  const { first, rest } = times;
  if (rest === null) return null;
  const columns = { copy: rest.copy, run: rest.run, state: rest.state, total: rest.total };
  return {
    id: 'times',
    title: 'Times',
    lead: `A chunk takes ${formatMs(rest.total.mean)}; the first one took ${formatMs(first?.totalMs ?? 0)}, with what it prepares. ${state.place === 'device' ? 'State stays on the device.' : (state.why ?? '')}`,
    body: [
      table(
        `Host milliseconds of ${plural(rest.chunks, 'chunk')}, first calls of a size left out`,
        [
          { title: 'part' },
          ...['mean', 'p50', 'p95', 'p99', 'max'].map((title) => ({ title, numeric: true as const })),
        ],
        Object.entries(columns).map(([name, { mean, p50, p95, p99, max }]) => [
          name,
          ...[mean, p50, p95, p99, max].map(formatMs),
        ]),
      ),
      gpuTimes.length > 0 &&
        table(
          "On the GPU's clock, measured after the stream; state is transferred too here",
          [
            { title: 'shapes' },
            ...['in', 'compute', 'out', 'a step in a row of steps (host)'].map((title) => ({
              title,
              numeric: true as const,
            })),
          ],
          gpuTimes.map(({ shapes, inputMs, computeMs, outputMs, inARowMs }) => [
            shapes,
            ...[inputMs, computeMs, outputMs, inARowMs].map(formatMs),
          ]),
        ),
    ],
  };
}

const repeatSection = ({ repeat }: ParityResult): SectionFacts => ({
  id: 'repeat',
  title: 'Repeat it',
  lead: 'The command that does this again. A click selects it.',
  body: markup`<ol class="commands"><li><pre tabindex="0"><code>${repeat}</code></pre></li></ol>`,
});
