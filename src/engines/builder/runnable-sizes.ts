import { totalmem } from 'node:os';
import { shapeText } from '../../base/options/readers.js';
import { throwIfCancelled } from '../../base/process/cancel.js';
import { formatBytes, formatCount, formatMs } from '../../base/text/quantity.js';
import { shellQuote } from '../../base/text/shell-line.js';
import { TrtforgeError } from '../../errors.js';
import { inPhase } from '../../events.js';
import { fixedSizes } from '../../formats/onnx/lint/fixed-sizes.js';
import { type OnnxModel, viewModel } from '../../formats/onnx/model.js';
import { isPlaceholder } from '../../formats/onnx/open-dimensions.js';
import { totalFlops } from '../../formats/onnx/shapes/cost.js';
import { inferShapes } from '../../formats/onnx/shapes/infer.js';
import { isNumber } from '../../formats/onnx/shapes/size.js';
import { type IntegerDtype, integerTensor } from '../../formats/tensor/tensor.js';
import type { Passport } from '../identity/passport.js';
import { type Profile, type ProfileEnd, profileEnds } from '../profiles/profile.js';
import type { SizeRange } from '../profiles/sizes.js';
import { planInputs, sampleOf } from '../run/drawn-inputs.js';
import { declaredOtherwise } from '../run/guessed-run.js';
import { openSession } from '../runtime/open-session.js';
import type { Session } from '../runtime/session.js';
import type { BuildOutcome, BuildSeams, ResolvedBuild } from './options.js';

/** Of one size; more takes a minute on a small machine. */
const MOST_FLOPS = 1e12;
/** Of this machine's memory, for the weights and the inner tensors of one size. */
const MEMORY_SHARE = 0.5;
const MOST_MS = 60_000;
/** Tried where no size of a profile runs. */
const USUAL_SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

type Ran = NonNullable<Passport['built']['sizes']>;
type Sizes = Pick<ProfileEnd, 'profile' | 'shapes' | 'values'>;
/** Neither: it runs. */
type Attempt = { readonly fault?: string; readonly skipped?: string };

/** One open dimension: every place of one name, the first axes without a name, or another axis of one input. */
interface Dimension {
  /** Its name, or as `inspect` names what has none: `x[0]`. */
  readonly label: string;
  readonly isNamed: boolean;
  /** Whether it is the only first axis. */
  readonly isBatch: boolean;
  readonly places: readonly { readonly input: string; readonly axis: number }[];
  readonly range: SizeRange;
}

/**
 * Runs the model on ONNX Runtime at every end of its profiles, and at batch 2 where the smallest is 1, which is stretched to anything. What cannot be run, for want of
 * ONNX Runtime, an operator, memory or time, is listed and reported as a warning. Undefined without profiles. Throws TF_PROFILE_INVALID for a size that does not run,
 * or at which an output has another size than it declares, with the sizes that do; TF_CANCELLED.
 */
export async function runSizes(
  build: ResolvedBuild,
  { emit, signal, areSizesKnown = false }: BuildSeams,
): Promise<Ran | undefined> {
  if (areSizesKnown || build.identity.recipe.profiles.length === 0) return undefined;
  return inPhase('sizes', emit, async () => {
    const found = await viewModel(build.modelPath, (model) => new SizeRuns(build, model, signal).go());
    throwIfCancelled(signal, `running the sizes of ${build.modelPath}`);
    const skipped = found.skipped.map(({ sizes, reason }) => `${sizes} (${reason})`).join('; ');
    const message = `Sizes that were not run before the build: ${skipped}.`;
    if (skipped !== '') emit?.({ type: 'log', source: 'trtforge', severity: 'warning', message });
    return found;
  });
}

class SizeRuns {
  readonly #build: ResolvedBuild;
  readonly #model: OnnxModel;
  readonly #profiles: readonly Profile[];
  readonly #signal: AbortSignal;
  #session: Promise<Session> | undefined;

