import type { CommandContext, TextOutput } from '../cli/command.js';
import { choice, flag, type OptionValues, option, text } from '../cli/option.js';
import { integer, splitAtCommas } from '../cli/values.js';
import { ExitCode, TrtforgeError } from '../errors.js';
import { renderParityHtml } from '../report/parity-page.js';
import { formatMs, formatShare, plural } from '../report/quantity.js';
import { formatMeasure } from '../report/sentences.js';
import { passRules } from '../stream/chunk-compare.js';
import { type ContractCheck, checkContractOnly } from '../stream/contract-check.js';
import { readContract } from '../stream/contract-file.js';
import { type DriftPolicy, defaultPolicy } from '../stream/drift-policy.js';
import { isEngineFile, verifyAgainstReference } from '../stream/parity-file.js';
import { type ParityMode, parityModes } from '../stream/parity-request.js';
import type { ParityOutput, ParityResult } from '../stream/parity-schema.js';
import { seedSummary, seedSummaryText } from '../stream/summary.js';
import { readSummary, runNumbers, summaryOfResult } from '../stream/summary-read.js';
import { taskLine } from '../stream/task-words.js';
import { sameRuns } from '../stream/tell-why-runs.js';
import { publishFile } from '../system/publish.js';
import type { toleranceOptions } from './comparison-options.js';

/** Options of `verify` that hold a candidate against a recorded stream. */
export const referenceOptions = {
  reference: text({
    flags: '--reference <place>',
    describe: 'a recorded stream (JSONL, or the folder of a compact one): run it chunk by chunk',
  }),
  mode: choice({
    flags: '--mode <mode>',
    describe:
      'functional: every chunk is given the recorded state; closed-loop: what the candidate left (default: closed-loop)',
    choices: parityModes,
  }),
  contract: text({
    flags: '--contract <file>',
    describe: 'what the model promises of shapes, lengths and state (default: drafted from its bindings)',
  }),
  contractOnly: flag({
    flags: '--contract-only',
    describe: 'run nothing: hold names, types, shapes, profiles and recorded lengths against the contract',
  }),
  rule: choice({
    flags: '--rule <rule>',
    describe:
      'tensor: largest error within atol, or largest relative error within rtol; allclose: every element within atol + rtol * |reference| (default: tensor)',
    choices: passRules,
  }),
  drift: option({
    flags: '--drift <limits>',
    describe:
      'limits of the main output over the stream: p95=5e-4,max=1e-3,mean=2e-4,slope=1e-6,latency=21 (ms); off for none',
    parse: parsePolicy,
  }),
  decoder: text({
    flags: '--decoder <meta>',
    describe:
      "judge the task: a bundle's model_meta.json, whose predictor and joint network decode both encoder outputs; tokens and durations must be the same",
  }),
  taskOutput: text({
    flags: '--task-output <name>',
    describe:
      'the output that the task is about: what --decoder decodes (default: the main one), or alone, class scores whose largest along the last axis must agree',
  }),
  chunks: option({
    flags: '--chunks <count>',
    describe: 'how many chunks of the reference to run (default: all)',
    parse: integer(1),
  }),
  dump: text({
    flags: '--dump <folder>',
    describe: 'write failing chunks there as npz, with inputs, got_ and ref_ outputs',
  }),
  dumpLimit: option({
    flags: '--dump-limit <count>',
    describe: 'how many failing chunks to write',
    parse: integer(0, 100_000),
    default: 5,
  }),
  summaryJson: text({
    flags: '--summary-json <file>',
    describe: 'also write the summary that scripts of the streaming encoder read',
  }),
  report: text({ flags: '--report <file>', describe: 'also write a page with the drift chart there' }),
  beside: text({
    flags: '--beside <file>',
    describe:
      'a result or summary of another provider on the same reference: tell whether both ran on the same one',
    repeat: true,
  }),
  batches: option({
    flags: '--batches <sizes>',
    describe: 'engines: time batches 1,2,4,8 and changes between profiles after the stream',
    parse: (list: string) => splitAtCommas(list).map(integer(1, 65_536)),
    repeat: true,
  }),
  device: option({
    flags: '--device <number>',
    describe: 'engines: which of the visible GPUs (default: 0)',
    parse: integer(0),
  }),
  toolchain: text({
    flags: '--toolchain <name>',
    describe: 'engines: which TensorRT (default: the one that built it)',
  }),
  plugin: text({
    flags: '--plugin <library>',
    describe: 'engines: a plug-in library it needs',
    repeat: true,
  }),
  allowHostCode: flag({
    flags: '--allow-host-code',
    describe: 'version-compatible engines carry their own runtime: let that code run here',
  }),
};

