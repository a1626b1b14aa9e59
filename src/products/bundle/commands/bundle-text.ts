import { join } from 'node:path';
import { formatBytes, formatMs, formatShare, formatStatistic, plural } from '../../../base/text/quantity.js';
import type { TextOutput } from '../../../cli/command.js';
import { messageLines, renderNext, renderWarnings } from '../../../cli/text.js';
import type { ChainCheck } from '../chain-schema.js';
import { agreementShare, bundleHeadline, statusTexts } from '../report/sentences.js';
import type { BundleReport, ComponentReport } from '../result.js';

/** Prints the result of building a bundle, as text. */
export function renderBundle(report: BundleReport, output: TextOutput): void {
  const { line, colors } = output;
  const { bold, cyan, dim, green, red, yellow } = colors;
  for (const component of report.components) renderComponent(component, output);
  for (const check of report.checks) renderCheck(check, output);
  for (const reason of report.not_checked) line(dim(`· ${reason}`));
  renderWarnings(report.warnings, output);
  line();
  const word = {
    pass: green(bold('PASS')),
    fail: red(bold('FAIL')),
    inconclusive: yellow(bold('INCONCLUSIVE')),
    built: cyan(bold('BUILT')),
    error: red(bold('ERROR')),
  }[report.outcome];
  line(`${word}  ${bundleHeadline(report)}`);
  if (report.failure !== null) {
    messageLines(' ', report.failure.message, output);
    line(`  ${dim('→')} ${report.failure.remedy} ${dim(report.failure.code)}`);
  }
  if (report.report !== null) line(`report  ${join(report.outdir, 'report.html')}`);
  if (report.outcome === 'built')
    renderNext(
      ['bundle', 'forge', report.meta, '--outdir', report.outdir, '--precision', report.precision],
      output,
    );
}

function renderComponent(component: ComponentReport, output: TextOutput): void {
  const { line, colors } = output;
  const { bold, dim, green, red } = colors;
  const { status, engine_bytes, timings_sec, smoke, profile } = component;
  const took = status === 'built' ? ` in ${formatMs((timings_sec.build ?? 0) * 1000)}` : '';
  const tone = status === 'failed' ? red : ['earlier', 'not-reached'].includes(status) ? dim : green;
  line(
    `${bold(component.component)}  ${tone(`${statusTexts[status]}${took}`)}${engine_bytes === null ? '' : `  ${formatBytes(engine_bytes)}`}`,
  );
  if (engine_bytes !== null) line(`  engine    ${component.engine}`);
  for (const [input, opt] of Object.entries(profile.opt)) {
    const dims = [profile.min[input] ?? [], opt, profile.max[input] ?? []].map((shape) => shape.join('x'));
    line(dim(`  profile   ${input}:${dims.join('/')}`));
  }
  if (smoke !== null) {
    const instead = smoke.instead === null ? '' : `, not the engine: ${smoke.instead}`;
    line(`  smoke     the ${smoke.ran} ran in ${formatMs(smoke.ms)} on ${smoke.backend}${instead}`);
  }
  renderWarnings(component.warnings, output, '  ');
}

function renderCheck(check: ChainCheck, { line, colors }: TextOutput): void {
  const { bold, dim } = colors;
  const share = (count: number) => formatShare(agreementShare(count, check));
  line();
  line(
    `${bold('chained check')}  ${check.candidate} on ${check.candidate_backend} against the models in FP32`,
  );
  line(
    `  ${plural(check.decisions, 'decision')}: tokens agree in ${share(check.token_agreement)}, durations in ${share(check.duration_agreement)}; ${check.equal_sequences} of ${plural(check.samples, 'sequence')} equal; smallest margin ${formatStatistic(check.smallest_margin)}`,
  );
  for (const { component, token_changes, duration_changes, relative_rms } of check.components)
    line(
      dim(
        `  ${component.padEnd(10)} alone moves the logits by ${formatStatistic(relative_rms)} of their size, changes ${plural(token_changes, 'token')}, ${plural(duration_changes, 'duration')}`,
      ),
    );
  if (check.drifts !== null) line(`  most drift comes from the ${check.drifts}`);
  for (const one of check.differences)
    line(
      `  sample ${one.sample}, step ${one.step}: ${one.what} ${one.candidate} instead of ${one.reference}, margin ${formatStatistic(one.reference_margin)} where the logits moved by ${formatStatistic(one.movement)}${one.low_margin ? ' (low margin)' : ''}`,
    );
  for (const { sample, index } of check.unequal_sequences)
    line(`  sample ${sample}, decoded freely, differs from decision ${index} on`);
  for (const reason of check.reasons) line(`  ${colors.red('·')} ${reason}`);
}
