import { ExitCode } from '../../errors.js';
import { viewModel } from '../../formats/onnx/model.js';
import {
  type ExplainResult,
  explainLog,
  LISTED_RUNS,
  readExplainable,
} from '../../quality/explain/explain.js';
import { broughtBy, defineCommand, type TextOutput } from '../command.js';
import { text } from '../option.js';
import { renderIssues } from '../text.js';

export const command = defineCommand({
  arguments: [
    {
      name: 'LOG',
      describe:
        "a log of trtexec, or of anything that prints TensorRT's messages; - for standard input; a --json result of trtforge",
    },
  ],
  options: {
    model: text({
      flags: '--model <onnx>',
      describe:
        'the model at work: nodes that the log names are looked up in it, with what lies between them',
    }),
  },
  examples: [
    'trtforge explain build.log',
    'trtforge explain build.log --model model.onnx',
    'trtexec --onnx=model.onnx 2>&1 | trtforge explain -',
    'trtforge explain build.log --json',
  ],
  schema: async () => (await import('../../quality/explain/explain.js')).explainResultSchema,
  run: async ([log = ''], { model }, { products }) => {
    // A model that cannot be read is the user's mistake here, and reported.
    if (model !== undefined) viewModel(model, () => {});
    const means = { model, knownIssues: await broughtBy(products, 'knownIssues') };
    const result = (await readExplainable(log, means)) ?? explainLog(log, means);
    return { ...result, exitCode: hasErrors(result) ? ExitCode.failed : ExitCode.pass };
  },
  render: (result, output: TextOutput) => {
    const { colors } = output;
    const by = result.tensorrtVersion === null ? '' : ` (TensorRT ${result.tensorrtVersion})`;
    const outcome = result.outcome === 'unknown' ? `${result.lines} lines` : OUTCOME[result.outcome];
    output.line(`${colors.bold(result.log)}${by}: ${outcome}`);
    for (const line of runLines(result)) output.line(line);
    renderIssues(result.issues, output);
    if (result.unexplained.length > 0) {
      output.line();
      output.line('Error lines that trtforge does not know:');
      for (const { line, text } of result.unexplained) output.line(`  ${colors.dim(`${line}:`)} ${text}`);
    }
    if (result.issues.length === 0 && result.unexplained.length === 0) output.line(nothingIn(result));
  },
});

/** Whether the log shows that something failed, known or not. */
const hasErrors = ({ issues, outcome, unexplained }: ExplainResult): boolean =>
  outcome === 'failed' ||
  outcome === 'died' ||
  (unexplained.length > 0 && outcome !== 'passed') ||
  issues.some(({ severity }) => severity === 'error');

const OUTCOME = {
  passed: 'passed',
  failed: 'failed',
  died: 'stops without a verdict',
  unknown: 'no trtexec run in it',
} as const;

/** Runs by how they ended, where there are several; those that did not pass are named. */
function runLines({ runs }: ExplainResult): readonly string[] {
  if (runs.length < 2) return [];
  const counts = (['passed', 'failed', 'died'] as const).flatMap((outcome) => {
    const count = runs.filter((run) => run.outcome === outcome).length;
    return count === 0 ? [] : [`${count} ${outcome === 'died' ? 'without a verdict' : outcome}`];
  });
  const wrong = runs.filter(({ outcome }) => outcome !== 'passed').slice(0, NAMED_RUNS);
  return [
    `${runs.length < LISTED_RUNS ? 'It has' : 'It begins with'} ${runs.length} runs: ${counts.join(', ')}.`,
    ...wrong.map(
      ({ line, outcome, commandLine }) => `  line ${line}: ${OUTCOME[outcome]}: ${commandLine ?? 'trtexec'}`,
    ),
  ];
}

/** Runs that did not pass and are named. */
const NAMED_RUNS = 20;

function nothingIn({ lines, outcome }: ExplainResult): string {
  if (lines === 0) return 'It is empty. trtexec writes errors to stderr: keep both streams (2>&1).';
  return outcome === 'unknown'
    ? 'No line of it has the form of an error, and none is a known issue.'
    : 'Nothing in it needs explaining.';
}
