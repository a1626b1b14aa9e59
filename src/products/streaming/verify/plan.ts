import * as is from '../../../base/options/kinds.js';
import { allBut, needed, type OptionsOf, optional } from '../../../base/options/option.js';
import { splitAtCommas } from '../../../base/options/readers.js';
import { openOptions } from '../../../engines/runtime/back-end.js';
import type { Binding } from '../../../engines/runtime/session.js';
import { TrtforgeError } from '../../../errors.js';
import type { Contract, StatePair } from '../../../formats/contract/contract.js';
import { magnitudesOf } from '../../../formats/tensor/compare/pair-sums.js';
import { dtypes } from '../../../formats/tensor/dtype.js';
import { minAgreementOption } from '../../../quality/tasks/decisions.js';
import { verifyOptions } from '../../../quality/verify/options.js';
import type { VerifyPrecision } from '../../../quality/verify/result.js';
import {
  type AskedTolerance,
  limitsFor,
  probabilitiesOf,
  toleranceOptions,
} from '../../../quality/verify/tolerance.js';
import { CHECKLIST_TOLERANCE, type DriftPolicy } from '../compare/drift.js';
import { type OutputLimits, type PassRule, passRules } from '../compare/tensor-parity.js';

export const parityModes = ['functional', 'closed-loop'] as const;
/** `functional`: every chunk begins with the recorded state. `closed-loop`: only the first one; later ones with the state that the candidate left. */
export type ParityMode = (typeof parityModes)[number];

/** The stream, and what is compared over it. */
export const streamOptions = {
  /** A reference, as `openReference` reads it. */
  reference: needed(is.text, {
    flags: '--reference <place>',
    describe: 'recorded stream to run, as JSON lines',
    required: '--reference REFERENCE',
  }),
  mode: needed(is.words(...parityModes), {
    flags: '--mode <mode>',
    describe: 'state of each chunk: functional, as recorded; closed-loop, as the candidate left it',
    default: 'closed-loop',
  }),
  /** null: one is drafted from the candidate's inputs and outputs. */
  contract: needed(is.either(is.object<Contract>(), is.only(null))),
  /** Default `tensor`. */
  rule: optional(is.words(...passRules), {
    flags: '--rule <rule>',
    advanced: true,
    describe:
      'tensor: largest error within atol, or largest relative error within rtol; allclose: every element within atol + rtol * |reference|',
    default: 'tensor',
  }),
  /** null: every chunk has to be within its tolerance, and the drift decides nothing. What is not in it is as the tolerance of the main output has it. */
  policy: optional(is.either(is.object<Partial<DriftPolicy>>(), is.only(null)), {
    flags: '--drift <limits>',
    describe:
      'limits of the main output over the stream: max=1e-3,pass-rate=0.8,mean=2e-4,slope=1e-6 (these by default, as many times wider as its tolerance), p95=5e-4,latency=21 (ms); off: every chunk has to be within its tolerance',
    parse: parsePolicy,
  }),
  /** The `model_meta.json` of a bundle whose predictor and joint network decode the outputs of both. */
  decoder: optional(is.text, {
    flags: '--decoder <meta>',
    describe:
      'model_meta.json of a bundle whose predictor and joint network decode both encoder outputs; tokens and durations must be the same',
  }),
  /** The output that is decided by: what `decoder` decodes (default: the main one), or class scores. */
  taskOutput: optional(is.text, {
    flags: '--task-output <name>',
    advanced: true,
    describe:
      'output of the task: what --decoder decodes (default: the main one); alone: class scores whose largest along the last axis must agree',
  }),
  /** The share of its decisions that must be the same; default 0.99. */
  minAgreement: minAgreementOption,
  /** Chunks to run; default all. */
  limit: optional(is.whole(1), {
    flags: '--chunks <count>',
    describe: 'how many chunks of the reference to run (default: all)',
  }),
  /** Folder for failing chunks. */
  dump: optional(is.text, {
    flags: '--dump <folder>',
    describe: 'folder for failing chunks as npz, with inputs, got_ and ref_ outputs',
    writes: true,
  }),
  /** How many of them at most. */
  dumpLimit: optional(is.whole(0, 100_000), {
    flags: '--dump-limit <count>',
    advanced: true,
    describe: 'how many failing chunks to write',
    default: 5,
  }),
};

/** What is timed, and the limits of each tensor. */
export const limitOptions = {
  /** Batch sizes to time after the stream, on engines. */
  batches: optional(is.list<number>(), {
    flags: '--batches <sizes>',
    advanced: true,
    describe: 'engines: also time batches 1,2,4,8 and changes between profiles',
    parse: (list: string) => splitAtCommas(list).map(is.whole(1, 65_536).parse),
    repeat: true,
    make: (lists: readonly (readonly number[])[]): readonly number[] => lists.flat(),
  }),
  /** Whose limits apply where none were requested; default: that of the candidate's file. */
  precision: verifyOptions.precision,
  atol: toleranceOptions.atol,
  rtol: {
    ...toleranceOptions.rtol,
    describe: 'relative tolerance, likewise; --rule decides how the two count',
  },
};

/** A comparison with a reference: candidate, method and place. Plain data: it crosses to the process that runs the engine. */
export const parityOptions = {
  /** An ONNX model or an engine. */
  candidate: needed(is.text),
  ...streamOptions,
  ...limitOptions,
  /** Whether to time the engine on the GPU's clock after the stream; default true. */
  gpuTimes: optional(is.flag),
  ...allBut(openOptions, 'profile'),
};

export interface ParityRequest extends OptionsOf<typeof parityOptions> {}

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

const LIMITS = {
  max: 'max',
  'pass-rate': 'passRate',
  p95: 'p95',
  mean: 'mean',
  slope: 'slope',
  latency: 'latencyMs',
} as const;

/** Reads `max=5e-4,slope=off`, or `off`; limits that are not named stay the usual ones. */
function parsePolicy(limits: string): Partial<DriftPolicy> | null {
  if (limits === 'off') return null;
  const policy: { -readonly [K in keyof DriftPolicy]?: DriftPolicy[K] } = {};
  for (const part of splitAtCommas(limits)) {
    const [name = '', value = ''] = part.split('=');
    const key = LIMITS[name as keyof typeof LIMITS];
    const limit = value === 'off' ? null : Number(value);
    if (
      key === undefined ||
      value.trim() === '' ||
      (limit !== null && !(limit >= 0 && limit <= (key === 'passRate' ? 1 : Number.MAX_VALUE)))
    ) {
      throw new TrtforgeError('TF_USAGE', `"${part}" is not a limit of the drift.`, {
        remedy: `Write ${Object.keys(LIMITS).join(', ')} with a number (of pass-rate a share from 0 to 1) or off: max=5e-4,slope=off; or off alone.`,
      });
    }
    policy[key] = limit;
  }
  return policy;
}
