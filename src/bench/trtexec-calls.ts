import type { Passport } from '../engine/passport-file.js';
import { TrtforgeError } from '../errors.js';
import { chooseProfile } from '../runtime/choose-profile.js';
import { callShapeFrom } from '../runtime/engine-inputs.js';
import type { EngineBinding } from '../runtime/engine-interface.js';
import { type Dtype, dtypes } from '../tensor/dtype.js';
import { integerTensor, isIntegerDtype } from '../tensor/values.js';
import type { ShapeWish } from './request.js';

/** One measurement to make: which profile, and the shape of every input. */
export interface TrtexecCall {
  readonly profile: number;
  /** First dimension of the first input; 1 where it has none. */
  readonly batch: number;
  readonly shapes: readonly { readonly name: string; readonly shape: readonly number[] }[];
  /** Inputs that the engine leaves open, as `--shapes` takes them: dimensions, or the values of a shape tensor. */
  readonly open: Readonly<Record<string, readonly number[]>>;
}

/** The inputs of an engine as its passport tells them. trtexec itself says them to nobody before it runs. */
export function passportBindings({ plan, identity }: Passport): readonly EngineBinding[] {
  const { profiles } = identity.document.recipe;
  return plan.inputs.map(({ name, dtype, shape }): EngineBinding => {
    const dims = shape ?? [];
    const fixed = dims.map((size) => size ?? 0);
    const ranges = profiles.map((profile) => profile[name]);
    return {
      name,
      dtype: dtypeNamed(dtype, name),
      shape: dims,
      hostValues: ranges.some((range) => range?.values === true),
      profiles: profiles.map((_, index) => ranges[index] ?? { min: fixed, opt: fixed, max: fixed }),
    };
  });
}

function dtypeNamed(dtype: string, name: string): Dtype {
  if (dtype in dtypes) return dtype as Dtype;
  throw new TrtforgeError('TF_SESSION_BINDING', `The input ${name} is ${dtype}, which cannot be filled.`);
}

/**
 * The measurements that a wish means. Errors: TF_SESSION_INPUT, TF_PROFILE_MISFIT, TF_SHAPE_INVALID for shapes that the engine does not take,
 * TF_PASSPORT_MISSING where only the passport could say what was meant.
 */
export function callsOf(
  inputs: readonly EngineBinding[] | null,
  wish: ShapeWish,
  path: string,
): readonly TrtexecCall[] {
  if (inputs === null) return [callWithoutPassport(wish, path)];
  switch (wish.kind) {
    case 'optimum':
      return [callOf(inputs, new Map())];
    case 'batches':
      return wish.batches.map((batch) => callOf(inputs, atBatch(inputs, batch)));
    case 'shapes':
      return [callOf(inputs, wish.shapes)];
  }
}

function callWithoutPassport(wish: ShapeWish, path: string): TrtexecCall {
  if (wish.kind !== 'shapes') {
    throw new TrtforgeError(
      'TF_PASSPORT_MISSING',
      `${path} has no passport, so its profiles are not known to whoever only runs trtexec.`,
      {
        remedy:
          'Name the shapes: --shapes x:1x3x224x224; or measure with --with trtforge, which asks the engine.',
      },
    );
  }
  const shapes = [...wish.shapes].map(([name, shape]) => ({ name, shape }));
  return { profile: 0, batch: shapes[0]?.shape[0] ?? 1, shapes, open: Object.fromEntries(wish.shapes) };
}

/** The optimum of the profile that takes the batch, with its open first axis set. */
function atBatch(inputs: readonly EngineBinding[], batch: number): ReadonlyMap<string, readonly number[]> {
  const isOpen = ({ hostValues, shape }: EngineBinding) =>
    !hostValues && shape.length > 0 && shape[0] === null;
  if (!inputs.some(isOpen) && inputs[0]?.shape[0] !== batch) {
    throw new TrtforgeError(
      'TF_SHAPE_INVALID',
      `The engine leaves no batch axis open, so batch ${batch} cannot be measured.`,
    );
  }
  const count = Math.max(1, ...inputs.map(({ profiles }) => profiles.length));
  const takes = (profile: number) =>
    inputs.filter(isOpen).every(({ profiles }) => {
      const range = profiles[profile];
      return range !== undefined && (range.min[0] ?? 0) <= batch && batch <= (range.max[0] ?? 0);
    });
  const profile = Array.from({ length: count }, (_, at) => at).find(takes) ?? 0;
  return new Map(
    inputs
      .filter(isOpen)
      .map((input) => [input.name, [batch, ...(input.profiles[profile]?.opt ?? []).slice(1)]]),
  );
}

function callOf(
  inputs: readonly EngineBinding[],
  asked: ReadonlyMap<string, readonly number[]>,
): TrtexecCall {
  const full = new Map(
    inputs.map(
      (input) => [input.name, asked.get(input.name) ?? input.profiles[0]?.opt ?? fixedShape(input)] as const,
    ),
  );
  for (const name of asked.keys()) if (!full.has(name)) full.set(name, asked.get(name) ?? []);
  const call = callShapeFrom(
    inputs,
    new Map(
      [...full].map(([name, dims]) => {
        const input = inputs.find((each) => each.name === name);
        return [name, input?.hostValues ? valuesTensor(input, dims) : dims] as const;
      }),
    ),
  );
  const profile = chooseProfile(inputs, call);
  const shapes = inputs.map((input, index) => ({ name: input.name, shape: [...(call.dims[index] ?? [])] }));
  const open = inputs.filter(({ hostValues, shape }) => hostValues || shape.some((size) => size === null));
  return {
    profile,
    batch: shapes[0]?.shape[0] ?? 1,
    shapes,
    open: Object.fromEntries(open.map(({ name }) => [name, full.get(name) ?? []])),
  };
}

const fixedShape = ({ shape }: EngineBinding): readonly number[] => shape.map((size) => size ?? 0);

/** Values of a shape tensor, in the shape it has. */
function valuesTensor({ name, dtype, shape }: EngineBinding, values: readonly number[]) {
  if (!isIntegerDtype(dtype))
    throw new TrtforgeError('TF_SESSION_INPUT', `The values of ${name} decide shapes, but it is ${dtype}.`);
  return integerTensor(
    dtype,
    shape.map((size) => size ?? values.length),
    values,
  );
}
