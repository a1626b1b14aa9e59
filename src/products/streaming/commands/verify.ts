import { publishFile } from '../../../base/files/publish.js';
import type { OptionValues } from '../../../base/options/option.js';
import { broughtBy, type CommandContext, defineCommand } from '../../../cli/command.js';
import { engineOptions } from '../../../engines/runtime/tensorrt/options.js';
import { type ExitCode, outcomeExitCodes } from '../../../errors.js';
import { readContract } from '../../../formats/contract/file.js';
import { checkBeforeUse, checkedSessionOptions } from '../../../quality/known-answer/at-load.js';
import type { TaskKind } from '../../../quality/tasks/task.js';
import { renderReport } from '../../../report/pages/report.js';
import { parityReport } from '../report/page.js';
import { besideRuns, readRun, runNumbers } from '../verify/compare-runs.js';
import { legacySummary, legacySummaryText } from '../verify/legacy-summary.js';
import type { ParityResult } from '../verify/result.js';
import { verifyAgainstReference } from '../verify/verify.js';
import { assertApplicable, referenceOptions } from './verify-options.js';
import { renderReference } from './verify-text.js';

export const command = defineCommand({
  arguments: [{ name: 'CANDIDATE', describe: 'a TensorRT engine or an ONNX model' }],
  examples: [
    'trtforge stream verify encoder.engine --reference reference.jsonl --contract encoder.contract.json',
    'trtforge stream verify encoder.engine --reference ref.jsonl --mode functional --report parity.html',
    'trtforge stream verify encoder.fp16.onnx --reference reference.jsonl --decoder bundle/model_meta.json',
  ],
  options: { ...referenceOptions, ...engineOptions, check: checkedSessionOptions.check },
  schema: async () => (await import('../verify/result.js')).parityResultSchema,
  run: async ([candidate = ''], options, context) => {
    await checkBeforeUse(candidate, options.check, { ...options, ...context });
    return runReference(candidate, options, context, await broughtBy(context.products, 'tasks'));
  },
  render: renderReference,
});

const NOTHING_FOLLOWS =
  'Nothing follows from the runs passed with --beside: their errors differ from this run, or their provider is the same, and the two are neither engines of one model built with and without TF32, nor an engine and ONNX Runtime.';

/** The request, and the other runs that are passed beside. Throws TF_USAGE, and what reading contract and runs throws. */
function requested(candidate: string, options: OptionValues<typeof referenceOptions & typeof engineOptions>) {
  assertApplicable(candidate, options);
  const contract = options.contract === undefined ? null : readContract(options.contract);
  return { request: { ...options, candidate, contract }, others: options.beside.map(readRun) };
}

/** Runs the candidate over the reference and writes the requested files. */
async function runReference(
  candidate: string,
  options: OptionValues<typeof referenceOptions & typeof engineOptions>,
  context: CommandContext,
  taskKinds: readonly TaskKind[],
): Promise<ParityResult & { readonly exitCode: ExitCode }> {
  const { request, others } = requested(candidate, options);
  const ran = await verifyAgainstReference(request, { ...context, taskKinds });
  const found = besideRuns(runNumbers(ran), others);
  const reasons = found.filter(({ severity }) => severity !== 'note').map(({ sentence }) => sentence);
  const result: ParityResult = {
    ...ran,
    explanations: [...found, ...ran.explanations],
    reasons: [...ran.reasons, ...reasons],
    warnings: [...ran.warnings, ...(others.length > 0 && found.length === 0 ? [NOTHING_FOLLOWS] : [])],
    repeat: context.commandLine,
  };
  if (options.summaryJson !== undefined)
    publishFile(options.summaryJson, legacySummaryText(legacySummary(result)));
  if (options.report !== undefined)
    publishFile(options.report, renderReport({ kind: parityReport, result }, 'html').content);
  return { ...result, exitCode: outcomeExitCodes[result.outcome] };
}