type Options = OptionValues<typeof referenceOptions> &
  OptionValues<typeof toleranceOptions> & { readonly threads: number | undefined };

const outcomes = {
  pass: ExitCode.pass,
  fail: ExitCode.failed,
  inconclusive: ExitCode.inconclusive,
} as const;

/** Runs the candidate over the reference and writes what was asked for beside the result. */
export async function runReference(
  candidate: string,
  reference: string,
  options: Options,
  { emit, signal, environment }: CommandContext,
): Promise<ParityResult & { readonly exitCode: ExitCode }> {
  checkWishes(candidate, options);
  const { mode = 'closed-loop', device, toolchain, batches } = options;
  const others = options.beside.map((path) => runNumbers(readSummary(path)));
  const ran = await verifyAgainstReference(
    {
      candidate,
      reference,
      mode: mode satisfies ParityMode,
      contract: options.contract === undefined ? null : readContract(options.contract),
      atol: options.atol.flat(),
      rtol: options.rtol.flat(),
      dumpLimit: options.dumpLimit,
      batches: batches.flat(),
      engine: {
        plugins: options.plugin,
        allowHostCode: options.allowHostCode,
        ...(device === undefined ? {} : { device }),
        ...(toolchain === undefined ? {} : { toolchain }),
      },
      ...(options.rule === undefined ? {} : { rule: options.rule }),
      ...(options.drift === undefined ? {} : { policy: options.drift.policy }),
      ...(options.decoder === undefined ? {} : { decoder: options.decoder }),
      ...(options.taskOutput === undefined ? {} : { taskOutput: options.taskOutput }),
      ...(options.chunks === undefined ? {} : { limit: options.chunks }),
      ...(options.dump === undefined ? {} : { dump: options.dump }),
      ...(options.threads === undefined ? {} : { threads: options.threads }),
    },
    { emit, signal, environment },
  );
  const same = sameRuns(runNumbers(summaryOfResult(candidate, ran)), others);
  const result: ParityResult = {
    ...ran,
    explanations: [...same, ...ran.explanations],
    reasons: [...ran.reasons, ...same.map(({ sentence }) => sentence)],
  };
  if (options.summaryJson !== undefined)
    publishFile(options.summaryJson, seedSummaryText(seedSummary(result)));
  if (options.report !== undefined) publishFile(options.report, renderParityHtml(result));
  return { ...result, exitCode: outcomes[result.outcome] };
}

/** Options that the kind of candidate cannot honour are refused, not dropped. */
function checkWishes(candidate: string, options: Options): void {
  const isEngine = isEngineFile(candidate);
  const engineOnly = {
    '--batches': options.batches[0],
    '--device': options.device,
    '--toolchain': options.toolchain,
    '--plugin': options.plugin[0],
    '--allow-host-code': options.allowHostCode || undefined,
  };
  const [wrong] = given(isEngine ? { '--threads': options.threads } : engineOnly);
  if (wrong === undefined) return;
  throw new TrtforgeError(
    'TF_USAGE',
    `${wrong} is for ${isEngine ? 'ONNX models' : 'engines'}; ${candidate} is ${isEngine ? 'an engine' : 'a model'}.`,
    { remedy: 'Leave the option out.' },
  );
}

/** Names of the options that were given. */
export const given = (wishes: Readonly<Record<string, unknown>>): readonly string[] =>
  Object.entries(wishes).flatMap(([name, wish]) => (wish === undefined ? [] : [name]));

/** Options that mean something only with a recorded stream. */
export const streamWishes = (options: OptionValues<typeof referenceOptions>) => ({
  '--mode': options.mode,
  '--rule': options.rule,
  '--drift': options.drift,
  '--decoder': options.decoder,
  '--task-output': options.taskOutput,
  '--chunks': options.chunks,
  '--dump': options.dump,
  '--summary-json': options.summaryJson,
  '--report': options.report,
  '--beside': options.beside[0],
  '--batches': options.batches[0],
  '--device': options.device,
  '--toolchain': options.toolchain,
  '--plugin': options.plugin[0],
  '--allow-host-code': options.allowHostCode || undefined,
});

/** Holds a file against a contract without running it. */
export async function runContractOnly(
  file: string,
  { contract, reference }: Pick<Options, 'contract' | 'reference'>,
  { emit, signal }: CommandContext,
): Promise<ContractCheck & { readonly exitCode: ExitCode }> {
  if (contract === undefined) {
    throw new TrtforgeError('TF_USAGE', '--contract-only needs a contract to hold the model against.', {
      remedy: `Give it: trtforge verify ${file} --contract-only --contract FILE.`,
    });
  }
  const check = await checkContractOnly({ file, contract, reference }, { emit, signal });
  return { ...check, exitCode: outcomes[check.outcome] };
}

