import { allBut } from '../../../base/options/option.js';
import { defineCommand, type TextOutput } from '../../../cli/command.js';
import { ExitCode } from '../../../errors.js';
import { checkDeepstream } from '../config/check.js';
import type { DeepstreamCheck } from '../config/result.js';
import { checkOptions } from '../options.js';

export const command = defineCommand({
  arguments: [
    { name: 'CONFIG', describe: 'a configuration of nvinfer (text or YAML) or nvinferserver, or its folder' },
  ],
  examples: [
    'trtforge deepstream check config_infer_primary_yolo.txt',
    'trtforge deepstream check config_infer_primary_yolo.txt --gpu L4 --tensorrt 10.14 --json',
    'trtforge deepstream check config_infer_primary_yolo.txt --image street.jpg',
  ],
  options: allBut(checkOptions, 'config'),
  schema: async () => (await import('../config/result.js')).deepstreamCheckSchema,
  run: async ([config = ''], options, context): Promise<DeepstreamCheck & { exitCode: ExitCode }> => {
    const result = await checkDeepstream({ config, ...options }, context);
    const isWrong =
      result.outcome === 'rebuilds' ||
      result.outcome === 'fails' ||
      result.findings.some(({ severity }) => severity === 'error');
    return { ...result, exitCode: isWrong ? ExitCode.failed : ExitCode.pass };
  },
  render,
});

function render(result: DeepstreamCheck, output: TextOutput): void {
  const { bold, dim, green, red, yellow } = output.colors;
  const { outcome, reason, message, writes, target, trial, findings } = result;
  const colored = { loads: green, builds: yellow, rebuilds: red, fails: red }[outcome](outcome);
  output.line(`${colored}  ${bold(result.config)}  ${dim(`${result.element}, ${reason}`)}`);
  output.line(`  ${message}`);
  if (writes !== null) output.line(`  It writes ${writes}`);
  for (const { severity, code, where, message: what, remedy } of findings) {
    const mark = { error: red, warning: yellow, info: dim }[severity](severity);
    output.line(`  ${mark} ${code}  ${dim(where)}`);
    output.line(`    ${what} ${remedy}`);
  }
  for (const scores of trial === null ? [] : [trial.asConfigured, ...trial.alternatives])
    output.line(
      `  ${scores.highest.toFixed(2)}  ${scores.preprocessing}  ${dim(`${scores.candidates} candidates`)}`,
    );
  const unknown = [target.gpu === null && '--gpu', target.tensorrt === null && '--tensorrt'].filter(Boolean);
  if (result.element === 'nvinfer' && unknown.length > 0)
    output.line(dim(`  Not compared, since not passed: ${unknown.join(', ')}`));
}
