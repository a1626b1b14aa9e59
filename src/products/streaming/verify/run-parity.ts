import { inPhase, type WorkContext } from '../../../events.js';
import type { Contract } from '../../../formats/contract/contract.js';
import { undecidedStates } from '../../../formats/contract/resolve.js';
import type { Reference } from '../../../formats/reference/reference.js';
import type { TaskKind } from '../../../quality/tasks/task.js';
import { compareBindings } from '../check/compare-bindings.js';
import type { ContractFinding } from '../check/finding.js';
import { checkData } from '../check/recorded-data.js';
import { contractFromModel } from '../contract/draft.js';
import type { OpenCandidate } from './candidate.js';
import type { ParityRequest } from './options.js';
import { parityResult } from './parity-result.js';
import { type StreamPlan, streamPlan } from './plan.js';
import type { ParityResult } from './result.js';
import { runStream } from './run-stream.js';
import { judgedTask, openStreamTask } from './task.js';

export interface ParityContext extends WorkContext {
  /** Kinds of task besides `argmax`: `tokens` decodes with `decoder`. */
  readonly taskKinds?: readonly TaskKind[];
}

/**
 * Compares an open candidate with a reference. Throws TF_PARITY_MISFIT when the reference lacks an input, what reading it throws, and what running
 * throws where it is not a finding about the candidate.
 */
export async function runParity(
  request: ParityRequest,
  candidate: OpenCandidate,
  reference: Reference,
  context: ParityContext = {},
): Promise<ParityResult> {
  const contract: Contract = request.contract ?? contractFromModel(request.candidate, candidate);
  const plan = streamPlan(request, contract, candidate);
  const runner = candidate.runner(plan);
  const { header } = reference;
  const chunks = reference.chunks({ limit: request.limit, signal: context.signal });
  const task = await openStreamTask(request, plan, header, context);
  const stream = await inPhase('stream', context.emit, () =>
    runStream(plan, runner, chunks, { ...context, task }),
  ).finally(() => task?.close());
  const judged = task === null ? null : judgedTask(task);
  const inReference = checkData(contract, stream.recorded, candidate);
  const broken = brokenBindings(request.contract, candidate);
  const {
    gpuTimes = [],
    memory = NO_MEMORY,
    profiles = null,
    warnings = [],
  } = (await candidate.afterwards?.(plan)) ?? {};
  return parityResult({
    request,
    plan,
    candidate,
    runner,
    provenance: header.provenance,
    stream,
    task: judged?.task ?? NOT_JUDGED,
    taskOutcome: judged?.outcome ?? null,
    gpuTimes,
    memory,
    profiles,
    cacheLengthRule: inReference.some(({ id }) => NO_LENGTHS.has(id)) ? null : contract.cacheLengthRule,
    explanations: [
      ...inReference.map((finding) => explained(finding, severityOf(finding, plan.mode))),
      ...unfedStates(plan),
      ...otherWeights(reference, candidate),
      ...contradictions(request.contract, candidate, reference, broken),
    ],
    breaksContract: broken.size > 0,
    warnings: [...(request.contract === null ? [DRAFTED] : []), ...warnings],
  });
}

const NO_MEMORY = { planBytes: null, peakHostBytes: null, gpuBytes: null } as const;

const NOT_JUDGED = { kind: 'not-judged', why: 'no --decoder passed' } as const;

const DRAFTED =
  'There is no contract: state was paired by name, type and shape, and only shapes and lengths that the pairs imply were checked. Pass --contract FILE.';

/** A closed loop in which a state is not fed back runs every chunk with the recorded one: it proves nothing about the loop. */
const unfedStates = ({ mode, contract, inputs, outputs }: StreamPlan): ParityResult['explanations'] =>
  mode === 'functional'
    ? []
    : undecidedStates(inputs, outputs, contract.state)
        .filter(({ reason }) => reason === 'no-name')
        .map(({ input, candidates }) => ({
          id: 'state-not-in-contract',
          severity: 'warning',
          sentence: `The input ${input} reads like a state, and the contract feeds nothing back into it: every chunk ran with the recorded one.`,
          remedy: `Add it to the state of the contract, as ${candidates.map((output) => `${output} to ${input}`).join(' or ')} (\`trtforge stream draft MODEL -o FILE\`), or pass --mode functional.`,
          evidence: { input, candidates: candidates.join(', ') },
        }));

/** A reference of other weights explains any error; one of the same model in another precision has another digest too. */
function otherWeights({ header }: Reference, { modelDigest }: OpenCandidate): ParityResult['explanations'] {
  const recorded = header.provenance?.model;
  if (recorded === undefined || modelDigest === null || recorded.kind !== 'model') return [];
  if (recorded.digest === modelDigest) return [];
  return [
    {
      id: 'other-model',
      severity: 'warning',
      sentence: `The reference was recorded from ${recorded.path}, whose content is not that of the candidate's model.`,
      remedy:
        'Record the reference again, unless the candidate is a converted or simplified form of that model.',
      evidence: { recorded: recorded.digest, candidate: modelDigest },
    },
  ];
}

/** Tensors of the contract that the candidate lacks or has with another type or shape: a guard would reject every step. What a contract does not name violates nothing. */
function brokenBindings(contract: Contract | null, candidate: OpenCandidate): ReadonlySet<string> {
  if (contract === null) return new Set();
  const named = new Set([...contract.inputs, ...contract.outputs].map(({ name }) => name));
  const broken = compareBindings(contract, candidate, null).filter(({ severity }) => severity === 'error');
  return new Set(broken.map(({ about }) => about).filter((name) => named.has(name)));
}

/** Contract, candidate and reference tensor by tensor, before any number. */
function contradictions(
  contract: Contract | null,
  candidate: OpenCandidate,
  { header }: Reference,
  broken: ReadonlySet<string>,
): ParityResult['explanations'] {
  if (contract === null) return [];
  return compareBindings(contract, candidate, header).map((finding) =>
    explained(finding, broken.has(finding.about) ? 'error' : 'warning'),
  );
}

/** Findings after which lengths of the candidate prove nothing: the reference has none to compare them with. */
const NO_LENGTHS: ReadonlySet<string> = new Set([
  'invented-lengths',
  'lengths-against-rule',
  'stream-broken',
  'chunks-not-in-order',
]);

/** A closed loop over chunks that do not follow one another must fail: that is the first reason. */
const severityOf = (
  { id, severity }: ContractFinding,
  mode: ParityRequest['mode'],
): ContractFinding['severity'] => (mode === 'closed-loop' && id === 'stream-broken' ? 'error' : severity);

const explained = (
  { id, wrong, about, message, why, remedy }: ContractFinding,
  severity: ContractFinding['severity'],
): ParityResult['explanations'][number] => ({
  id,
  severity,
  sentence: `${message} ${why}`,
  remedy,
  evidence: { wrong, about },
});
