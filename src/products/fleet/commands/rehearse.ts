import { publishFile } from '../../../base/files/publish.js';
import { defineCommand, type TextOutput } from '../../../cli/command.js';
import { text } from '../../../cli/option.js';
import { step } from '../../../cli/plan.js';
import { type ExitCode, outcomeExitCodes } from '../../../errors.js';
import type { Rehearsal } from '../rehearsal-result.js';
import { planRehearsal, rehearsalOptions, rehearse } from '../rehearse.js';
import { readersOf } from './status.js';

const { from, to, policy } = rehearsalOptions;

export const command = defineCommand({
  arguments: [{ name: 'ENGINES', describe: 'an engines.yaml with targets of the old version' }],
  examples: [
    'trtforge fleet rehearse engines.yaml --from tensorrt@8.6.1.6 --to tensorrt@10.6.0.26 -o upgrade.html',
    'trtforge fleet rehearse engines.yaml --from tensorrt@8.6.1.6 --to tensorrt@10.6.0.26 --gate upgrade.yaml --json',
  ],
  options: {
    ...{ from, to, policy },
    output: text({
      flags: '-o, --output <file>',
      describe: 'also write the page there',
      writes: ['an HTML page'],
    }),
  },
  schema: async () => (await import('../rehearsal-result.js')).rehearsalSchema,
  plan: async ([engines = ''], { output: _, ...options }, context) => {
    const asked = { engines, ...options, ...(await readersOf(context)) };
    const { engines: decided, ...resolved } = await planRehearsal(asked, context);
    const steps = decided.map(({ name, isMissing }) => {
      const skipped = isMissing ? `${resolved.to} is not installed here` : null;
      return step('rehearse', name, { detail: `in place of ${resolved.from}`, skipped });
    });
    return { steps, resolved };
  },
  run: async (
    [engines = ''],
    { output, ...options },
    context,
  ): Promise<Rehearsal & { exitCode: ExitCode }> => {
    const [{ rehearsalReport }, { renderReport }] = await Promise.all([
      import('../rehearsal-page.js'),
      import('../../../report/pages/report.js'),
    ]);
    const asked = { engines, ...options, repeat: context.commandLine, ...(await readersOf(context)) };
    const result = await rehearse(asked, context);
    if (output !== undefined)
      publishFile(output, renderReport({ kind: rehearsalReport, result }, 'html').content);
    return { ...result, exitCode: outcomeExitCodes[result.outcome] };
  },
  render,
});

function render({ engines, outcome, reasons, gate, from, to }: Rehearsal, output: TextOutput): void {
  const { green, red, yellow, bold, dim } = output.colors;
  const colored = { pass: green('go'), fail: red('NO-GO'), inconclusive: yellow('undecided') };
  for (const { name, verify, answer, ratio, notDone } of engines) {
    const time = ratio === null ? 'not measured' : `${ratio.ratio.toFixed(3)} of the old time`;
    output.line(bold(name));
    output.line(
      `  against the model: ${verify ?? 'not run'}; the old engine's answer: ${answer ?? 'not run'}; ${time}`,
    );
    for (const why of notDone) output.line(dim(`  ${why}`));
  }
  for (const { check, message, waiver } of gate.findings)
    if (waiver !== null)
      output.line(dim(`waived until ${waiver.expires}: ${check}: ${message} (${waiver.reason})`));
  output.line(`${colored[outcome]}  ${from} to ${to}`);
  for (const reason of reasons) output.line(`  ${reason}`);
}
