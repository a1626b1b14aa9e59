import { code, fence, table, text } from '../base/text/markdown-text.js';
import { formatBytes, formatCount, formatMs, formatStatistic, plural } from '../base/text/quantity.js';
import type { ModelFacts } from '../formats/onnx/model-facts.js';
import type { ConversionResult } from '../formats/precision/conversion.js';
import type { VerifyResult } from '../quality/verify/result.js';
import type { ForgeResult } from './result.js';
import { keptByRule } from './section/precision.js';
import {
  accuracySentence,
  conversionSentence,
  engineSentence,
  formatMeasure,
  modelBytes,
  modelName,
  modelSentence,
  outcomeWord,
  phasesSentence,
  runTitle,
  speedSentence,
  type TimedPhases,
} from './sentences.js';

export const marks = { pass: '✅', fail: '❌', inconclusive: '❔', error: '❌' } as const;

/** Nodes of a rule named in the summary; the page lists more, `report.json` all. */
const NODES_NAMED = 5;

/** The report as GitHub-flavoured Markdown, short enough for a job summary or a comment on a pull request. */
export function renderMarkdown(result: ForgeResult): string {
  return [
    `# ${text(modelName(result))}: ${marks[result.verdict.outcome]} ${outcomeWord[result.verdict.outcome]}`,
    `${text(runTitle(result))} · trtforge ${text(result.version)} · ${result.startedAt}`,
    verdictBlock(result),
    result.verification && accuracyBlock('Accuracy', result.verification),
    result.engineVerification && accuracyBlock('Accuracy of the engine', result.engineVerification),
    result.bench &&
      `## Speed\n\n${[speedSentence(result.bench), ...result.bench.warnings].map(text).join('\n\n')}`,
    ...modelBlocks(result, '##'),
    phasesBlock(result),
    ...surroundingBlocks(result),
  ]
    .filter((block) => typeof block === 'string')
    .join('\n\n')
    .concat('\n');
}

/** What became of the model: precisions, sizes, the model itself, the engine. `heading` is the Markdown of their level. */
export const modelBlocks = (result: ForgeResult, heading: '##' | '###'): readonly (string | null)[] => [
  result.conversion && `${heading} Precision\n\n${conversionBlock(result.conversion)}`,
  result.model && `${heading} Sizes\n\n${sizesTable(result.model, result)}`,
  result.model && `${heading} The model\n\n${text(modelSentence(result.model))}${findingsList(result)}`,
  result.build &&
    `${heading} The engine\n\n${text(engineSentence(result.build))}\n\nIdentity ${code(result.build.identity)}, plan ${code(result.engine ?? result.build.passport.name)}.`,
];

/** What it ran on, and the command that repeats it. */
export function surroundingBlocks({
  environment,
  repeat,
}: Pick<ForgeResult, 'environment' | 'repeat'>): readonly (string | false)[] {
  return [
    environment.length > 0 &&
      `## Environment\n\n${table(
        ['what', 'which'],
        environment.map(({ name, text: said }) => [text(name), text(said)]),
      )}`,
    repeat !== null && `## Repeat it\n\n${fence(repeat)}`,
  ];
}

function verdictBlock({ verdict, error, issues = [] }: ForgeResult): string {
  const reasons = verdict.reasons.map((reason) => `- ${text(reason)}`).join('\n');
  const stopped =
    error && `**What to do:** ${text(error.remedy)} (${code(error.code)}, exit ${error.exitCode})`;
  const known = (error === null ? issues : (error.issues ?? []))
    .filter(({ severity }) => severity !== 'note')
    .map(({ id, cause, remedy }) => `- ${code(id)} ${text(cause)} ${text(remedy)}`)
    .join('\n');
  return [`**${text(verdict.headline)}**`, reasons, stopped, known].filter(Boolean).join('\n\n');
}

/** The statistics that fit a line. */
const STATISTICS = ['max', 'mean', 'p99', 'SNR in dB'];

function accuracyBlock(title: string, verification: VerifyResult): string {
  const rows = verification.outputs.map((output) => [
    code(output.name),
    output.outcome === 'pass' ? 'pass' : `**${output.outcome}**`,
    ...STATISTICS.map((name) => {
      const found = output.statistics.find((statistic) => statistic.name === name);
      return found === undefined ? '–' : formatMeasure(found.amount);
    }),
    output.checks
      .map(
        ({ statistic, measured, limit, pass }) =>
          `${text(statistic)} ${formatMeasure(measured)} ${pass ? '≤' : '&gt;'} ${formatStatistic(limit)}`,
      )
      .join('; '),
  ]);
  return `## ${title}\n\n${text(accuracySentence(verification))}\n\n${table(['output', 'verdict', ...STATISTICS, 'checked'], rows)}`;
}

function conversionBlock(conversion: ConversionResult): string {
  const rows = keptByRule(conversion).map((rule) => {
    const named = rule.nodes.slice(0, NODES_NAMED).map((node) => code(node.node));
    const more = rule.nodes.length - named.length;
    return [
      text(rule.title),
      formatCount(rule.nodes.length),
      text(rule.reason),
      `${named.join(', ')}${more > 0 ? ` and ${formatCount(more)} more` : ''}`,
    ];
  });
  const kept = rows.length === 0 ? '' : `\n\n${table(['rule', 'nodes in FP32', 'why', 'which'], rows)}`;
  return `${text(conversionSentence(conversion))}${kept}`;
}

function sizesTable(model: ModelFacts, { conversion, build }: ForgeResult): string {
  const rows = [
    ['ONNX as given', formatBytes(modelBytes(model))],
    ...(conversion ? [['ONNX typed', formatBytes(conversion.bytes.after)]] : []),
    ...(build ? [['engine', formatBytes(build.passport.plan.bytes)]] : []),
  ];
  return table(['station', 'bytes on disk'], rows);
}

export function phasesBlock(result: TimedPhases): string {
  const rows = result.phases.map((phase) => [
    text(phase.name),
    phase.status.replace('-', ' '),
    phase.ms === null ? '–' : formatMs(phase.ms),
    text(phase.detail),
  ]);
  return `## The run\n\n${text(phasesSentence(result))}\n\n${table(['phase', 'status', 'took', 'what came of it'], rows)}`;
}

function findingsList({ model }: ForgeResult): string {
  const found = model?.findings ?? [];
  if (found.length === 0) return '';
  const lines = found.map(
    (finding) => `- ${finding.severity}: ${text(finding.message)} (${code(finding.code)})`,
  );
  return `\n\n${plural(found.length, 'finding')}:\n\n${lines.join('\n')}`;
}
