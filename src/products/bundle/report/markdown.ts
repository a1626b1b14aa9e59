import { code, table, text } from '../../../base/text/markdown-text.js';
import { formatBytes, formatMs } from '../../../base/text/quantity.js';
import { marks, modelBlocks, phasesBlock, surroundingBlocks } from '../../../report/markdown.js';
import { precisionLabel } from '../../../report/sentences.js';
import type { ChainCheck } from '../chain-schema.js';
import type { BundleReport, ComponentReport } from '../report-schema.js';
import { buildTime } from './components.js';
import {
  bundleName,
  bundleTitle,
  bundleVerdict,
  checkSentence,
  componentsSentence,
  differenceCells,
  driftText,
  isoTime,
  shapeText,
  smokeSentence,
  statusTexts,
  timedPhases,
} from './sentences.js';

/** The report of a bundle as GitHub-flavoured Markdown, for the summary of a job or a pull request. */
export function renderBundleMarkdown(report: BundleReport): string {
  const { outcome, word } = bundleVerdict(report);
  return [
    `# ${text(bundleName(report))}: ${marks[outcome]} ${word}`,
    `${text(bundleTitle(report))} · trtforge ${text(report.version)} · ${text(isoTime(report.started_utc))}`,
    verdictBlock(report),
    mismatchBlock(report),
    componentsBlock(report),
    ...report.checks.map(checkBlock),
    smokeBlock(report),
    ...report.components.flatMap(componentBlocks),
    phasesBlock(timedPhases(report)),
    ...surroundingBlocks({ environment: report.environment, repeat: report.repeat }),
  ]
    .filter((block) => typeof block === 'string')
    .join('\n\n')
    .concat('\n');
}

function verdictBlock(report: BundleReport): string {
  const { headline, reasons } = bundleVerdict(report);
  const { failure, exitCode } = report;
  return [
    `**${text(headline)}**`,
    list(reasons),
    failure && `**What to do:** ${text(failure.remedy)} (${code(failure.code)}, exit ${exitCode})`,
  ]
    .filter(Boolean)
    .join('\n\n');
}

const list = (lines: readonly string[]): string => lines.map((line) => `- ${text(line)}`).join('\n');

const mismatchBlock = ({ mismatches }: BundleReport): string | false =>
  mismatches.length > 0 &&
  `## Contradictions\n\n${table(
    ['component', 'tensor', 'contradiction'],
    mismatches.map(({ component, tensor, message }) => [
      text(component),
      tensor === null ? '–' : code(tensor),
      text(message),
    ]),
  )}`;

function componentsBlock(report: BundleReport): string | false {
  const { components } = report;
  if (components.length === 0) return false;
  const warnings = [
    ...report.warnings,
    ...components.flatMap((one) => one.warnings.map((warning) => `${one.component}: ${warning}`)),
  ];
  return [
    `## Components\n\n${text(componentsSentence(report))}`,
    table(
      ['component', 'status', 'precision', 'engine', 'build', 'profile'],
      components.map((one) => [
        text(one.component),
        statusTexts[one.status],
        text(precisionLabel(one.forge?.request.precision ?? '–')),
        one.engine_bytes === null ? '–' : formatBytes(one.engine_bytes),
        buildTime(one),
        profileText(one),
      ]),
    ),
    warnings.length > 0 && list(warnings),
  ]
    .filter((part) => typeof part === 'string')
    .join('\n\n');
}

const profileText = ({ profile }: ComponentReport): string =>
  Object.keys(profile.opt)
    .map(
      (input) =>
        `${code(input)} ${(['min', 'opt', 'max'] as const).map((end) => shapeText(profile[end][input] ?? [])).join(' / ')}`,
    )
    .join('; ') || '–';

/** What the report of a forged model has of it. */
const componentBlocks = ({ component, forge }: ComponentReport): readonly string[] =>
  forge === null
    ? []
    : [
        `## Component: ${text(component)}`,
        ...modelBlocks(forge, '###').filter((block) => typeof block === 'string'),
      ];

function checkBlock(check: ChainCheck): string {
  const { candidate, components, differences, reasons } = check;
  return [
    `## Chained check: ${candidate}, ${check.outcome}\n\n${text(checkSentence(check))}`,
    reasons.length > 0 && list(reasons),
    table(
      ['exchanged alone', 'logits move by', 'tokens change', 'durations change'],
      components.map((one) => [
        text(one.component),
        driftText(one.relative_rms),
        String(one.token_changes),
        String(one.duration_changes),
      ]),
    ),
    differences.length > 0 &&
      table(
        ['sample', 'step', 'what', 'reference', 'candidate', 'margin', 'weight'],
        differences.map((one) => [...differenceCells(one), one.low_margin ? 'low margin' : '**wrong**']),
      ),
  ]
    .filter((part) => typeof part === 'string')
    .join('\n\n');
}

function smokeBlock(report: BundleReport): string | false {
  const ran = report.components.flatMap(({ component, smoke }) =>
    smoke === null ? [] : [{ component, smoke }],
  );
  if (ran.length === 0 && report.not_checked.length === 0) return false;
  return [
    `## Smoke runs, and what was not done\n\n${text(smokeSentence(report))}`,
    ran.length > 0 &&
      table(
        ['component', 'what ran', 'on', 'took', 'why not the engine'],
        ran.map(({ component, smoke }) => [
          text(component),
          smoke.ran,
          text(smoke.backend),
          formatMs(smoke.ms),
          text(smoke.instead ?? ''),
        ]),
      ),
    report.not_checked.length > 0 && list(report.not_checked),
  ]
    .filter((part) => typeof part === 'string')
    .join('\n\n');
}
