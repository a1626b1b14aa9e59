import type { Profile } from '../../engines/profiles/profile.js';
import type { InputOptions } from '../../engines/run/inputs.js';
import type { BackEnd, PlaceOptions } from '../../engines/runtime/back-end.js';
import type { EngineLoadOptions } from '../../engines/runtime/tensorrt/engine-options.js';
import type { WorkContext } from '../../events.js';
import type { ConversionOptions, JudgingSamples } from '../../formats/precision/options.js';
import type { JudgeRules, SampleInfo } from './judged.js';
import type { OutputSetOptions } from './output-set.js';
import type { VerifyPrecision } from './result.js';
import type { AskedTolerance } from './tolerance.js';

/** Samples of the user, as `readSamples` takes them; `random` among the files adds none. */
export interface SampleData extends JudgingSamples {
  /** Of the engine that runs them: samples that fit in none are left out. Default: all fit. */
  readonly profiles?: readonly Profile[];
}

/** What a verdict is about. */
export interface SamplesFrom {
  /** Each that ran. */
  readonly samples: SampleInfo[];
  /** How many the user's data have; null where all were drawn. */
  readonly available: number | null;
}

/** What `verifyModel` compares and how; place and loading are the candidate's: the reference runs on the CPU. */
export interface VerifyRequest
  extends Pick<InputOptions, 'shapes' | 'ranges'>,
    PlaceOptions,
    EngineLoadOptions {
  /** An ONNX file. */
  readonly reference: string;
  /** An ONNX file or an engine. */
  readonly candidate: string;
  /** What the tolerances are for; default: the lowest precision that the candidate computes in, which of an engine its passport says. */
  readonly precision?: VerifyPrecision;
  /** Samples of the user, which come before any that are drawn; inputs that they lack are drawn. Default: all are drawn. */
  readonly data?: SampleData;
  /** What the candidate is built for: drawn samples are at the optimum of the first, and one at every other end. Shapes that state other sizes go first. Default: those of an engine's passport. */
  readonly profiles?: readonly Profile[];
  /** Default 0. */
  readonly seed?: number;
  /** How many samples: of data the first so many, by default 32 at most; else so many are drawn, by default 3 and more until a verdict is clear. */
  readonly samples?: number;
  readonly atol?: readonly AskedTolerance[];
  readonly rtol?: readonly AskedTolerance[];
  /** How the candidate was converted from the reference, where the caller knows: what repairs a failure is tried on top of it. */
  readonly conversion?: ConversionOptions;
  /** Threads of ONNX Runtime; default one a core. */
  readonly threads?: number;
  /** Whether the result has where in the worst output the error is, for a page. */
  readonly errorMap?: boolean;
}

export interface VerifyContext extends WorkContext {
  /** Default: every back end there is. */
  readonly backEnds?: readonly BackEnd[];
}

/** What `compareOutputs` is asked. */
export interface CompareRequest extends Partial<JudgeRules> {
  /** Files or folders (see `openOutputSet`). */
  readonly candidate: string;
  readonly reference: string;
  readonly candidateRunner?: string;
  readonly referenceRunner?: string;
  /** The reference's name of each output that the candidate calls otherwise: candidate's name to reference's. */
  readonly names?: ReadonlyMap<string, string>;
  /** Only these of the reference's outputs; default all. */
  readonly outputs?: readonly string[];
  /** Compare values of different types; else that breaks the contract. */
  readonly allowDtypeDifference?: boolean;
  readonly voidDtype?: OutputSetOptions['voidDtype'];
  readonly errorMap?: VerifyRequest['errorMap'];
}

export type CompareContext = WorkContext;
