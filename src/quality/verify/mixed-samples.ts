import { existsSync } from 'node:fs';
import type { CalibrationSample, SampleFile } from '../../engines/calibration/sample-source.js';
import { passportPath } from '../../engines/identity/engine-name.js';
import { readPassport } from '../../engines/identity/passport.js';
import { isEngineFile } from '../../engines/plan/header.js';
import type { Profile } from '../../engines/profiles/profile.js';
import { type PlannedInput, planInputs, sampleOf } from '../../engines/run/drawn-inputs.js';
import type { Sample } from '../../engines/run/edge-samples.js';
import type { Binding } from '../../engines/runtime/session.js';
import type { ModelLike } from '../../formats/onnx/model.js';
import { elementCount } from '../../formats/tensor/dtype.js';
import type { NamedTensors } from '../../formats/tensor/tensor.js';
import type { SampleInfo } from './judged.js';
import type { VerifyRequest } from './options.js';

/** Few elements decide little: an open batch is guessed as this where that is cheap. */
const GUESSED_BATCH = 8;
const MOST_BATCHED = GUESSED_BATCH * 2 ** 16;
/** Elements of inputs times weights: a large network takes seconds for each of a batch. */
const MOST_PRODUCTS = 2 ** 42;

/** Inputs that are known, and how the others are drawn. */
interface Mixed extends CalibrationSample {
  readonly plan: readonly PlannedInput[];
}

/** A sample, which is made when it is asked for. */
export interface PlannedSample {
  readonly info: SampleInfo;
  readonly files: readonly SampleFile[];
  readonly tensors: () => NamedTensors;
}

/** A sample of the user's. */
export const dataSample = (one: Mixed, seed: number, sample: number): PlannedSample => ({
  info: infoOf(one, 'data', one.origin),
  files: one.files ?? [],
  tensors: () => filled(one, seed, sample),
});

/** A sample that is drawn, but for inputs that are known. */
export function drawnSample(one: Mixed, seed: number, sample: number): PlannedSample {
  const drawn = `drawn with seed ${seed}, sample ${sample}`;
  const origin = one.origin === '' ? drawn : `${one.origin}, else ${drawn}`;
  return { info: infoOf(one, 'drawn', origin), files: [], tensors: () => filled(one, seed, sample) };
}

const infoOf = ({ items }: Mixed, kind: SampleInfo['kind'], origin: string): SampleInfo => ({
  origin,
  kind,
  ...(items !== undefined && { items }),
});

/** The known inputs, and the others as they are drawn for a sample. */
export const filled = ({ plan, inputs }: Mixed, seed: number, sample: Sample): NamedTensors =>
  new Map([...sampleOf(plan, seed, sample), ...inputs]);

/** The user's samples, with how what they lack is drawn. */
export function mixedOf(
  model: ModelLike,
  inputs: readonly Binding[],
  request: VerifyRequest,
  samples: readonly CalibrationSample[],
  attempt: number,
): readonly Mixed[] {
  const plans = new Map<string, readonly PlannedInput[]>();
  return samples.map((sample) => {
    const given = [...sample.inputs].map(([name, { shape }]) => [name, shape] as const);
    const key = JSON.stringify(given);
    const shapes = new Map([...(request.shapes ?? []), ...given]);
    const lacks = ({ name }: { readonly name: string }) => !sample.inputs.has(name);
    const planned = () => planInputs(model, inputs, { ...request, shapes }, attempt >> 1).filter(lacks);
    // Where nothing is drawn, nothing has to be planned.
    const plan = plans.get(key) ?? (inputs.some(lacks) ? planned() : []);
    plans.set(key, plan);
    return { ...sample, plan };
  });
}

const ends = ['opt', 'min', 'max'] as const;
const endNames = { opt: 'optimum', min: 'minimum', max: 'maximum' } as const;

/** The sizes to draw at: as requested or guessed, then every other end of the profiles. Shapes that are requested as they are tuned for state nothing more. */
export function sizesOf(
  model: ModelLike,
  inputs: readonly Binding[],
  request: VerifyRequest,
  attempt: number,
): readonly Mixed[] {
  const isEngine = isEngineFile(request.candidate);
  const profiles = request.profiles ?? (isEngine ? profilesOf(request.candidate) : []);
  const opt = profiles[0] ?? {};
  const isOptimum = ([name, shape]: readonly [string, readonly number[]]) =>
    opt[name]?.values === false && opt[name].opt.join() === shape.join();
  const stated = [...(request.shapes ?? [])].filter((each) => !isOptimum(each));
  const planned = (origin: string, profile: Profile, end: (typeof ends)[number]): Mixed => {
    const ranges = Object.entries(profile);
    const shapes = ranges.flatMap(([name, range]) => (range.values ? [] : [[name, range[end]] as const]));
    const options = { ...request, shapes: new Map([...shapes, ...stated]) };
    const at = (batch?: number) => planInputs(model, inputs, { ...options, batch }, attempt >> 1);
    // Every size is tried with a batch, then without.
    const batched = attempt % 2 === 0 && !isEngine ? at(GUESSED_BATCH) : undefined;
    return { origin, inputs: new Map(), plan: batched && isCheap(model, batched) ? batched : at() };
  };
  const seen = new Set<string>();
  return [
    planned('', opt, 'opt'),
    ...profiles.flatMap((profile, index) =>
      ends.map((end) => planned(`${endNames[end]} of profile ${index}`, profile, end)),
    ),
  ].filter(({ plan }) => {
    const key = JSON.stringify(plan.map(({ shape }) => shape));
    return !seen.has(key) && seen.add(key);
  });
}

/** The profiles that an engine is built for; none where it has no passport. */
const profilesOf = (engine: string): readonly Profile[] =>
  existsSync(passportPath(engine)) ? readPassport(engine).identity.document.recipe.profiles : [];

/** Whether a batch is run in little time, by its inputs and what they meet. */
function isCheap({ proto }: ModelLike, plan: readonly PlannedInput[]): boolean {
  const weights = (proto.graph?.initializer ?? []).reduce(
    (sum, { dims }) => sum + elementCount(dims.map(Number)),
    0,
  );
  const elements = elementsOf(plan);
  return elements <= MOST_BATCHED && elements * weights <= MOST_PRODUCTS;
}

export const elementsOf = (tensors: readonly { readonly shape: readonly number[] }[]) =>
  tensors.reduce((sum, { shape }) => sum + elementCount(shape), 0);
