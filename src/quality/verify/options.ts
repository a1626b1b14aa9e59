import * as is from '../../base/options/kinds.js';
import { contextOptions, needed, type OptionsOf, optional } from '../../base/options/option.js';
import { splitAtCommas, splitNames } from '../../base/options/readers.js';
import type { SamplePart } from '../../engines/calibration/sample-source.js';
import type { Profile } from '../../engines/profiles/profile.js';
import { drawOptions } from '../../engines/run/options.js';
import { type BackEnd, openOptions, placeOptions } from '../../engines/runtime/back-end.js';
import { engineOptions } from '../../engines/runtime/tensorrt/options.js';
import { TrtforgeError } from '../../errors.js';
import {
  type ConversionOptions,
  conversionOptions,
  judgingSampleOptions,
} from '../../formats/precision/options.js';
import type { Dtype } from '../../formats/tensor/dtype.js';
import { type AskedCheck, parseCheck } from './checks.js';
import type { SampleInfo } from './judged.js';
import { type VerifyPrecision, verifyPrecisions } from './result.js';
import { toleranceOptions } from './tolerance.js';

/** Samples of the user, as `readSamples` takes them; `random` among the files adds none. */
export const sampleOptions = {
  ...judgingSampleOptions,
  /** Of the engine that runs them: samples that fit in none are left out. Default: all fit. */
  profiles: optional(is.list<Profile>()),
};

export interface SampleData extends OptionsOf<typeof sampleOptions> {
  /** In place of one part the parts of parts that judge, in their order: `forge --heal` divides samples. */
  readonly shares?: readonly (readonly SamplePart[])[] | undefined;
}

/** The samples that a verdict is about. */
export interface SamplesFrom {
  /** Each that ran. */
  readonly samples: SampleInfo[];
  /** Number of samples in the user's data; null where all were drawn. */
  readonly available: number | null;
}

const { shapes, ranges } = drawOptions;

/** Drawn samples: this many, and more up to the second where they do not decide. */
export const DRAWN_FIRST = 3;
export const MOST_DRAWN = 16;
/** Samples of data where no number is passed. They are in memory, with the outputs of both sides. */
export const MOST_DATA = 32;

/** The source of a comparison's inputs, and the differences that it allows. */
export const judgingOptions = {
  /** Default 0. */
  seed: optional(is.whole(0), {
    flags: '--seed <number>',
    group: 'Inputs',
    describe: 'seed of the random inputs (default: 0)',
  }),
  /** Number of samples: the first ones of data, by default 32 at most; else drawn ones, by default 3 and more until a verdict is clear. */
  samples: optional(is.whole(1, 10_000), {
    flags: '--samples <count>',
    group: 'Inputs',
    describe: `how many samples: the first of the data (default: ${MOST_DATA} at most), or drawn ones (default: ${DRAWN_FIRST}, more where they do not decide)`,
  }),
  shapes,
  ranges,
  /** Samples of the user, which come before any that are drawn; inputs that they lack are drawn. Default: all are drawn. */
  data: optional(is.object<SampleData>(sampleOptions)),
  ...toleranceOptions,
  /** Threads of ONNX Runtime; default one a core. */
  threads: {
    ...openOptions.threads,
    advanced: true as const,
    describe: 'threads of ONNX Runtime (default: one a core)',
  },
};

export const verifyOptions = {
  /** An ONNX file. */
  reference: needed(is.text),
  /** An ONNX file or an engine. */
  candidate: needed(is.text),
  /** The precision that the tolerances are for; default: the lowest that the candidate computes in, which for an engine its passport states. */
  precision: optional(is.word<VerifyPrecision>(), {
    flags: '--precision <type>',
    describe: 'whose tolerances to use (default: the lowest precision in the candidate)',
    choices: verifyPrecisions,
  }),
  /** Candidate's profiles (default: its passport's). Drawn samples: at the first optimum, one at each other end. Shapes of other sizes go first. */
  profiles: optional(is.list<Profile>()),
  /** The candidate's conversion from the reference, where the caller knows it: what repairs a failure is tried on top of it. */
  conversion: optional(is.object<ConversionOptions>(conversionOptions)),
  /** Whether the result has what a page draws: where in the worst output the error is, and the worst pictures or recordings. */
  errorMap: optional(is.flag),
  ...judgingOptions,
  ...engineOptions,
  ...placeOptions,
};

