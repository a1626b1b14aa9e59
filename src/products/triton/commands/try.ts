import { defineCommand } from '../../../cli/command.js';
import { limited, timeoutOption } from '../../../cli/options/timeout.js';
import { tryOptions } from '../try/options.js';
import type { TritonTry } from '../try/result.js';

export const command = defineCommand({
  arguments: [{ name: 'REPO', describe: 'a model repository' }],
  examples: ['trtforge triton try repo', 'trtforge triton try repo --url http://localhost:8000'],
  options: {
    url: tryOptions.url,
    ...timeoutOption,
  },
  schema: async () => (await import('../try/result.js')).tritonTrySchema,
  run: limited(async ([repository = ''], { url }, context): Promise<TritonTry> => {
    const { tryRepository } = await import('../try/try.js');
    return tryRepository({ repository, url }, context);
  }),
  render: ({ server, models, skipped, outcome }: TritonTry, { line, colors }) => {
    const paint = { pass: colors.green, fail: colors.red, inconclusive: colors.yellow };
    for (const { name, ready, reason, request, sequences, knownAnswer } of models) {
      const own = request === null ? 'fail' : reason === null ? 'ok' : 'undecided';
      const mark = { fail: colors.red, ok: colors.green, undecided: colors.yellow }[own](own.padEnd(4));
      line(`${mark}  ${colors.bold(name)}`);
      const what = own === 'undecided' ? 'shows nothing' : ready ? 'does not answer' : 'is not ready';
      if (reason !== null) line(`  ${what}: ${reason}`);
      if (request !== null)
        line(
          `  ${request.outputs.map((output) => `${output.name} [${output.shape.join(', ')}]`).join(', ')}  ${colors.dim(`${request.ms.toFixed(1)} ms`)}`,
        );
      for (const [what, judged] of [
        ['sequences', sequences],
        ['known answer', knownAnswer],
      ] as const) {
        if (judged === null) continue;
        line(
          `  ${what}: ${judged.outcome === null ? colors.dim('not compared') : paint[judged.outcome](judged.outcome)}`,
        );
        for (const each of judged.reasons) line(`    ${each}`);
      }
    }
    for (const { name, reason } of skipped) line(`${colors.yellow('skip')}  ${name}: ${reason}`);
    const by = {
      stub: 'a stub answered in place of the engines: the configuration was tried, no engine was',
      tensorrt: 'engines ran on this GPU',
      server: `answered by ${server.url}`,
    };
    line(`${paint[outcome](outcome)}  ${server.version}; ${by[server.answeredBy]}`);
  },
});
