import { formatBytes, formatMs, formatShare, formatStatistic, plural } from '../../../base/text/quantity.js';
import type { TextOutput } from '../../../cli/command.js';
import { renderNext } from '../../../cli/text.js';
import { isEngineFile } from '../../../engines/plan/header.js';
import { formatMeasure } from '../../../report/sentences.js';
import type { ParityOutput, ParityResult } from '../verify/result.js';
import { taskLine } from '../verify/task.js';

export function renderReference(result: ParityResult, output: TextOutput): void {
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
