import { z } from 'zod';
import { throwIfCancelled } from '../../../base/process/cancel.js';
import type { Contract } from '../../../formats/contract/contract.js';
import { readContract } from '../../../formats/contract/file.js';
import { openReference, type ReferenceHeader } from '../../../formats/reference/reference.js';
import type { ModelBindings } from '../contract/bindings.js';
import { scheduled, simulateLengths } from '../contract/cache-length.js';
import { checkDimensions, checkEngineProfiles, checkWeights } from './against-model.js';
import { compareBindings } from './compare-bindings.js';
import { type ContractFinding, contractFindingSchema } from './finding.js';
import { type ModelContext, readModelBindings } from './model-bindings.js';
import { checkOwnNumbers } from './own-numbers.js';
import { checkData } from './recorded-data.js';
import { type RecordedLengths, recordedLengths } from './recorded-lengths.js';

/** The result of `stream check`. */
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
  /** Length of the state after each of the first chunks, by the cache-length rule; empty where the contract does not have its numbers. */
  predicted: z.array(z.object({ frames: z.number(), stateIn: z.number(), stateOut: z.number() })),
  /** Chunks of the reference whose lengths were read. */
  chunks: z.number().nullable(),
});
export interface ContractCheck extends z.infer<typeof contractCheckSchema> {}

const PREDICTED = 8;

/** The parts of a reference that are compared with a contract. */
interface Recorded {
  readonly header: ReferenceHeader;
  readonly lengths: readonly RecordedLengths[];
}

/**
 * A model or the bindings of a session against a contract: names, dtypes, ranks, layouts, sizes, profiles, and the contract's numbers against each other;
 * with recorded data, its lengths and states too.
 */
export const contractFindings = (
  contract: Contract,
  model: ModelBindings & { readonly digest?: string | null },
  recorded: Recorded | null = null,
): readonly ContractFinding[] => [
  ...compareBindings(contract, model, recorded?.header ?? null),
  ...checkDimensions(contract, model, recorded?.header ?? null),
  ...checkEngineProfiles(contract, model),
  ...checkOwnNumbers(contract),
  ...(recorded === null ? [] : checkWeights(recorded.header, model.digest ?? null)),
  ...(recorded === null ? [] : checkData(contract, recorded.lengths, model)),
];

/**
 * Everything that can be known before anything runs: reads the contract, the bindings of the model or engine, and the lengths of the reference where one
 * is passed. Throws what reading any of them throws; contradictions are findings, not errors.
 */
export async function checkContract(
  request: { readonly file: string; readonly contract: string; readonly reference?: string },
  context: ModelContext = {},
): Promise<ContractCheck> {
  const contract = readContract(request.contract);
  throwIfCancelled(context.signal, `checking ${request.file}`);
  const model = await readModelBindings(request.file, {
    ...context,
    digest: request.reference !== undefined,
  });
  const recorded =
    request.reference === undefined ? null : await readRecorded(contract, request.reference, context.signal);
  const findings = contractFindings(contract, model, recorded);
  const { name, origin, cacheLengthRule, schedule } = contract;
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
      cacheLengthRule === null || schedule === null
        ? []
        : [...simulateLengths(cacheLengthRule, scheduled(schedule, PREDICTED))],
    chunks: recorded?.lengths.length ?? null,
  };
}

async function readRecorded(contract: Contract, path: string, signal?: AbortSignal): Promise<Recorded> {
  using reference = openReference(path);
  return { header: reference.header, lengths: await recordedLengths(contract, reference, signal) };
}
