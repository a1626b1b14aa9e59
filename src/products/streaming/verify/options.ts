import * as is from '../../../base/options/kinds.js';
import { allBut, needed, type OptionsOf, optional } from '../../../base/options/option.js';
import { splitAtCommas } from '../../../base/options/readers.js';
import { openOptions } from '../../../engines/runtime/back-end.js';
import { TrtforgeError } from '../../../errors.js';
import type { Contract } from '../../../formats/contract/contract.js';
import { minAgreementOption } from '../../../quality/tasks/agreement.js';
import { verifyOptions } from '../../../quality/verify/options.js';
import { toleranceOptions } from '../../../quality/verify/tolerance.js';
import type { DriftPolicy } from '../compare/drift.js';
import { passRules } from '../compare/tensor-parity.js';

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
