import { join } from 'node:path';
import { removeIfAllowed } from '../../../base/files/files.js';
import { makeScratch } from '../../../base/files/folders.js';
import { throwIfCancelled } from '../../../base/process/cancel.js';
import { isEngineFile } from '../../../engines/plan/header.js';
import { TrtforgeError } from '../../../errors.js';
import { type FormatId, quantizedFormatNamed } from '../../../formats/precision/formats/index.js';
import { exactly, resolveConversion } from '../../../formats/precision/options.js';
import type { VerifyContext } from '../../../quality/verify/options.js';
import { computesInFp32 } from '../../../quality/verify/precision.js';
import type { VerifyResult } from '../../../quality/verify/result.js';
import { SampleRuns } from '../../../quality/verify/sample-runs.js';
import type { FailedComparison } from '../../../quality/verify/verify.js';
import { adviseLine, bisectLine, convertLine } from '../command-lines.js';
import type { Conversion } from '../conversion.js';
import { withNodeNames } from '../model-nodes.js';
import { conversionOf, decideBisect, typedAs } from './bisect.js';
import { Candidates, candidateTrials } from './candidates.js';
import { searchLevels } from './causes.js';
import { comparing, type Judge } from './judge.js';
import { suspectsOf } from './suspects.js';

/** A search after a failure tries at most this many conversions, and ends after the limit. */
const MOST_TRIALS = 16;
const LIMIT_MS = 15_000;

type Next = NonNullable<VerifyResult['next']>;

const noRepair: Next = {
  passes: false,
  tried: 0,
  keepNodes: [],
  command: null,
  message: 'bisect searches for the smallest change that passes.',
  bisect: null,
};

const DRAWN = 'The samples were drawn: --inputs SAMPLES judges by real ones.';

export interface JudgedFailure extends FailedComparison {
  /** The judge of conversions; default: the same comparison. */
  readonly judge?: Judge['judge'];
}

/**
 * The command line that goes on after a failed comparison: `convert advise` of a quantized candidate and the samples it was judged by, else `bisect`; and, of a
 * model that is converted and compared within seconds, what a search finds until the limit. Undefined where nothing goes on. Throws TF_CANCELLED.
 */
export async function afterFailure(failed: JudgedFailure, context: VerifyContext): Promise<Next | undefined> {
  const isDrawn = !failed.reference.samples.some(({ kind }) => kind === 'data');
  const next = await nextStep(failed, context);
  return next && isDrawn ? { ...next, message: `${next.message} ${DRAWN}`.trim() } : next;
}

async function nextStep(failed: JudgedFailure, context: VerifyContext): Promise<Next | undefined> {
  const { request, reference, candidate, ms } = failed;
  const codes = quantizedFormatNamed(failed.precision)?.id;
  if (codes !== undefined && computesInFp32(request)) {
    const line = adviseLine(request, codes);
    const message = line === null ? '' : 'convert advise chooses the nodes to quantize within a budget.';
    return { ...noRepair, message, bisect: line };
  }
  const { plan, outputs, samples } = reference;
  const conversion = await decided(failed, context);
  if (conversion === null) return undefined;
  const drawn = samples.filter(({ kind }) => kind !== 'edge').length;
  const asked = outputs.length > plan.firstRound ? { ...request, samples: drawn } : request;
  const bisect = bisectLine(asked, conversion);
  const { precision, options } = conversion;
  const isModel = precision !== null && !isEngineFile(request.candidate);
  if (!isModel || ms > LIMIT_MS) return bisect === null ? undefined : { ...noRepair, bisect };
  const typed = { precision, options: typedAs(candidate, options) };
  return { ...(await search(failed, typed, context)), bisect };
}

/** The conversion that `bisect` would make; null where it takes no such candidate, or would judge it by other limits. */
async function decided(
  { request, precision }: FailedComparison,
  context: VerifyContext,
): Promise<Omit<Conversion, 'model'> | null> {
  try {
    const asked = { ...request, output: 'bisect', precision: undefined };
    const isEngine = isEngineFile(request.candidate);
    if (!isEngine && !computesInFp32(request)) return null;
    const found = isEngine ? await decideBisect(asked, context) : conversionOf(asked, null, '');
    if (found.precision !== null) resolveConversion(found.precision, found.options);
    return found.precision === null || found.precision === precision ? found : null;
  } catch (error) {
    if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED') throw error;
    return null;
  }
}

async function search(
  { request, reference, judge }: JudgedFailure,
  { precision, options }: { readonly precision: FormatId } & Pick<Conversion, 'options'>,
  context: VerifyContext,
): Promise<Next> {
  const limit = AbortSignal.timeout(LIMIT_MS);
  const signal = AbortSignal.any([limit, ...(context.signal === undefined ? [] : [context.signal])]);
  const own: VerifyContext = {
    ...context,
    signal,
    emit: (event) => event.type === 'progress' && context.emit?.({ ...event, phase: 'verify' }),
  };
  const work = makeScratch('search');
  const trials = candidateTrials(work, {});
  try {
    const model = await withNodeNames(request.reference, join(work, 'named.onnx'), signal);
    const conversion: Conversion = { model, precision, options };
    const runs = new SampleRuns(request, { ...own, emit: undefined }, reference.plan);
    const same = judge ?? (await comparing(request, precision, runs, reference, own, new Map()));
    const candidates = new Candidates(
      {
        ...{ conversion, judge: { judge: same }, trials, engines: null, work, budget: MOST_TRIALS },
        failing: { outcome: 'fail', reasons: [] },
      },
      own,
    );
    const observed = { reference, samples: reference.outputs.length };
    const found = await searchLevels(candidates, {
      units: () => suspectsOf(model, precision, options, observed, request, own),
      tensors: null,
    });
    const [first] = trials.all.filter(({ outcome }) => outcome === 'pass');
    // The first that passes has every node in FP32: what is the same model repairs nothing.
    const isWhole = found.cause === 'nodes' && (await candidates.trial(found.change))?.model === first?.model;
    const passes = found.outcome === 'pass' && found.isMinimal && !isWhole;
    const hasNames = model === request.reference;
    const headline = isWhole ? 'It passes only with every node in FP32.' : found.headline;
    return {
      ...noRepair,
      passes,
      tried: trials.made,
      keepNodes: passes && hasNames ? found.units.map(({ name }) => exactly(name).source) : [],
      command:
        passes && hasNames && request.conversion === undefined
          ? convertLine(conversion, found.change, request.candidate)
          : null,
      message: [headline, ...found.reasons, `Conversions tried: ${trials.made}.`].join(' '),
    };
  } catch (error) {
    throwIfCancelled(context.signal, 'searching');
    if (!limit.aborted && !(error instanceof TrtforgeError)) throw error;
    const why = limit.aborted ? ` after ${LIMIT_MS / 1000} s.` : `: ${(error as TrtforgeError).message}`;
    return { ...noRepair, tried: trials.all.length, message: `The search for what fails ended${why}` };
  } finally {
    removeIfAllowed(work);
  }
}
