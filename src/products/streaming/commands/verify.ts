import { publishFile } from '../../../base/files/publish.js';
import type { OptionValues } from '../../../base/options/option.js';
import { formatBytes, formatMs, formatShare, formatStatistic, plural } from '../../../base/text/quantity.js';
import { broughtBy, type CommandContext, defineCommand, type TextOutput } from '../../../cli/command.js';
import { text } from '../../../cli/option.js';
import { comparisonOptions, placeOptions } from '../../../cli/options/comparison.js';
import { renderNext } from '../../../cli/text.js';
import { isEngineFile } from '../../../engines/plan/header.js';
import { chooseBackEnd } from '../../../engines/runtime/open-session.js';
import { engineOptions } from '../../../engines/runtime/tensorrt/options.js';
import { type ExitCode, outcomeExitCodes, TrtforgeError } from '../../../errors.js';
import { readContract } from '../../../formats/contract/file.js';
import { checkBeforeUse, checkedSessionOptions } from '../../../quality/known-answer/at-load.js';
import type { TaskKind } from '../../../quality/tasks/task.js';
import { renderReport } from '../../../report/pages/report.js';
import { formatMeasure } from '../../../report/sentences.js';
import { parityReport } from '../report/page.js';
import { besideRuns, readRun, runNumbers } from '../verify/compare-runs.js';
import { legacySummary, legacySummaryText } from '../verify/legacy-summary.js';
import { limitOptions, streamOptions } from '../verify/options.js';
import type { ParityOutput, ParityResult } from '../verify/result.js';
import { taskLine } from '../verify/task.js';
import { verifyAgainstReference } from '../verify/verify.js';

/** Options of `stream verify`, besides those of loading. */
const referenceOptions = {
  ...streamOptions,
  contract: text({
    flags: '--contract <file>',
    describe: 'contract of shapes, lengths and state (default: drafted from the bindings)',
  }),
  summaryJson: text({
    flags: '--summary-json <file>',
    advanced: true,
    describe: 'also write the summary for scripts of the streaming encoder',
    writes: ['JSON (mode)'],
  }),
  report: text({
    flags: '--report <file>',
    describe: 'also write an HTML page with the drift chart',
    writes: ['an HTML page'],
  }),
  beside: text({
    flags: '--beside <file>',
    advanced: true,
    describe:
      'result (--json) of another run over the same reference: finds two providers that were one, and whether TF32 causes the error of two engines',
    repeat: true,
  }),
  ...limitOptions,
  threads: comparisonOptions.threads,
  ...placeOptions,
};

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

function renderReference(result: ParityResult, output: TextOutput): void {
  const { bold, dim, green, red, yellow } = output.colors;
  const colored = { pass: green('pass'), fail: red('FAIL'), inconclusive: yellow('inconclusive') };
  const places = {
    device: 'state stays on the device',
    host: 'state crosses the host',
    reference: 'state from the reference',
    none: 'no state',
  };
  output.line(`${bold(result.candidate)} against ${bold(result.reference)}`);
  output.line(
    dim(
      `${result.candidateBackend}, ${result.mode}, ${plural(result.chunks, 'chunk')}, ${places[result.state.place]}`,
    ),
  );
  output.line();
  for (const line of result.outputs.map(outputLine)) output.line(`  ${line}`);
  output.line();
  const { contract, numeric, task } = result.verdicts;
  const taskText = result.task.kind === 'not-judged' ? dim(`not judged: ${result.task.why}`) : '';
  output.line(
    `contract ${colored[contract]}   numeric ${colored[numeric]}   task ${task === null ? taskText : colored[task]}`,
  );
  if (result.task.kind !== 'not-judged') output.line(taskLine(result.task));
  output.line(
    `${plural(result.passed, 'chunk')} of ${result.chunks} passed (${formatShare(result.passRate)}), ${plural(result.violations.length, 'contract violation')}`,
  );
  for (const { outcome, sentence, name } of result.drift?.checks ?? [])
    output.line(`${colored[outcome]}  ${name}: ${sentence}`);
  for (const line of timeLines(result)) output.line(dim(line));
  for (const { severity, sentence, remedy } of result.explanations) {
    output.line();
    output.line(
      `${severity === 'error' ? red(severity) : severity === 'warning' ? yellow(severity) : severity} ${sentence}`,
    );
    output.line(`  ${remedy}`);
  }
  for (const warning of result.warnings) output.line(`${yellow('warning')} ${warning}`);
  output.line();
  const printed = new Set(result.explanations.map(({ sentence }) => sentence));
  for (const reason of result.reasons) if (!printed.has(reason)) output.line(`- ${reason}`);
  for (const path of result.dumps) output.line(`written: ${path}`);
  output.line(`${colored[result.outcome]}  ${dim('To repeat:')} ${result.repeat}`);
  const contractPath = result.contract.path;
  if (result.outcome === 'pass' && contractPath !== null && isEngineFile(result.candidate))
    renderNext(['triton', 'export', result.candidate, '-o', 'models', '--contract', contractPath], output);
}

