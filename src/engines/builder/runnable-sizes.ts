import { totalmem } from 'node:os';
import { throwIfCancelled } from '../../base/process/cancel.js';
import { shellQuote } from '../../base/process/shell-quote.js';
import { formatBytes, formatCount, formatMs } from '../../base/text/quantity.js';
import { TrtforgeError } from '../../errors.js';
import { inPhase } from '../../events.js';
import { nodeLabel } from '../../formats/onnx/graph.js';
import { fixedSizes } from '../../formats/onnx/lint/fixed-sizes.js';
import { type OnnxModel, viewModel } from '../../formats/onnx/model.js';
import { isPlaceholder } from '../../formats/onnx/open-dimensions.js';
import { totalFlops } from '../../formats/onnx/shapes/cost.js';
import { inferShapes } from '../../formats/onnx/shapes/infer.js';
import { isNumber } from '../../formats/onnx/shapes/size.js';
import { shapeText } from '../../formats/tensor/shape-text.js';
import { type IntegerDtype, integerTensor } from '../../formats/tensor/values.js';
import type { Passport } from '../identity/passport-file.js';
import { type Profile, type ProfileEnd, profileEnds, profileText } from '../profiles/profile.js';
import type { SizeRange } from '../profiles/sizes.js';
import { declaredOtherwise } from '../run/declared-sizes.js';
import { planInputs, sampleOf } from '../run/inputs.js';
import { openSession } from '../runtime/open-session.js';
import type { Session } from '../runtime/session.js';
import type { BuildContext, BuildOutcome, ResolvedBuild } from './build.js';

/** Of one size; more takes a minute on a small machine. */
const MOST_FLOPS = 1e12;
/** Of this machine's memory, for the weights and the inner tensors of one size. */
const MEMORY_SHARE = 0.5;
const MOST_MS = 60_000;
/** Tried where no size of a profile runs. */
const USUAL_SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

type Ran = NonNullable<Passport['built']['sizes']>;
type Sizes = Pick<ProfileEnd, 'shapes' | 'values'>;
type Wanted = Pick<ProfileEnd, 'profile' | keyof Sizes>;

/** One open dimension of a profile: every place of one name, or one axis of one input. */
interface Dimension {
  readonly symbol: string | null;
  /** Whether it is the one first axis. */
  readonly isBatch: boolean;
  readonly places: readonly { readonly input: string; readonly axis: number }[];
  readonly range: SizeRange;
}

/** A dimension with a size that does not run, and the sizes that do. */
interface Culprit {
  readonly dimension: Dimension;
  readonly bad: number;
  readonly runs: SizeRange;
}

/**
 * Runs the model on ONNX Runtime at every end of its profiles, and at batch 2 where the smallest is 1, which is stretched to anything. What cannot be run, for want of
 * ONNX Runtime, an operator, memory or time, is listed and reported as a warning. Undefined without profiles. Throws TF_PROFILE_INVALID for a size that does not run,
 * or at which an output has another size than it declares, with the sizes that do; TF_CANCELLED.
 */
export async function runSizes(
  build: ResolvedBuild,
  { emit, signal }: BuildContext,
): Promise<Ran | undefined> {
  if (build.identity.recipe.profiles.length === 0) return undefined;
  return inPhase('sizes', emit, async () => {
    const found = await viewModel(build.modelPath, (model) => new SizeRuns(build, model, signal).go());
    throwIfCancelled(signal, `running the sizes of ${build.modelPath}`);
    for (const { sizes, reason } of found.skipped)
      emit({
        type: 'log',
        source: 'trtforge',
        severity: 'warning',
        message: `Not run before the build: ${sizes}. ${reason}.`,
      });
    return found;
  });
}

class SizeRuns {
  readonly #build: ResolvedBuild;
  readonly #model: OnnxModel;
  readonly #profiles: readonly Profile[];
  readonly #limit = AbortSignal.timeout(MOST_MS);
  readonly #signal: AbortSignal;
  readonly #skipped: Ran['skipped'] = [];
  #session!: Session;

  constructor(build: ResolvedBuild, model: OnnxModel, signal: AbortSignal | undefined) {
    this.#build = build;
    this.#model = model;
    this.#profiles = build.identity.recipe.profiles;
    this.#signal = AbortSignal.any([signal, this.#limit].flatMap((each) => each ?? []));
  }

