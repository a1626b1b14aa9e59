import type { Passport } from '../../../engines/identity/passport.js';
import type { EngineBinding } from '../../../engines/runtime/tensorrt/engine-interface.js';
import { askedBudget, assertStreamed } from '../../../engines/runtime/tensorrt/options.js';
import { TrtforgeError } from '../../../errors.js';
import { type Dtype, dtypes } from '../../../formats/tensor/dtype.js';
import type { TrtexecLog } from '../../../tensorrt/trtexec/log/result.js';
import type { BenchRequest, ShapeRequest } from '../options.js';
import type { BenchSubject } from '../result.js';
import { type ShapeCase, shapeCases } from '../shape-cases.js';

/** One measurement to make: which profile, and the shape of every input. */
export interface TrtexecCall {
  readonly profile: number;
  /** First dimension of the first input that has one; 1 where none has. */
  readonly batch: number;
  readonly shapes: readonly { readonly name: string; readonly shape: readonly number[] }[];
  /** Inputs that the engine leaves open, as `--shapes` takes them: dimensions, or the values of a shape tensor. */
  readonly open: Readonly<Record<string, readonly number[]>>;
}

/** The inputs of an engine as its passport reports them. trtexec itself reports them to nobody before it runs. */
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
      profiles: (ranges.length === 0 ? [undefined] : ranges).map(
        (range) => range ?? { min: fixed, opt: fixed, max: fixed },
      ),
    };
  });
}

function dtypeNamed(dtype: string, name: string): Dtype {
  if (dtype in dtypes) return dtype as Dtype;
  throw new TrtforgeError('TF_SESSION_BINDING', `The input ${name} is ${dtype}, which cannot be filled.`);
}

/**
 * The measurements that a request means. Errors: TF_SESSION_INPUT, TF_PROFILE_MISFIT for shapes that the engine does not take,
 * TF_PASSPORT_MISSING where only the passport could say what was meant.
 */
export function callsOf(
  inputs: readonly EngineBinding[] | null,
  request: ShapeRequest,
  path: string,
): readonly TrtexecCall[] {
  if (inputs === null) return [callWithoutPassport(request, path)];
  return shapeCases(inputs, request).map((shapeCase) => callOf(inputs, shapeCase));
}

function callWithoutPassport(request: ShapeRequest, path: string): TrtexecCall {
  if (request.kind !== 'shapes') {
    throw new TrtforgeError(
      'TF_PASSPORT_MISSING',
      `${path} has no passport, so its profiles are unknown: trtexec does not report them.`,
      {
        remedy:
          'Name the shapes: --shapes x:1x3x224x224; or measure with --with trtforge, which asks the engine.',
      },
    );
  }
  const shapes = [...request.shapes].map(([name, shape]) => ({ name, shape }));
  return { profile: 0, batch: shapes[0]?.shape[0] ?? 1, shapes, open: Object.fromEntries(request.shapes) };
}

/** A case as trtexec gets it: only what the engine leaves open, and the values of shape tensors in place of their shapes. */
function callOf(inputs: readonly EngineBinding[], { profile, batch, shapes }: ShapeCase): TrtexecCall {
  const open = inputs.flatMap(({ name, hostValues, shape }, index) => {
    const chosen = shapes[index];
    if (chosen === undefined || !(hostValues || shape.includes(null))) return [];
    return [[name, chosen.values ?? chosen.shape] as const];
  });
  return {
    profile,
    batch,
    shapes: shapes.map(({ name, shape }) => ({ name, shape })),
    open: Object.fromEntries(open),
  };
}

/** Rejects a budget for weights that are not streamed: trtexec reports nothing at all of it. Throws TF_OPTION_UNSUPPORTED. */
export const assertStreamedByLog = (request: BenchRequest, { engine }: TrtexecLog): void =>
  assertStreamed(`${request.engine} was`, engine.weightLimit !== null, request);

/** Facts on streamed weights from a log; it reports how many can be streamed only where no budget was requested: then all stay on the GPU. */
export function weightFacts(
  request: BenchRequest,
  { engine: { weightLimit: set } }: TrtexecLog,
): Pick<BenchSubject, 'streamableWeightsBytes' | 'weightBudgetBytes' | 'weightBudgetAsked'> {
  const asked = askedBudget(request);
  if (typeof set !== 'number') return asked;
  return 'weightBudgetAsked' in asked
    ? { weightBudgetBytes: set, ...asked }
    : { streamableWeightsBytes: set, weightBudgetBytes: set };
}
