import { publishFile } from '../../../base/files/publish.js';
import { shellWord } from '../../../base/process/shell-word.js';
import type { CommandContext } from '../../../cli/command.js';
import { type EngineOptionValues, engineWishes } from '../../../cli/options/engine.js';
import { type ExitCode, outcomeExitCodes, TrtforgeError } from '../../../errors.js';
import { type ContractCheck, checkContractOnly } from '../check-contract.js';
import type { ParityResult } from '../compare/result-schema.js';
import { readContract } from '../contract/file.js';
import { besideRuns } from '../explain/runs.js';
import { renderParityHtml } from '../report/parity-page.js';
import { verifyAgainstReference } from '../verify/file.js';
import { seedSummary, seedSummaryText } from '../verify/summary.js';
import { readSummary, runNumbers, summaryOfResult } from '../verify/summary-read.js';
import { checkWishes, type ReferenceOptions } from './verify-options.js';

const NOTHING_FOLLOWS =
  'Nothing follows from what was laid --beside: it has other errors than this run, or the same provider, and the two are not engines of one model built with and without TF32.';

/** Runs the candidate over the reference and writes what was asked for beside the result. */
export async function runReference(
  candidate: string,
  reference: string,
  options: ReferenceOptions & EngineOptionValues,
  { emit, signal, environment }: CommandContext,
): Promise<ParityResult & { readonly exitCode: ExitCode }> {
  checkWishes(candidate, options);
  const { mode = 'closed-loop', provider, batches } = options;
  const others = options.beside.map((path) => runNumbers(readSummary(path)));
  const ran = await verifyAgainstReference(
    {
      candidate,
      reference,
      mode,
      contract: options.contract === undefined ? null : readContract(options.contract),
      atol: options.atol.flat(),
      rtol: options.rtol.flat(),
      dumpLimit: options.dumpLimit,
      sensitivity: options.sensitivity,
      batches: batches.flat(),
      ...engineWishes(options),
      ...(options.device === undefined ? {} : { device: options.device }),
      ...(provider === undefined ? {} : { provider }),
      ...(options.rule === undefined ? {} : { rule: options.rule }),
      ...(options.drift === undefined ? {} : { policy: options.drift.policy }),
      ...(options.decoder === undefined ? {} : { decoder: options.decoder }),
      ...(options.swap === undefined ? {} : { swap: options.swap }),
      ...(options.taskOutput === undefined ? {} : { taskOutput: options.taskOutput }),
      ...(options.chunks === undefined ? {} : { limit: options.chunks }),
      ...(options.dump === undefined ? {} : { dump: options.dump }),
      ...(options.threads === undefined ? {} : { threads: options.threads }),
    },
    { emit, signal, environment },
  );
  const told = besideRuns(runNumbers(summaryOfResult(candidate, ran)), others);
  const reasons = told.filter(({ severity }) => severity !== 'note').map(({ sentence }) => sentence);
  const result: ParityResult = {
    ...ran,
    explanations: [...told, ...ran.explanations],
    reasons: [...ran.reasons, ...reasons],
    warnings: [...ran.warnings, ...(others.length > 0 && told.length === 0 ? [NOTHING_FOLLOWS] : [])],
    repeat: [ran.repeat, ...options.beside.map((path) => `--beside ${shellWord(path)}`)].join(' '),
  };
  if (options.summaryJson !== undefined)
    publishFile(options.summaryJson, seedSummaryText(seedSummary(result)));
  if (options.report !== undefined) publishFile(options.report, renderParityHtml(result));
  return { ...result, exitCode: outcomeExitCodes[result.outcome] };
}

/** Holds a file against a contract without running it. */
export async function runContractOnly(
  file: string,
  options: Pick<ReferenceOptions, 'contract' | 'reference' | 'device'> & EngineOptionValues,
  { emit, signal, environment }: CommandContext,
): Promise<ContractCheck & { readonly exitCode: ExitCode }> {
  const { contract, reference, device } = options;
  if (contract === undefined) {
    throw new TrtforgeError('TF_USAGE', '--contract-only needs a contract to hold the model against.', {
      remedy: `Give it: trtforge verify ${file} --contract-only --contract FILE.`,
    });
  }
  const check = await checkContractOnly(
    { file, contract, reference },
    {
      emit,
      signal,
      environment,
      device,
      ...engineWishes(options),
    },
  );
  return { ...check, exitCode: outcomeExitCodes[check.outcome] };
}
