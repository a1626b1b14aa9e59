import type { Binding } from '../../../engines/runtime/session.js';
import { TrtforgeError } from '../../../errors.js';
import type { Contract, StatePair } from '../../../formats/contract/contract.js';
import { magnitudesOf } from '../../../formats/tensor/compare/pair-sums.js';
import { dtypes } from '../../../formats/tensor/dtype.js';
import type { VerifyPrecision } from '../../../quality/verify/result.js';
import { type AskedTolerance, limitsFor, probabilitiesOf } from '../../../quality/verify/tolerance.js';
import { CHECKLIST_TOLERANCE } from '../compare/drift.js';
import type { OutputLimits, PassRule } from '../compare/tensor-parity.js';
import type { ParityMode, ParityRequest } from './options.js';

/** The resolved work on every chunk. */
export interface StreamPlan {
  readonly mode: ParityMode;
  readonly rule: PassRule;
  readonly contract: Contract;
  /** Of the candidate. */
  readonly inputs: readonly Binding[];
  readonly outputs: readonly Binding[];
  /** For messages. */
  readonly reference: string;
  readonly limitsOf: (tensor: string) => OutputLimits;
  readonly dump: { readonly folder: string; readonly limit: number } | null;
}

/** The usual tolerance of streams in FP32, over which the order of sums adds up. State gets no more by default: a wide tolerance hides what is wrong. */
const usualTolerance = { absolute: CHECKLIST_TOLERANCE, relative: 1e-3 };

const DUMP_LIMIT = 5;

/** Throws TF_USAGE for a tolerance of an output that is not there. */
export function streamPlan(
  request: ParityRequest,
  contract: Contract,
  session: { readonly inputs: readonly Binding[]; readonly outputs: readonly Binding[] },
): StreamPlan {
  const { mode, reference, rule = 'tensor', dump, dumpLimit = DUMP_LIMIT } = request;
  checkTolerances(request, [...session.outputs, ...contract.outputs]);
  const known = new Map<string, OutputLimits>();
  return {
    mode,
    rule,
    contract,
    inputs: session.inputs,
    outputs: session.outputs,
    reference,
    limitsOf: (tensor) => {
      const limits = known.get(tensor) ?? outputLimits(tensor, contract, request);
      known.set(tensor, limits);
      return limits;
    },
    dump: dump === undefined ? null : { folder: dump, limit: dumpLimit },
  };
}

/** A typing error would leave an output with the usual tolerance. */
function checkTolerances(
  { candidate, atol = [], rtol = [] }: ParityRequest,
  outputs: readonly { readonly name: string }[],
): void {
  const names = new Set(outputs.map(({ name }) => name));
  const wrong = [...atol, ...rtol].find(({ name }) => name !== null && !names.has(name));
  if (wrong === undefined) return;
  throw new TrtforgeError('TF_USAGE', `${candidate} has no output ${wrong.name} for a tolerance.`, {
    remedy: `Its outputs are ${[...names].join(', ')}.`,
  });
}

/** The request goes before the contract, the tensor's own before that for all, and both before the precision. */
function outputLimits(
  tensor: string,
  contract: Contract,
  { atol, rtol, precision = 'fp32' }: ParityRequest,
): OutputLimits {
  const ofContract =
    contract.tolerances.findLast((each) => each.tensor === tensor) ??
    contract.tolerances.findLast((each) => each.tensor === null);
  const requestedAbsolute = requested(tensor, atol);
  const requestedRelative = requested(tensor, rtol);
  const absolute = requestedAbsolute ?? ofContract?.absolute ?? null;
  const relative = requestedRelative ?? ofContract?.relative ?? null;
  if (absolute === null && relative === null && precision !== 'fp32') return limitsBySize(tensor, precision);
  const why =
    requestedAbsolute !== undefined || requestedRelative !== undefined
      ? 'as requested'
      : absolute !== null || relative !== null
        ? 'from the contract'
        : 'the usual tolerance of streaming engines';
  return {
    absolute: absolute ?? usualTolerance.absolute,
    relative: relative ?? usualTolerance.relative,
    why,
  };
}

/** The limits of `verify` for one sample, relative to the size of the chunk or of all so far, and for all so far together. */
function limitsBySize(tensor: string, precision: VerifyPrecision): OutputLimits {
  let [squares, errors, count, most] = [0, 0, 0, 0];
  return (reference, { dtype, shape }) => {
    const own = magnitudesOf(reference);
    const elements = reference.length;
    [squares, count, most] = [squares + own.rms ** 2 * elements, count + elements, Math.max(most, own.peak)];
    const soFar = Math.sqrt(squares / count);
    const rms = Math.max(own.rms, soFar);
    const shares = probabilitiesOf(reference, shape.at(-1) ?? 1, own);
    const { tolerance, usual } = limitsFor(tensor, { precision, dtype, shares }, rms, { atol: [], rtol: [] });
    if (usual === null) return { tolerance, rms: null };
    const together = usual.rms(count, soFar, 'whole');
    const alone = usual.rms(elements, rms, 'whole', true);
    return {
      tolerance: { ...tolerance, absolute: usual.max(most) },
      rms: (error) => {
        errors += error ** 2 * elements;
        const all = Math.sqrt(errors / count);
        return all > together ? { measured: all, limit: together } : { measured: error, limit: alone };
      },
    };
  };
}

const requested = (tensor: string, all: readonly AskedTolerance[] = []): number | undefined =>
  (all.findLast(({ name }) => name === tensor) ?? all.findLast(({ name }) => name === null))?.value;

/** Pairs of the contract that the candidate has, both sides. */
export const fedBackPairs = ({
  contract,
  inputs,
  outputs,
}: Pick<StreamPlan, 'contract' | 'inputs' | 'outputs'>): readonly StatePair[] =>
  contract.state.filter(
    ({ input, output }) =>
      inputs.some(({ name }) => name === input) && outputs.some(({ name }) => name === output),
  );

/** The output that drift is about: the contract's first floating-point result, else the first such output that is not fed back. */
export function mainOutput({ contract, outputs }: Pick<StreamPlan, 'contract' | 'outputs'>): string | null {
  const floats = outputs.filter(({ dtype }) => dtypes[dtype].kind === 'float').map(({ name }) => name);
  const results = contract.outputs.filter(({ role }) => role === 'result').map(({ name }) => name);
  const fedBack = new Set(contract.state.map(({ output }) => output));
  return results.find((name) => floats.includes(name)) ?? floats.find((name) => !fedBack.has(name)) ?? null;
}
