import { setImmediate } from 'node:timers/promises';
import { closing } from '../../base/files/byte-source.js';
import { throwIfCancelled } from '../../base/process/cancel.js';
import { TrtforgeError } from '../../errors.js';
import type { WorkContext } from '../../events.js';
import { dtypes, elementCount } from '../../formats/tensor/dtype.js';
import { isSameShape, tensorFrom } from '../../formats/tensor/tensor.js';
import { floatReader, type TensorReader, tensorReader } from '../../formats/tensor/tensor-reader.js';
import { worstErrorMap } from './error-map.js';
import { judgeOutput } from './judge-output.js';
import { checkRules, type JudgedOutput } from './judged.js';
import type { CompareRequest } from './options.js';
import { type VerifyOutcome, worst } from './outcome.js';
import { type OutputRun, type OutputSet, openOutputSet } from './output-set.js';
import { type CompareResult, measure } from './result.js';

/**
 * Compares recorded outputs (candidate) with others (reference), output by output, all runs together, with the judge that `verifyModel` uses.
 * Memory does not grow with the tensors. Throws TF_USAGE, TF_VERIFY_MISMATCH when nothing can be compared, TF_CANCELLED, and what `openOutputSet` throws.
 */
export async function compareOutputs(
  request: CompareRequest,
  context: WorkContext = {},
): Promise<CompareResult> {
  const { voidDtype } = request;
  checkRules(request);
  const opened = (path: string, runner: string | undefined) => openOutputSet(path, { runner, voidDtype });
  return closing(opened(request.candidate, request.candidateRunner), (candidate) =>
    closing(opened(request.reference, request.referenceRunner), (reference) =>
      compareSets(request, candidate, reference, context),
    ),
  );
}

async function compareSets(
  request: CompareRequest,
  candidate: OutputSet,
  reference: OutputSet,
  { emit, signal }: WorkContext,
): Promise<CompareResult> {
  const { precision = 'fp32', atol = [], rtol = [] } = request;
  const runs = Math.min(candidate.runs.length, reference.runs.length);
  const theirs = reference.runs.slice(0, runs);
  const ours = candidate.runs.slice(0, runs).map((run) => renamed(run, request.names));
  const contract = compareContracts(request, candidate, reference, ours, theirs);
  const judged: JudgedOutput[] = [];
  const sidesOf = (name: string): readonly [readonly TensorReader[], readonly TensorReader[]] => [
    candidate.typed ? tensorsOf(ours, name) : asPrinted(ours, theirs, name),
    reference.typed ? tensorsOf(theirs, name) : asPrinted(theirs, ours, name),
  ];
  for (const name of contract.comparable) {
    // A turn of the event loop between outputs lets Ctrl-C through.
    await setImmediate();
    throwIfCancelled(signal, `comparing ${name}`);
    const done = judged.length;
    emit?.({ type: 'progress', phase: 'compare', done, total: contract.comparable.length, detail: name });
    const [left, right] = sidesOf(name);
    judged.push(judgeOutput({ ...request, name, precision, atol, rtol, candidate: left, reference: right }));
  }
  const outputs = judged.map(({ output }) => output);
  const numeric = worst(outputs.map(({ outcome }) => outcome));
  const contractOutcome: VerifyOutcome = contract.reasons.length === 0 ? 'pass' : 'fail';
  const sideOf = ({ path, format, runner, runs: all }: OutputSet, unmatched: readonly string[]) => ({
    path,
    format,
    runner,
    runs: all.length,
    unmatched: [...unmatched],
  });
  return {
    schema: 'trtforge.compare/1',
    candidate: sideOf(candidate, contract.onlyCandidate),
    reference: sideOf(reference, contract.onlyReference),
    precision,
    runs,
    outputs,
    ...(request.errorMap === true && { errorMap: worstErrorMap(outputs, sidesOf) }),
    verdicts: { contract: contractOutcome, numeric },
    failures: judged.flatMap(({ output, failures }) =>
      failures.map(({ chunk, kind, maxAbs }) => ({
        run: chunk,
        tensor: output.name,
        kind,
        maxAbs: measure(maxAbs),
      })),
    ),
    warnings: [...contract.warnings],
    outcome: worst([contractOutcome, numeric]),
    reasons: [...contract.reasons, ...judged.flatMap(({ output }) => output.reasons)],
    repeat: null,
  };
}

/** The candidate's tensors under the reference's names. */
function renamed(run: OutputRun, names: ReadonlyMap<string, string> | undefined): OutputRun {
  if (names === undefined || names.size === 0) return run;
  return new Map([...run].map(([name, tensor]) => [names.get(name) ?? name, tensor]));
}

interface Contract {
  readonly comparable: readonly string[];
  readonly onlyCandidate: readonly string[];
  readonly onlyReference: readonly string[];
  readonly reasons: readonly string[];
  readonly warnings: readonly string[];
}

