import { defineCommand } from '../cli/command.js';
import { type ExplainResult, explainLog } from '../diagnose/explain.js';

export const command = defineCommand({
  name: 'explain',
  summary: 'what a TensorRT log means, and what to do about it',
  arguments: [{ name: 'LOG', describe: "a log of trtexec, or of anything that prints TensorRT's messages" }],
  options: {},
  examples: ['trtforge explain build.log', 'trtforge explain build.log --json'],
  run: async ([log = '']) => explainLog(log),
  render: (result: ExplainResult, output) => {
    const { colors } = output;
    const mark = {
      error: colors.red('error  '),
      warning: colors.yellow('warning'),
      note: colors.dim('note   '),
    };
    const by = result.tensorrtVersion === null ? '' : ` (TensorRT ${result.tensorrtVersion})`;
    output.line(`${colors.bold(result.log)}${by}: ${OUTCOME[result.outcome]}`);
    for (const issue of result.issues) {
      const where =
        issue.lines[0] === undefined
          ? ''
          : colors.dim(` line ${issue.lines[0].line}${issue.count > 1 ? `, ${issue.count} times` : ''}`);
      output.line();
      output.line(`${mark[issue.severity]} ${colors.bold(issue.id)}${where}`);
      output.line(`  ${issue.cause}`);
      output.line(`  ${colors.cyan('→')} ${issue.remedy}`);
    }
    if (result.unexplained.length > 0) {
      output.line();
      output.line('Error lines that trtforge does not know:');
      for (const { line, text } of result.unexplained) output.line(`  ${colors.dim(`${line}:`)} ${text}`);
    }
    if (result.issues.length === 0 && result.unexplained.length === 0)
      output.line('Nothing in it needs explaining.');
  },
});

const OUTCOME = {
  passed: 'passed',
  failed: 'failed',
  died: 'stops without a verdict',
  unknown: 'no trtexec run in it',
} as const;