  async go(): Promise<Ran> {
    const ran: Wanted[] = [];
    const faults: { readonly wanted: Wanted; readonly fault: string }[] = [];
    try {
      this.#session = await openSession(this.#build.modelPath, {}, { signal: this.#signal });
    } catch (error) {
      this.#skip('every size', error);
      return { ran: [], skipped: this.#skipped };
    }
    await using _ = this.#session;
    for (const wanted of this.#wanted())
      try {
        const fault = await this.#faultAt(wanted);
        if (fault === undefined) ran.push(wanted);
        else faults.push({ wanted, fault });
      } catch (error) {
        this.#skip(sizesText(wanted), error);
      }
    for (const { wanted, fault } of faults) {
      const known = ran.find(({ profile }) => profile === wanted.profile) ?? (await this.#anySize(wanted));
      if (known !== undefined) throw await this.#explained(wanted, known, fault);
      this.#skipped.push({ sizes: sizesText(wanted), reason: 'ONNX Runtime ran the model at no size' });
    }
    return { ran: ran.map(sizesText), skipped: this.#skipped };
  }

  /** Messages of the library may name files, and passports travel. */
  #skip(sizes: string, error: unknown): void {
    if (!(error instanceof TrtforgeError)) throw error;
    const reasons: Record<string, string> = {
      TF_ONNXRUNTIME_MISSING: 'ONNX Runtime is not installed',
      TF_ONNXRUNTIME_FAILED: 'ONNX Runtime does not take the model',
      TF_CANCELLED: `The sizes take longer than ${formatMs(MOST_MS)}`,
    };
    this.#skipped.push({ sizes, reason: reasons[error.code] ?? `ONNX Runtime ended with ${error.code}` });
  }

  /** What is small enough of the ends, and batch 2. Of an end that is too large the smallest batch is taken. */
  #wanted(): readonly Wanted[] {
    const ends = profileEnds(this.#profiles, this.#build.content.inputs);
    const batches = this.#profiles.map((each) =>
      dimensionsOf(this.#build, each).find(({ isBatch }) => isBatch),
    );
    const fitting = ends.flatMap((end): Wanted[] => {
      const large = this.#tooLarge(end);
      if (large === undefined) return [end];
      this.#skipped.push({ sizes: sizesText(end), reason: large });
      const batch = batches[end.profile];
      const smaller = batch && withSize(end, batch, batch.range.min);
      return smaller === undefined || this.#tooLarge(smaller) !== undefined ? [] : [smaller];
    });
    const pairs = ends.flatMap((end): Wanted[] => {
      const batch = batches[end.profile];
      return end.end === 'min' && batch?.range.min === 1 && batch.range.max > 2 && batch.range.opt !== 2
        ? [withSize(end, batch, 2)]
        : [];
    });
    return [...fitting, ...pairs];
  }

  #tooLarge({ shapes, values }: Sizes): string | undefined {
    const { cost } = inferShapes(this.#model, shapes, new Map(), values);
    const flops = totalFlops(cost);
    if (isNumber(flops) && flops > MOST_FLOPS) return `It takes ${formatCount(flops)} FLOPs`;
    const [peak] = cost.peaks ?? [];
    const bytes = this.#build.content.weightBytes + (isNumber(peak?.bytes) ? peak.bytes : 0);
    return bytes > MEMORY_SHARE * totalmem() ? `It takes ${formatBytes(bytes)}` : undefined;
  }

  /** Why the model does not run so; undefined where it does. Drawn values may be what it does not take, so zeros are tried as well. */
  async #faultAt({ shapes, values }: Sizes): Promise<string | undefined> {
    const plan = planInputs(this.#model, this.#session.inputs, { shapes });
    let fault: string | undefined;
    for (const sample of [0, 'zeros'] as const) {
      const inputs = new Map(sampleOf(plan, 0, sample));
      for (const [name, listed] of values) {
        const { dtype, shape } = inputs.get(name)!;
        inputs.set(name, integerTensor(dtype as IntegerDtype, shape, listed));
      }
      try {
        const outputs = await this.#session.run(inputs, { signal: this.#signal });
        return declaredOtherwise(this.#build.modelPath, this.#session, inputs, outputs);
      } catch (error) {
        if (!(error instanceof TrtforgeError) || error.code !== 'TF_ONNXRUNTIME_FAILED') throw error;
        fault ??= this.#reasonIn(error);
      }
    }
    return fault;
  }

  /** The node that ONNX Runtime names, and why. */
  #reasonIn({ message, cause }: TrtforgeError): string {
    const text = (cause instanceof Error ? cause.message : message).trim();
    const { op, name, why } =
      /while running (?<op>\S+) node\. Name:'(?<name>[^']*)' Status Message: (?<why>.*)/s.exec(text)
        ?.groups ?? {};
    if (op === undefined) return text;
    const [node, ...others] = this.#model.proto.graph!.node.filter(({ opType }) => opType === op);
    const label = name === '' ? (node && others.length === 0 ? nodeLabel(node) : op) : `${op} "${name}"`;
    return `${label}: ${why!.trim().replace(/^\S*\.(?:h|cc):\d+ (?:.*\) )?/, '')}`;
  }

  /** While there is time. */
  async #runs(sizes: Sizes): Promise<boolean> {
    try {
      if (this.#signal.aborted || this.#tooLarge(sizes) !== undefined) return false;
      return (await this.#faultAt(sizes)) === undefined;
    } catch (error) {
      if (error instanceof TrtforgeError) return false;
      throw error;
    }
  }

  /** Sizes that run where no end of a profile does: what the graph has stored, then usual ones, one dimension after the other. */
  async #anySize(wanted: Wanted): Promise<Wanted | undefined> {
    const dimensions = dimensionsOf(this.#build, this.#profiles[wanted.profile]!);
    const fixed = fixedSizes(this.#model, inferShapes(this.#model));
    const stored = fixed.reduce((sizes, { symbol, most }) => {
      const dimension = dimensions.find((each) => each.symbol === symbol);
      return dimension === undefined ? sizes : withSize(sizes, dimension, most);
    }, wanted);
    if (await this.#runs(stored)) return stored;
    for (const dimension of dimensions)
      for (const size of USUAL_SIZES) {
        const other = withSize(wanted, dimension, size);
        if (await this.#runs(other)) return other;
      }
    return undefined;
  }

  /** The error of a size beside one that runs: the dimensions that it is, and from where to where they run. */
  async #explained(wanted: Wanted, known: Wanted, fault: string): Promise<TrtforgeError> {
    const profile = this.#profiles[wanted.profile]!;
    const found: Culprit[] = [];
    for (const dimension of dimensionsOf(this.#build, profile)) {
      const [bad, good] = [sizeIn(wanted, dimension), sizeIn(known, dimension)];
      if (bad !== good) found.push({ dimension, bad, runs: await this.#runnable(known, dimension, bad) });
    }
    const culprits = found.filter(({ bad, runs }) => bad < runs.min || bad > runs.max);
    const [model, isAlone] = [this.#build.modelPath, culprits.length > 0];
    const what = isAlone ? culprits.map(badText).join(' and ') : sizesText(wanted);
    const runs = isAlone
      ? culprits.map(runsText).join(' and ')
      : `${sizesText(known)} alone, as far as is known`;
    const whole = `--profile ${shellQuote(profileText(isAlone ? narrowed(profile, culprits) : fixedProfile(known)))}`;
    const options = culprits.map(optionOf);
    const named = isAlone && !options.includes(null) ? `${options.join(' ')}, or as whole shapes ` : '';
    return new TrtforgeError(
      'TF_PROFILE_INVALID',
      `${model} does not run with ${what}: ${fault.replace(/\.?$/, '.')} It runs with ${runs}.`,
      {
        remedy: `Pass ${named}${whole}; other sizes need an export with that axis dynamic.`,
        details: {
          reason: fault,
          dimensions: culprits.map(({ dimension: { places }, bad, runs }) => ({ places, size: bad, runs })),
        },
      },
    );
  }

  /** From where to where a dimension runs, around a known size of it; `bad` is one that may not. */
  async #runnable(known: Wanted, dimension: Dimension, bad: number): Promise<SizeRange> {
    const good = sizeIn(known, dimension);
    const at = (size: number) => this.#runs(withSize(known, dimension, size));
    const edge = async (last: number): Promise<number> => {
      if (last === good || (await at(last))) return last;
      let [runs, fails] = [good, last];
      while (Math.abs(runs - fails) > 1) {
        const middle = Math.trunc((runs + fails) / 2);
        if (await at(middle)) runs = middle;
        else fails = middle;
      }
      return runs;
    };
    const min = await edge(Math.min(good, bad < good ? bad : dimension.range.min));
    const max = await edge(Math.max(good, bad > good ? bad : dimension.range.max));
    return { min, opt: Math.max(min, Math.min(max, dimension.range.opt)), max };
  }
}

const sizesText = ({ shapes, values }: Sizes): string =>
  [...shapes, ...values].map(([name, sizes]) => shapeText(name, sizes)).join(',');

const sizeIn = ({ shapes }: Sizes, { places: [place] }: Dimension): number =>
  shapes.get(place!.input)![place!.axis]!;

const withSize = <S extends Sizes>(sizes: S, { places }: Dimension, size: number): S => {
  const shapes = new Map(sizes.shapes);
  for (const { input, axis } of places) shapes.set(input, shapes.get(input)!.with(axis, size));
  return { ...sizes, shapes };
};

/** First axes without a name are one batch. */
function dimensionsOf({ content }: ResolvedBuild, profile: Profile): readonly Dimension[] {
  const found = new Map<
    string,
    { symbol: string | null; places: Dimension['places'][number][]; range: SizeRange }
  >();
  for (const { name, shape } of content.inputs)
    for (const [axis, size] of (shape ?? []).entries()) {
      const ranges = profile[name];
      if (typeof size === 'number' || ranges === undefined || ranges.values) continue;
      const symbol = size === null || isPlaceholder(size) ? null : size;
      const range = { min: ranges.min[axis]!, opt: ranges.opt[axis]!, max: ranges.max[axis]! };
      const key = symbol ?? (axis === 0 ? JSON.stringify(range) : `${axis} ${name}`);
      const known = found.get(key) ?? { symbol, places: [], range };
      found.set(key, { ...known, places: [...known.places, { input: name, axis }] });
    }
  const isFirst = ({ places }: Pick<Dimension, 'places'>) => places.some(({ axis }) => axis === 0);
  const isOnly = [...found.values()].filter(isFirst).length === 1;
  return [...found.values()].map((each) => ({ ...each, isBatch: isOnly && isFirst(each) }));
}

const rangeText = ({ min, opt, max }: SizeRange): string => `${min}/${opt}/${max}`;

const badText = ({ dimension: { places, symbol }, bad }: Culprit): string =>
  `${places.map(({ input, axis }) => `axis ${axis}${symbol === null ? '' : ` ("${symbol}")`} of input "${input}"`).join(' and ')} = ${bad}`;

const runsText = ({ dimension: { places, symbol }, runs: { min, max } }: Culprit): string =>
  `${symbol ?? `axis ${places[0]!.axis}`} ${min === max ? `${min} only` : `from ${min} to ${max}`}`;

/** What sets a dimension on the command line; null where it has no name. */
function optionOf({ dimension: { isBatch, symbol }, runs }: Culprit): string | null {
  if (isBatch) return `--batch ${rangeText(runs)}`;
  return symbol === null ? null : `--dim ${shellQuote(`${symbol}=${rangeText(runs)}`)}`;
}

/** The profile with the sizes of the dimensions that run. */
function narrowed(profile: Profile, culprits: readonly Culprit[]): Profile {
  const whole = { ...profile };
  for (const { dimension, runs } of culprits)
    for (const { input, axis } of dimension.places) {
      const { min, opt, max, values } = whole[input]!;
      whole[input] = {
        min: min.with(axis, runs.min),
        opt: opt.with(axis, runs.opt),
        max: max.with(axis, runs.max),
        values,
      };
    }
  return whole;
}

const fixedProfile = ({ shapes, values }: Sizes): Profile =>
  Object.fromEntries(
    [...shapes, ...values].map(([name, sizes]) => {
      const fixed = [...sizes];
      return [name, { min: fixed, opt: fixed, max: fixed, values: values.has(name) }];
    }),
  );

/** What TensorRT prints when the shapes of a profile cannot pass through the graph: in an error, or only in a warning of a build that passes. */
const IMPOSSIBLE =
  /reshape changes volume|reshape would change volume|reshape wildcard -1 has no integer solution|Reshape dimension of -1 has no solution|reshaping failed for tensor|violate shape constraints|values are not self-consistent/i;

/** The first such line, or undefined. */
export const impossibleLine = (lines: readonly string[]): string | undefined =>
  lines.flatMap((line) => line.split('\n')).find((line) => IMPOSSIBLE.test(line));

/** What `work` builds; TF_PROFILE_INVALID where the builder reports that the sizes of the profiles cannot pass through the graph. */
export async function withPossibleSizes(
  { modelPath, identity }: ResolvedBuild,
  work: () => Promise<BuildOutcome>,
): Promise<BuildOutcome> {
  const check = (lines: readonly string[]) => {
    const line = impossibleLine(lines);
    if (line === undefined || identity.recipe.profiles.length === 0) return;
    const node = /\bI\w*Layer (?<node>[^\s:]+):/.exec(line)?.groups?.node ?? null;
    const message = `A profile cannot pass through the graph of ${modelPath}${node === null ? '' : ` at the node "${node}"`}. The builder reports: ${line.trim()}`;
    const remedy =
      'Pass sizes that the graph takes (trtforge inspect names those that are fixed), or export again with that axis dynamic.';
    throw new TrtforgeError('TF_PROFILE_INVALID', message, { remedy, details: { node, line } });
  };
  try {
    const outcome = await work();
    check(outcome.warnings);
    return outcome;
  } catch (error) {
    if (error instanceof TrtforgeError && error.code === 'TF_BUILD_FAILED') check([error.message]);
    throw error;
  }
}