/** The request of `verifyModel`; place and loading are the candidate's: the reference runs on the CPU. */
export interface VerifyRequest extends OptionsOf<typeof verifyOptions> {}

export const verifyContextOptions = {
  ...contextOptions,
  /** Default: every back end there is. */
  backEnds: optional(is.list<BackEnd>()),
};

export interface VerifyContext extends OptionsOf<typeof verifyContextOptions> {}

/** The options for comparing recorded outputs. */
export const comparingOptions = {
  precision: optional(is.word<VerifyPrecision>(), {
    flags: '--precision <type>',
    describe: 'whose usual limits to use without tolerances and checks',
    choices: verifyPrecisions,
    default: 'fp32',
  }),
  ...toleranceOptions,
  /** Checks instead of the usual limits. */
  checks: optional(is.list<AskedCheck>(), {
    flags: '--check <checks>',
    describe:
      "Polygraphy's checks instead: elemwise, max, mean, median, quantile=0.99 (within --atol or within --rtol, 1e-5 each), l2=1e-5, cosine=0.997, psnr=30, snr=20; several by comma, logits:cosine=0.99 for one output",
    parse: (list) => splitAtCommas(list).map(parseCheck),
    repeat: true,
    make: (lists: readonly (readonly AskedCheck[])[]) => lists.flat(),
  }),
  /** The reference's name of each output that the candidate calls otherwise: candidate's name to reference's. */
  names: optional(is.map<string>(), {
    flags: '--map <a=b>',
    describe: "what A calls a is B's output b",
    parse: parsePair,
    repeat: true,
    make: (pairs: readonly (readonly [string, string])[]) => new Map(pairs),
  }),
  /** Only these of the reference's outputs; default all. */
  outputs: optional(is.list<string>(), {
    flags: '--outputs <names>',
    describe: "only these of B's outputs, separated by commas",
    repeat: true,
    make: (lists: readonly string[]) => (lists.length === 0 ? undefined : lists.flatMap(splitNames)),
  }),
  candidateRunner: optional(is.text, {
    flags: '--runner-a <name>',
    describe: "which runner of A's Polygraphy results",
  }),
  referenceRunner: optional(is.text, {
    flags: '--runner-b <name>',
    describe: "which runner of B's Polygraphy results",
  }),
  voidDtype: optional(is.word<Dtype>(), {
    flags: '--void-type <type>',
    describe: 'what npy elements are whose type numpy has no name for',
    choices: ['bfloat16', 'float8_e4m3fn', 'float8_e5m2'],
  }),
  /** Compare values of different types; else that breaks the contract. */
  allowDtypeDifference: optional(is.flag, {
    flags: '--allow-dtype-difference',
    describe: 'compare the values of outputs whose types differ',
  }),
  /** NaN and infinity fail even where both have the same, as in Polygraphy. */
  strictNonFinite: optional(is.flag, {
    flags: '--strict-non-finite',
    describe: 'NaN and infinity fail even where both have the same, as in Polygraphy',
  }),
  /** Planted errors that the limits accept do not make the verdict inconclusive. */
  allowLoose: optional(is.flag, {
    flags: '--allow-loose',
    describe: 'pass although zeros instead of A would pass as well, or B is one number everywhere',
  }),
};

export const compareOptions = {
  /** Files or folders (see `openOutputSet`). */
  candidate: needed(is.text),
  reference: needed(is.text),
  ...comparingOptions,
  errorMap: verifyOptions.errorMap,
};

/** The request of `compareOutputs`. */
export interface CompareRequest extends OptionsOf<typeof compareOptions> {}

/** Reads `a=b`; the first equals sign separates. */
function parsePair(pair: string): readonly [string, string] {
  const at = pair.indexOf('=');
  if (at <= 0 || at + 1 === pair.length) {
    throw new TrtforgeError('TF_USAGE', `"${pair}" is not a pair of outputs.`, {
      remedy: "Write A's name, an equals sign, B's name: --map y=logits.",
    });
  }
  return [pair.slice(0, at), pair.slice(at + 1)];
}