const LIMITS = { p95: 'p95', max: 'max', mean: 'mean', slope: 'slope', latency: 'latencyMs' } as const;

/** Reads `p95=5e-4,slope=off`, or `off`; limits that are not named stay the usual ones. Wrapped, since null means off. */
function parsePolicy(limits: string): { readonly policy: DriftPolicy | null } {
  if (limits === 'off') return { policy: null };
  const policy: { -readonly [K in keyof DriftPolicy]: DriftPolicy[K] } = { ...defaultPolicy };
  for (const part of splitAtCommas(limits)) {
    const [name = '', value = ''] = part.split('=');
    const key = LIMITS[name as keyof typeof LIMITS];
    const limit = value === 'off' ? null : Number(value);
    if (
      key === undefined ||
      value.trim() === '' ||
      (limit !== null && !(limit >= 0 && Number.isFinite(limit)))
    ) {
      throw new TrtforgeError('TF_USAGE', `«${part}» is not a limit of the drift.`, {
        remedy: `Write ${Object.keys(LIMITS).join(', ')} with a number or off: p95=5e-4,slope=off; or off alone.`,
      });
    }
    policy[key] = limit;
  }
  return { policy };
}

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
    `${plural(result.passed, 'chunk')} of ${result.chunks} passed (${formatShare(result.passRate)}), ${plural(result.violations.length, 'broken promise')}`,
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
  for (const reason of result.reasons) output.line(`- ${reason}`);
  for (const path of result.dumps) output.line(`written: ${path}`);
  output.line(`${colored[result.outcome]}  ${dim('again:')} ${result.repeat}`);
}

function outputLine(each: ParityOutput): string {
  const counts = `${each.passed}/${each.chunks}`;
  if (each.kind === 'exact') return `${each.tensor}  ${counts} chunks exactly equal`;
  const { max, mean, p95 } = each.maxAbs;
  return `${each.tensor}  ${counts} chunks (allclose ${each.allclosePassed})  max ${formatMeasure(max)}  p95 ${formatMeasure(p95)}  mean ${formatMeasure(mean)}  max relative ${formatMeasure(each.maxRel)}  cosine ${formatMeasure(each.minCosine)}`;
}

function timeLines({ times, gpuTimes, profiles }: ParityResult): readonly string[] {
  const lines: string[] = [];
  const { first, rest } = times;
  if (first !== null) lines.push(`first chunk ${formatMs(first.totalMs)}, what it prepares included`);
  if (rest !== null) {
    const { total, copy, run, state } = rest;
    lines.push(
      `then ${formatMs(total.mean)} a chunk (p50 ${formatMs(total.p50)}, p95 ${formatMs(total.p95)}, p99 ${formatMs(total.p99)}): copies ${formatMs(copy.mean)}, run ${formatMs(run.mean)}, state ${formatMs(state.mean)}`,
    );
  }
  for (const each of gpuTimes)
    lines.push(
      `on the GPU: in ${formatMs(each.inputMs)}, compute ${formatMs(each.computeMs)}, out ${formatMs(each.outputMs)} for ${each.shapes}`,
    );
  for (const { batch, medianMs, itemsPerSecond, refused } of profiles?.batches ?? [])
    lines.push(
      refused === null
        ? `batch ${batch}: ${formatMs(medianMs ?? 0)}, ${Math.round(itemsPerSecond ?? 0)} a second`
        : `batch ${batch}: ${refused}`,
    );
  for (const { from, to, acrossProfiles, costMs } of profiles?.switching ?? [])
    lines.push(
      `from ${from} to ${to}${acrossProfiles ? ', another profile' : ''}: ${formatMs(Math.max(0, costMs))} more than staying`,
    );
  return lines;
}

export function renderContractCheck(check: ContractCheck, output: TextOutput): void {
  const { bold, dim, green, red, yellow } = output.colors;
  output.line(`${bold(check.model.path)} against ${bold(check.contract.path ?? check.contract.name)}`);
  for (const { severity, wrong, message, why, remedy } of check.findings) {
    output.line();
    output.line(`${severity === 'error' ? red(severity) : yellow(severity)} ${message}`);
    output.line(`  ${wrong === 'undecided' ? '' : `The ${wrong} is wrong. `}${why}`);
    output.line(`  ${remedy}`);
  }
  if (check.predicted.length > 0) {
    output.line();
    output.line(
      dim(`state length after each chunk: ${check.predicted.map(({ stateOut }) => stateOut).join(', ')}`),
    );
  }
  for (const { sentence, why } of check.notExecutable) output.line(dim(`not checked: «${sentence}»: ${why}`));
  output.line();
  output.line(check.outcome === 'pass' ? green('pass') : red('FAIL'));
}