  constructor(build: ResolvedBuild, model: OnnxModel, signal = new AbortController().signal) {
    this.#build = build;
    this.#model = model;
    this.#profiles = build.identity.recipe.profiles;
    this.#signal = AbortSignal.any([signal, AbortSignal.timeout(MOST_MS)]);
  }

  async go(): Promise<Ran> {
    const ran: Sizes[] = [];
    const skipped: Ran['skipped'] = [];
    const faults: { readonly sizes: Sizes; readonly fault: string }[] = [];
    const skip = (sizes: Sizes, reason: string) => skipped.push({ sizes: sizesText(sizes), reason });
    const add = (sizes: Sizes, { fault, skipped: reason }: Attempt) => {
      if (fault !== undefined) faults.push({ sizes, fault });
      else if (reason !== undefined) skip(sizes, reason);
      else ran.push(sizes);
    };
    try {
      for (const end of profileEnds(this.#profiles, this.#build.content.inputs)) {
        const batch = this.#dimensions(end.profile).find(({ isBatch }) => isBatch);
        const large = this.#tooLarge(end);
        add(end, large === undefined ? await this.#attempt(end) : { skipped: large });
        const { min, opt, max } = batch?.range ?? { min: 0, opt: 0, max: 0 };
        const isPair = end.end === 'min' && min === 1 && opt !== 2 && max > 2;
        const other = isPair ? 2 : large === undefined || end.end === 'min' ? undefined : min;
        if (batch === undefined || other === undefined) continue;
        const sizes = withSize(end, batch, other);
        if (this.#tooLarge(sizes) === undefined) add(sizes, await this.#attempt(sizes));
      }
      for (const { sizes, fault } of faults) {
        const known = ran.find(({ profile }) => profile === sizes.profile) ?? (await this.#anySize(sizes));
        if (known !== undefined) throw await this.#explained(sizes, known, fault);
        skip(sizes, 'ONNX Runtime ran the model at no size');
      }
      return { ran: ran.map(sizesText), skipped };
    } finally {
      await (await this.#session?.catch(() => undefined))?.close();
    }
  }

  #dimensions(profile: number): readonly Dimension[] {
    return dimensionsOf(this.#build, this.#profiles[profile]!);
  }

  #tooLarge({ shapes, values }: Sizes): string | undefined {
    const { cost } = inferShapes(this.#model, shapes, new Map(), values);
    const flops = totalFlops(cost);
    if (isNumber(flops) && flops > MOST_FLOPS) return `${formatCount(flops)} FLOPs`;
    const [peak] = cost.peaks ?? [];
    const bytes = this.#build.content.weightBytes + (isNumber(peak?.bytes) ? peak.bytes : 0);
    return bytes > MEMORY_SHARE * totalmem() ? formatBytes(bytes) : undefined;
  }

  /** One run; drawn values may be what the model does not take, so zeros are tried as well. */
  async #attempt({ shapes, values }: Sizes): Promise<Attempt> {
    const { modelPath } = this.#build;
    let fault: string | undefined;
    try {
      this.#session ??= openSession(modelPath, {}, { signal: this.#signal });
      const session = await this.#session;
      const plan = planInputs(this.#model, session.inputs, { shapes });
      for (const sample of [0, 'zeros'] as const) {
        const inputs = new Map(sampleOf(plan, 0, sample));
        for (const [name, listed] of values) {
          const { dtype, shape } = inputs.get(name)!;
          inputs.set(name, integerTensor(dtype as IntegerDtype, shape, listed));
        }
        const outputs = await session.run(inputs, { signal: this.#signal }).catch((error: unknown) => {
          if (!(error instanceof TrtforgeError) || error.code !== 'TF_ONNXRUNTIME_FAILED') throw error;
          fault ??= faultIn(error);
        });
        if (outputs) return { fault: declaredOtherwise(modelPath, session, inputs, outputs) };
      }
      return { fault };
    } catch (error) {
      if (!(error instanceof TrtforgeError)) throw error;
      // Messages of the library may name files, and passports travel.
      return { skipped: SKIPPED[error.code] ?? `ONNX Runtime ended with ${error.code}` };
    }
  }

  async #runs(sizes: Sizes): Promise<boolean> {
    if (this.#tooLarge(sizes) !== undefined) return false;
    const { fault, skipped } = await this.#attempt(sizes);
    return fault === undefined && skipped === undefined;
  }

  /** Sizes that run where no end of a profile does: what the graph has stored, then usual ones, one dimension after the other. */
  async #anySize(sizes: Sizes): Promise<Sizes | undefined> {
    const dimensions = this.#dimensions(sizes.profile);
    const stored = fixedSizes(this.#model, inferShapes(this.#model)).reduce((all, { symbol, most }) => {
      const dimension = dimensions.find(({ label }) => label === symbol);
      return dimension === undefined ? all : withSize(all, dimension, most);
    }, sizes);
    const usual = dimensions.flatMap((each) => USUAL_SIZES.map((size) => withSize(sizes, each, size)));
    for (const tried of [stored, ...usual]) if (await this.#runs(tried)) return tried;
    return undefined;
  }

  /** The error of sizes beside others that run: the dimensions that it is, and from where to where they run. */
  async #explained(sizes: Sizes, known: Sizes, fault: string): Promise<TrtforgeError> {
    const dimensions: (Dimension & { readonly size: number; readonly runs: SizeRange })[] = [];
    for (const dimension of this.#dimensions(sizes.profile)) {
      const size = sizeIn(sizes, dimension);
      const good = sizeIn(known, dimension);
      const runs = size === good ? dimension.range : await this.#runnable(known, dimension, size);
      dimensions.push({ ...dimension, size, runs });
    }
    const wrong = dimensions.filter(({ size, runs }) => size < runs.min || size > runs.max);
    const what = wrong.map(({ label, size }) => `${label} = ${size}`).join(' and ') || sizesText(sizes);
    const works = wrong.map(({ label, runs: { min, max } }) =>
      min === max ? `${label} = ${min} only` : `${label} from ${min} to ${max}`,
    );
    const options = dimensions.map(optionOf);
    const isNamed = wrong.length > 0 && this.#profiles.length === 1 && !options.includes(null);
    return new TrtforgeError(
      'TF_PROFILE_INVALID',
      `${this.#build.modelPath} does not run with ${what}: ${fault.replace(/\.?$/, '.')} It runs with ${works.join(' and ') || sizesText(known)}.`,
      {
        remedy: `Pass ${isNamed ? options.join(' ') : `--profile ${shellQuote(sizesText(known))}`}. Other sizes need an export with that axis dynamic.`,
        details: { reason: fault, dimensions: wrong },
      },
    );
  }

  /** From where to where a dimension runs, around a known size of it; `other` is one that may not. */
  async #runnable(known: Sizes, dimension: Dimension, other: number): Promise<SizeRange> {
    const good = sizeIn(known, dimension);
    const edge = async (last: number): Promise<number> => {
      let [runs, fails] = [good, last];
      if (last === good || (await this.#runs(withSize(known, dimension, last)))) return last;
      while (Math.abs(runs - fails) > 1) {
        const middle = Math.trunc((runs + fails) / 2);
        if (await this.#runs(withSize(known, dimension, middle))) runs = middle;
        else fails = middle;
      }
      return runs;
    };
    const { range } = dimension;
    const min = await edge(Math.min(good, other < good ? other : range.min));
    const max = await edge(Math.max(good, other > good ? other : range.max));
    return { min, opt: Math.max(min, Math.min(max, range.opt)), max };
  }
}

const SKIPPED: Readonly<Record<string, string>> = {
  TF_ONNXRUNTIME_MISSING: 'ONNX Runtime is not installed',
  TF_ONNXRUNTIME_FAILED: 'ONNX Runtime does not take the model',
  TF_CANCELLED: `all sizes together take more than ${formatMs(MOST_MS)}`,
};

/** The node that ONNX Runtime names, and why, without places in its source. */
function faultIn({ message, cause }: TrtforgeError): string {
  const text = (cause instanceof Error ? cause.message : message).trim();
  const [, op, name, why = ''] =
    /while running (\S+) node\. Name:'([^']*)' Status Message: (.*)/s.exec(text) ?? [];
  return op === undefined
    ? text
    : `${op}${name && ` "${name}"`}: ${why.replace(/^\S*\.(?:h|cc):\d+ (?:.*\) )?/, '')}`;
}

/** As --profile takes it. */
const sizesText = ({ shapes, values }: Sizes): string =>
  [
    ...[...shapes].map(([name, dims]) => shapeText(name, dims)),
    ...[...values].map(([name, listed]) => `${name}=${listed.join('x')}`),
  ].join(',');

const sizeIn = ({ shapes }: Sizes, { places: [place] }: Dimension): number =>
  shapes.get(place!.input)![place!.axis]!;

function withSize<S extends Sizes>(sizes: S, { places }: Dimension, size: number): S {
  const shapes = new Map(sizes.shapes);
  for (const { input, axis } of places) shapes.set(input, shapes.get(input)!.with(axis, size));
  return { ...sizes, shapes };
}

function dimensionsOf({ content }: ResolvedBuild, profile: Profile): readonly Dimension[] {
  const found = new Map<string, Omit<Dimension, 'isBatch'>>();
  for (const { name: input, shape } of content.inputs)
    for (const [axis, size] of (shape ?? []).entries()) {
      const ranges = profile[input];
      if (typeof size === 'number' || ranges === undefined || ranges.values) continue;
      const isNamed = size !== null && !isPlaceholder(size);
      const label = isNamed ? size : `${input}[${axis}]`;
      const range = { min: ranges.min[axis]!, opt: ranges.opt[axis]!, max: ranges.max[axis]! };
      const key = !isNamed && axis === 0 ? rangeText(range) : label;
      const { places = [] } = found.get(key) ?? {};
      found.set(key, { label, isNamed, range, places: [...places, { input, axis }] });
    }
  const isFirst = ({ places }: Pick<Dimension, 'places'>) => places.some(({ axis }) => axis === 0);
  const isOnly = [...found.values()].filter(isFirst).length === 1;
  return [...found.values()].map((each) => ({ ...each, isBatch: isOnly && isFirst(each) }));
}

const rangeText = ({ min, opt, max }: SizeRange): string => `${min}/${opt}/${max}`;

/** The option that sets a dimension on the command line; null where it has no name. */
function optionOf({ isBatch, isNamed, label, runs }: Dimension & { readonly runs: SizeRange }) {
  if (isBatch) return `--batch ${rangeText(runs)}`;
  return isNamed ? `--dim ${shellQuote(`${label}=${rangeText(runs)}`)}` : null;
}

/** TensorRT's messages when the shapes of a profile cannot pass through the graph: in an error, or only in a warning of a build that passes. */
const IMPOSSIBLE =
  /reshape changes volume|reshape would change volume|reshape wildcard -1 has no integer solution|Reshape dimension of -1 has no solution|reshaping failed for tensor|violate shape constraints|values are not self-consistent/i;

/** The outcome of a build; TF_PROFILE_INVALID where the builder reports that the sizes of the profiles cannot pass through the graph. */
export async function withPossibleSizes(
  { modelPath, identity }: ResolvedBuild,
  build: () => Promise<BuildOutcome>,
): Promise<BuildOutcome> {
  const check = (lines: readonly string[]) => {
    const line = lines.flatMap((text) => text.split('\n')).find((text) => IMPOSSIBLE.test(text));
    if (line === undefined || identity.recipe.profiles.length === 0) return;
    throw new TrtforgeError(
      'TF_PROFILE_INVALID',
      `A profile cannot pass through the graph of ${modelPath}. The builder reports: ${line.trim()}`,
      {
        remedy: `Pass sizes that the graph takes: \`trtforge inspect ${shellQuote(modelPath)}\` names those that are stored in it.`,
        details: { line },
      },
    );
  };
  try {
    const outcome = await build();
    check(outcome.warnings);
    return outcome;
  } catch (error) {
    if (error instanceof TrtforgeError && error.code === 'TF_BUILD_FAILED') check([error.message]);
    throw error;
  }
}
