import type { ChainCheck } from './chain-schema.js';
import type { BundleReport, ComponentReport } from './report-schema.js';

/** The report of a bundle as Markdown, for the summary of a job or a pull request. */
export function bundleMarkdown(report: BundleReport): string {
  const { failure, components, checks, not_checked, warnings } = report;
  const blocks = [
    `# ${report.outcome.toUpperCase()}: ${cell(report.model_name ?? 'bundle')}`,
    `${cell(report.precision)} · ${cell(report.target ?? 'no target')} · ${report.env.product ?? 'no toolchain'} ${report.env.tensorrt_version ?? ''} · ${report.env.gpu ?? 'no GPU'} · ${report.total_sec.toFixed(1)} s`,
    ...(failure === null ? [] : [`**${failure.code}** ${cell(failure.message)}\n\n${cell(failure.remedy)}`]),
    ...(components.length === 0 ? [] : [componentTable(components)]),
    ...checks.map(checkBlock),
    ...(not_checked.length + warnings.length === 0
      ? []
      : [[...not_checked, ...warnings].map((text) => `- ${cell(text)}`).join('\n')]),
  ];
  return `${blocks.join('\n\n')}\n`;
}

const componentTable = (components: readonly ComponentReport[]): string =>
  table(
    ['component', 'status', 'engine', 'build', 'smoke run', 'identity'],
    components.map(({ component, status, engine_human, timings_sec, smoke, identity }) => [
      component,
      status,
      engine_human ?? '–',
      timings_sec.build === null ? '–' : `${timings_sec.build.toFixed(1)} s`,
      smoke === null ? '–' : `${smoke.ran} on ${smoke.backend}`,
      identity?.slice(0, 12) ?? '–',
    ]),
  );

function checkBlock(check: ChainCheck): string {
  const { decisions, token_agreement, duration_agreement, equal_sequences, samples, drifts, reasons } = check;
  return [
    `## Chained check: ${check.candidate}, ${check.outcome}`,
    `Of ${decisions} decisions ${token_agreement} tokens and ${duration_agreement} durations agree; ${equal_sequences} of ${samples} sequences are equal${drifts === null ? '' : `; most drift comes from the ${drifts}`}.`,
    table(
      ['exchanged alone', 'logits move by', 'tokens change', 'durations change'],
      check.components.map((one) => [
        one.component,
        one.relative_rms === null ? 'not finite' : one.relative_rms.toExponential(2),
        String(one.token_changes),
        String(one.duration_changes),
      ]),
    ),
    ...reasons.map((reason) => `- ${cell(reason)}`),
  ].join('\n\n');
}

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((row) => `| ${row.map(cell).join(' | ')} |`).join('\n');

/** Names come from files of strangers: nothing of them is markup here. */
const cell = (text: string): string =>
  text.replace(/[\r\n]+/g, ' ').replace(/[|\\`*_<>[\]#~]/g, (character) => `\\${character}`);