function outputLine(each: ParityOutput): string {
  const counts = `${each.passed}/${each.chunks}`;
  if (each.kind === 'exact') return `${each.tensor}  ${counts} chunks exactly equal`;
  const { max, mean, p95 } = each.maxAbs;
  const { candidate, reference } = each.nonFinite;
  const odd =
    candidate + reference === 0
      ? ''
      : `  NaN or infinite: ${candidate} elements, ${reference} in the reference`;
  return `${each.tensor}  ${counts} chunks (allclose ${each.allclosePassed})  max ${formatMeasure(max)}  p95 ${formatMeasure(p95)}  mean ${formatMeasure(mean)}  max relative ${formatMeasure(each.maxRel)}  cosine ${formatMeasure(each.minCosine)}${odd}`;
}

function timeLines({ times, gpuTimes, memory, profiles }: ParityResult): readonly string[] {
  const lines: string[] = [];
  const { first, rest, recorded, overRecorded } = times;
  if (first !== null) lines.push(`first chunk ${formatMs(first.totalMs)}, preparation included`);
  if (rest !== null) {
    const { total, copy, run, state } = rest;
    lines.push(
      `then ${formatMs(total.mean)} a chunk (p50 ${formatMs(total.p50)}, p95 ${formatMs(total.p95)}, p99 ${formatMs(total.p99)}): copies ${formatMs(copy.mean)}, run ${formatMs(run.mean)}, state ${formatMs(state.mean)}`,
    );
  }
  if (recorded !== null && overRecorded !== null)
    lines.push(
      `the recorder of the reference took ${formatMs(recorded.mean)} a chunk (p50 ${formatMs(recorded.p50)}): the candidate takes ${formatStatistic(overRecorded)} times as long`,
    );
  const sizes = [
    ['plan', memory.planBytes],
    ['host at most', memory.peakHostBytes],
    ['GPU in use', memory.gpuBytes],
  ] as const;
  const known = sizes.flatMap(([what, bytes]) => (bytes === null ? [] : [`${what} ${formatBytes(bytes)}`]));
  if (known.length > 0) lines.push(`memory: ${known.join(', ')}`);
  for (const each of gpuTimes)
    lines.push(
      `on the GPU: in ${formatMs(each.inputMs)}, compute ${formatMs(each.computeMs)}, out ${formatMs(each.outputMs)} for ${each.shapes}`,
    );
  for (const { batch, medianMs, itemsPerSecond, error } of profiles?.batches ?? [])
    lines.push(
      error === null
        ? `batch ${batch}: ${formatMs(medianMs ?? 0)}, ${Math.round(itemsPerSecond ?? 0)} a second`
        : `batch ${batch}: ${error}`,
    );
  for (const { from, to, acrossProfiles, costMs } of profiles?.switching ?? [])
    lines.push(
      `from ${from} to ${to}${acrossProfiles ? ', another profile' : ''}: ${formatMs(Math.max(0, costMs))} more than staying`,
    );
  return lines;
}

/** Throws TF_USAGE for options that the candidate's back end does not honour. */
function assertApplicable(candidate: string, options: OptionValues<typeof referenceOptions>): void {
  const { takes } = chooseBackEnd(candidate, options);
  if (takes === 'engine' || options.batches.length === 0) return;
  throw new TrtforgeError('TF_USAGE', `--batches has no effect on ${candidate}, which is a model.`, {
    remedy: 'Remove --batches: it is for engines.',
    details: { option: '--batches' },
  });
}
