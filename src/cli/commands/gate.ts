import { appendFileSync } from 'node:fs';
import { publishFile, writeFailed } from '../../base/files/publish.js';
import { ExitCode, outcomeExitCodes } from '../../errors.js';
import { BASELINE_LEFT, gateOptions, runGate } from '../../quality/gate/gate.js';
import type { GateResult } from '../../quality/gate/result.js';
import { defineCommand, type TextOutput } from '../command.js';
import { flag, text } from '../option.js';
import { countsText, droppedText, githubAnnotations, junitXml, renderGateMarkdown } from './gate-text.js';

const exitCodes = { ...outcomeExitCodes, warn: ExitCode.pass } as const;

interface GateAnswer extends GateResult {
  readonly exitCode: ExitCode;
}

export const command = defineCommand({
  arguments: [
    { name: 'POLICY', describe: 'the policy: a YAML file, see docs/gate.md' },
    {
      name: 'RESULTS',
      describe: 'what commands wrote with --json (verify, bench, compare, forge, …): FILE, or NAME=FILE',
      many: true,
    },
  ],
  examples: [
    'trtforge gate init parity.json bench.json -o policy.yaml',
    'trtforge gate policy.yaml parity.json bench.json',
    'trtforge gate policy.yaml parity.json bench.json --baseline baseline.json --junit gate.xml --github',
    'trtforge gate policy.yaml bench.json --baseline baseline.json --update-baseline',
  ],
  options: {
    baseline: gateOptions.baseline,
    updateBaseline: gateOptions.updateBaseline,
    output: text({
      flags: '-o, --output <file>',
      describe: 'also write the JSON result there',
      writes: true,
    }),
    junit: text({ flags: '--junit <file>', describe: 'write JUnit XML there', writes: true }),
    markdown: text({ flags: '--markdown <file>', describe: 'write a Markdown summary there', writes: true }),
    github: flag({
      flags: '--github',
      describe: 'print GitHub annotations, and append the summary to $GITHUB_STEP_SUMMARY',
    }),
  },
  schema: async () => (await import('../../quality/gate/result.js')).gateResultSchema,
  run: async ([policy = '', ...results], options, { environment, commandLine }): Promise<GateAnswer> => {
    const { baseline, output, junit, markdown } = options;
    const judged = runGate({
      policy,
      results,
      updateBaseline: options.updateBaseline,
      baseline,
    });
    const result = { ...judged, repeat: commandLine };
    const answer: GateAnswer = {
      ...result,
      ...(options.github ? { annotations: [...githubAnnotations(result)] } : {}),
      exitCode: exitCodes[result.outcome],
    };
    if (output !== undefined) publishFile(output, `${JSON.stringify(answer, null, 2)}\n`);
    if (junit !== undefined) publishFile(junit, junitXml(result));
    if (markdown !== undefined) publishFile(markdown, renderGateMarkdown(result));
    if (options.github) appendSummary(environment.GITHUB_STEP_SUMMARY, result);
    return answer;
  },
  render,
});

/** The file is the step's own and others of the step write to it too, so it grows instead of being replaced. */
function appendSummary(path: string | undefined, result: GateResult): void {
  if (path === undefined || path === '') return;
  try {
    appendFileSync(path, renderGateMarkdown(result));
  } catch (cause) {
    throw writeFailed(path, cause);
  }
}

function render(result: GateAnswer, output: TextOutput): void {
  const { bold, dim, green, red, yellow, cyan } = output.colors;
  const colored = {
    pass: green('pass        '),
    waived: cyan('waived      '),
    warn: yellow('warning     '),
    inconclusive: yellow('inconclusive'),
    fail: red('FAIL        '),
    skipped: dim('skipped     '),
  };
  output.line(`${bold(result.policy)} ${dim(`over ${result.results.map(({ name }) => name).join(', ')}`)}`);
  output.line();
  for (const { outcome, check, message, why, waiver } of result.findings) {
    output.line(`  ${colored[outcome]}  ${bold(check ?? 'result')}  ${message}`);
    if (outcome !== 'pass' && why !== null) output.line(`                ${dim(why)}`);
    if (waiver !== null) output.line(`                ${dim(`until ${waiver.expires}: ${waiver.reason}`)}`);
  }
  for (const { outcome, message } of result.waivers)
    if (outcome !== 'pass') output.line(`  ${colored[outcome]}  ${message}`);
  output.line();
  if (result.dropped.length > 0) output.line(dim(droppedText(result)));
  for (const { name, checks } of result.results)
    if (checks === 0) output.line(dim(`No check reads ${name}.`));
  if (result.baselineUpdated) output.line(`${result.baseline} has these values now.`);
  if (result.reasons.includes(BASELINE_LEFT)) output.line(BASELINE_LEFT);
  const verdict = {
    pass: green('pass'),
    warn: yellow('pass with warnings'),
    fail: red('FAIL'),
    inconclusive: yellow('inconclusive'),
  };
  output.line(`${verdict[result.outcome]}  ${countsText(result)}  ${dim('To repeat:')} ${result.repeat}`);
  for (const annotation of result.annotations ?? []) output.line(annotation, 'workflow-command');
}
