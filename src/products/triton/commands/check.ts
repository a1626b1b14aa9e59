import { allBut } from '../../../base/options/option.js';
import { plural } from '../../../base/text/quantity.js';
import { defineCommand, type TextOutput } from '../../../cli/command.js';
import { type ExitCode, outcomeExitCodes } from '../../../errors.js';
import { checkRepository } from '../check/check.js';
import { checkOptions } from '../check/options.js';
import type { TritonCheck } from '../check/result.js';

export const command = defineCommand({
  arguments: [{ name: 'REPOSITORY', describe: 'a model repository of Triton' }],
  examples: [
    'trtforge triton check models/',
    'trtforge triton check models/ --gpu L4 --tensorrt 10.13.3.9 --json > check.json',
  ],
  options: allBut(checkOptions, 'repository'),
  schema: async () => (await import('../check/result.js')).tritonCheckSchema,
  run: async ([repository = ''], options, context): Promise<TritonCheck & { exitCode: ExitCode }> => {
    const result = await checkRepository({ repository, ...options }, context);
    return { ...result, exitCode: outcomeExitCodes[result.outcome] };
  },
  render,
});

function render({ repository, outcome, models, container, findings }: TritonCheck, output: TextOutput): void {
  const { bold, dim, green, red, yellow } = output.colors;
  const colored = { error: red('error'), warning: yellow('warning'), info: dim('info') };
  const count = plural(models.length, 'model');
  output.line(`${outcome === 'pass' ? green('pass') : red('FAIL')}  ${bold(repository)}  ${dim(count)}`);
  for (const { code, severity, where, message, remedy } of findings) {
    output.line(`${colored[severity]}  ${bold(where)}  ${dim(code)}`);
    output.line(`  ${message} ${remedy}`);
  }
  if (container.tensorrt === null) return;
  const tags = container.tags.map(({ image, tag, source }) => `${image}:${tag} (${source})`);
  output.line(
    `TensorRT ${container.tensorrt}: ${tags.length > 0 ? tags.join(', ') : `which container has it is unknown; inside of one, \`${container.command}\` prints its TensorRT`}`,
  );
}