/** Outputs that both have, in the same types and shapes, can be compared; what the reference has and the candidate lacks breaks the contract. */
function compareContracts(
  request: CompareRequest,
  candidate: OutputSet,
  reference: OutputSet,
  ours: readonly OutputRun[],
  theirs: readonly OutputRun[],
): Contract {
  const wanted = namesOf(theirs).filter((name) => request.outputs?.includes(name) ?? true);
  const ownNames = namesOf(ours);
  checkNames(request, candidate, namesOf(theirs));
  const common = wanted.filter((name) => ownNames.includes(name));
  if (common.length === 0) {
    throw new TrtforgeError(
      'TF_VERIFY_MISMATCH',
      `${request.candidate} and ${request.reference} have no output in common: ${ownNames.join(', ') || 'none'} against ${wanted.join(', ') || 'none'}.`,
      {
        remedy: "Pass --map with the candidate's and the reference's name of one output: --map y=logits.",
      },
    );
  }
  const onlyReference = wanted.filter((name) => !ownNames.includes(name));
  const onlyCandidate = ownNames.filter((name) => !wanted.includes(name));
  const reasons = onlyReference.map((name) => `The candidate has no output ${name}.`);
  if (candidate.runs.length !== reference.runs.length) {
    reasons.push(
      `${request.candidate} has ${candidate.runs.length} runs and ${request.reference} ${reference.runs.length}.`,
    );
  }
  const warnings: string[] = [];
  const comparable = common.filter((name) => {
    const reason = whyIncomparable(request, name, ours, theirs, candidate.typed && reference.typed);
    if (reason !== undefined) reasons.push(reason);
    return reason === undefined;
  });
  if (!candidate.typed || !reference.typed)
    warnings.push(
      'trtexec exports six significant digits, so a value may be off by 5e-6 of itself for that alone.',
    );
  return { comparable, onlyCandidate, onlyReference, reasons, warnings };
}

function whyIncomparable(
  request: CompareRequest,
  name: string,
  ours: readonly OutputRun[],
  theirs: readonly OutputRun[],
  typed: boolean,
): string | undefined {
  for (const [run, tensors] of theirs.entries()) {
    const c = ours[run]?.get(name);
    const r = tensors.get(name);
    if (c === undefined && r === undefined) continue;
    if (c === undefined || r === undefined)
      return `${name} is missing in run ${run} of the ${c === undefined ? 'candidate' : 'reference'}.`;
    if (!isSameShape(c, r))
      return `${name} is [${c.shape.join(', ')}] in the candidate and [${r.shape.join(', ')}] in the reference.`;
    if (typed && c.dtype !== r.dtype && request.allowDtypeDifference !== true)
      return `${name} is ${c.dtype} in the candidate and ${r.dtype} in the reference; --allow-dtype-difference compares the values.`;
  }
  return undefined;
}

/** Names that a user spelled must be there: a typing error would leave an output unchecked. */
function checkNames(request: CompareRequest, candidate: OutputSet, known: readonly string[]): void {
  const missing = (names: readonly (string | null)[], has: readonly string[], path: string) => {
    const wrong = names.find((name) => name !== null && !has.includes(name));
    if (wrong === undefined) return;
    throw new TrtforgeError('TF_USAGE', `${path} has no output ${wrong}; it has ${has.join(', ')}.`);
  };
  missing([...(request.names ?? new Map()).keys()], namesOf(candidate.runs), request.candidate);
  const asked = [...(request.atol ?? []), ...(request.rtol ?? []), ...(request.checks ?? [])];
  const renamings = [...(request.names ?? new Map<string, string>()).values()];
  missing(
    [...renamings, ...(request.outputs ?? []), ...asked.map(({ name }) => name)],
    known,
    request.reference,
  );
}

/** Makes trtexec's printed float32 values float32 again: digits that only a double has are none of theirs. Memory for them is that of the text's. */
function asPrinted(
  printed: readonly OutputRun[],
  others: readonly OutputRun[],
  name: string,
): readonly TensorReader[] {
  const isNarrow = ({ dtype }: TensorReader) => dtypes[dtype].kind === 'float' && dtype !== 'float64';
  const tensors = tensorsOf(printed, name);
  if (!tensorsOf(others, name).every(isNarrow)) return tensors;
  return tensors.map((tensor) => {
    const values = new Float32Array(elementCount(tensor.shape));
    floatReader(tensor).read(0, values);
    return tensorReader(tensorFrom('float32', tensor.shape, values));
  });
}

const namesOf = (runs: readonly OutputRun[]): readonly string[] => [
  ...new Set(runs.flatMap((run) => [...run.keys()])),
];

const tensorsOf = (runs: readonly OutputRun[], name: string): readonly TensorReader[] =>
  runs.flatMap((run) => run.get(name) ?? []);
