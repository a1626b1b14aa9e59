import { z } from 'zod';
import { throwIfCancelled } from '../../../base/process/cancel.js';
import { checkLaw, rangeText, scheduled, simulateLengths } from '../contract/cache-length.js';
import type { Contract } from '../contract/contract.js';
import { readContract } from '../contract/file.js';
import { openReference } from '../reference/open.js';
import type { Reference, ReferenceHeader } from '../reference/reference.js';
import { compareBindings, type ModelBindings, remedies } from './bindings.js';
import { type ContractFinding, contractFindingSchema } from './finding.js';
import { type ModelContext, type StatedModel, stateModel } from './model-bindings.js';
import { checkData } from './recorded-data.js';
import { recordedLengths } from './recorded-lengths.js';
import { checkCapacity, checkPromisedDimensions } from './sizes.js';

/** What `stream check` returns. */
export const contractCheckSchema = z.object({
  schema: z.literal('trtforge.stream-check/1'),
  outcome: z.enum(['pass', 'fail']),
  contract: z.object({ name: z.string(), path: z.string().nullable(), form: z.string() }),
  model: z.object({ path: z.string(), kind: z.enum(['model', 'engine']) }),
  reference: z.string().nullable(),
  /** Contradictions, each with which of the three is wrong and why. Errors make the outcome fail. */
  findings: z.array(contractFindingSchema),
  assertions: z.array(
    z.object({ id: z.string(), kind: z.string(), tensor: z.string(), sentence: z.string() }),
  ),
  notExecutable: z.array(z.object({ sentence: z.string(), why: z.string() })),
  ignored: z.array(z.string()),
  /** Length of the state after each of the first chunks, by the cache-length law; empty where the contract does not give it. */
  predicted: z.array(z.object({ frames: z.number(), stateIn: z.number(), stateOut: z.number() })),
  /** Chunks of the reference whose lengths were read. */
  chunks: z.number().nullable(),
});
export type ContractCheck = z.infer<typeof contractCheckSchema>;

const PREDICTED = 8;

/** A model or the bindings of a session against a contract: names, dtypes, ranks, layouts, sizes, profiles, and the contract's law against itself. */
export const checkContract = (contract: Contract, model: ModelBindings): readonly ContractFinding[] => [
  ...compareBindings(contract, model, null),
  ...checkPromisedDimensions(contract, model, null),
  ...checkCapacity(contract),
  ...checkEngineProfiles(contract, model),
  ...checkLaw(contract),
];

/** The same with recorded data as a third witness. Reads every length in the reference. */
async function checkThree(
  contract: Contract,
  model: ModelBindings & { readonly digest?: string | null },
  reference: Reference,
  signal?: AbortSignal,
): Promise<{ readonly findings: readonly ContractFinding[]; readonly chunks: number }> {
  const recorded = await recordedLengths(contract, reference, signal);
  const findings = [
    ...compareBindings(contract, model, reference.header),
    ...checkPromisedDimensions(contract, model, reference.header),
    ...checkCapacity(contract),
    ...checkWeights(reference.header, model.digest ?? null),
    ...checkEngineProfiles(contract, model),
    ...checkLaw(contract),
    ...checkData(contract, recorded, model),
  ];
  return { findings, chunks: recorded.length };
}

/**
 * Everything that can be known before anything runs: reads the contract, what the model or engine says of itself, and the reference's lengths where one is
 * given. Throws what reading any of them throws; contradictions are findings, not errors.
 */
export async function checkContractOnly(
  request: { readonly file: string; readonly contract: string; readonly reference?: string },
  context: ModelContext = {},
): Promise<ContractCheck> {
  const contract = readContract(request.contract);
  throwIfCancelled(context.signal, `checking ${request.file}`);
  const model = await stateModel(request.file, { ...context, digest: request.reference !== undefined });
  const { findings, chunks } = await findingsOf(contract, model, request.reference, context.signal);
  const { name, origin, law, schedule } = contract;
  return {
    schema: 'trtforge.stream-check/1',
    outcome: findings.some(({ severity }) => severity === 'error') ? 'fail' : 'pass',
    contract: { name, path: origin.path, form: origin.form },
    model: { path: model.path, kind: model.kind },
    reference: request.reference ?? null,
    findings: [...findings],
    assertions: contract.assertions.map(({ id, kind, tensor, sentence }) => ({ id, kind, tensor, sentence })),
    notExecutable: [...contract.notExecutable],
    ignored: [...contract.ignored],
    predicted:
      law === null || schedule === null ? [] : [...simulateLengths(law, scheduled(schedule, PREDICTED))],
    chunks,
  };
}

async function findingsOf(
  contract: Contract,
  model: StatedModel,
  path: string | undefined,
  signal: AbortSignal | undefined,
): Promise<{ readonly findings: readonly ContractFinding[]; readonly chunks: number | null }> {
  if (path === undefined) return { findings: checkContract(contract, model), chunks: null };
  const reference = openReference(path);
  try {
    return await checkThree(contract, model, reference, signal);
  } finally {
    reference.close();
  }
}

/** The engine must take every size of the schedule. */
function checkEngineProfiles({ schedule }: Contract, model: ModelBindings): readonly ContractFinding[] {
  if (schedule === null) return [];
  const { tensor, axis, first, rest } = schedule;
  const profiles = model.inputs.find(({ name }) => name === tensor)?.profiles ?? [];
  if (profiles.length === 0) return [];
  const ranges = profiles.map(({ min, max }) => ({ min: min[axis] ?? 0, max: max[axis] ?? 0 }));
  const takes = (frames: number): boolean => ranges.some(({ min, max }) => frames >= min && frames <= max);
  return [...new Set([first, rest])]
    .filter((frames) => !takes(frames))
    .map((frames) => ({
      id: 'schedule-outside-engine',
      wrong: 'model',
      severity: 'error',
      about: tensor,
      message: `The engine takes ${ranges.map(rangeText).join(', ')} frames of ${tensor}; the contract's schedule has chunks of ${frames}.`,
      why: 'The engine was built with other profiles than the contract needs.',
      remedy: `Build it again with ${tensor} from ${Math.min(first, rest)} to ${Math.max(first, rest)} frames.`,
    }));
}

/** A reference of other weights makes every comparison meaningless. */
function checkWeights({ provenance }: ReferenceHeader, digest: string | null): readonly ContractFinding[] {
  if (provenance === null || digest === null || provenance.model.digest === digest) return [];
  return [
    {
      id: 'other-weights',
      wrong: 'data',
      severity: 'error',
      about: 'model',
      message: `The reference was recorded with another model (${provenance.model.path}, ${provenance.model.digest.slice(0, 12)}) than the one at hand (${digest.slice(0, 12)}).`,
      why: 'The digests of graph and weights differ.',
      remedy: remedies.data,
    },
  ];
}
