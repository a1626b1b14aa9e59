import type { Profile } from '../../../engines/profiles/profile.js';
import { inDtype } from '../../../engines/run/inputs.js';
import { type Dtype, elementCount, packedBytes } from '../../../formats/tensor/dtype.js';
import type { NamedTensors } from '../../../formats/tensor/tensor.js';
import {
  floatTensor,
  type IntegerDtype,
  integerTensor,
  isIntegerDtype,
} from '../../../formats/tensor/values.js';
import { inTypesOf, madeInputs } from '../../../quality/known-answer/made-inputs.js';
import { dataTypes, type ModelConfig } from '../model-config.js';
import { dimsOf } from './config.js';
import type { EngineTensor, ServedModel, ServedState } from './served-model.js';

/** A part of the configuration, and the files it refers to: raw little-endian tensors, without a header, by path below the model. */
interface WithFiles<T> {
  readonly config: readonly T[];
  readonly files: ReadonlyMap<string, Uint8Array>;
}
type WarmUp = NonNullable<ModelConfig['model_warmup']>[number];
type State = NonNullable<NonNullable<ModelConfig['sequence_batching']>['state']>[number];

/** A tensor's name as a file's; names of ONNX have slashes. */
const fileName = (name: string, at: number): string =>
  /^\w[\w.-]{0,100}$/.test(name) ? name : `${at}_${name.replace(/[^\w.-]/g, '_').slice(0, 100)}`;

/** One for each profile, with the known answer's inputs where there is one, else zeros: at the usual shape, and the smallest batch that the profile takes. */
export function warmUps(model: ServedModel): WithFiles<WarmUp> {
  const files = new Map<string, Uint8Array>();
  const [first = []] = model.profiles;
  const config = (first.length === 0 ? [null] : first).flatMap((profile, at): readonly WarmUp[] => {
    const batch =
      model.maxBatch === 0 ? 1 : Math.max(1, ...Object.values(profile ?? {}).map(({ min }) => min[0]!));
    const shapes = shapesOf(model, profile, batch);
    if (batch > Math.max(1, model.maxBatch) || !fitsEverywhere(model, shapes)) return [];
    const known = knownInputs(model, profile === null ? null : at);
    const inputs = model.inputs.map((input, index): [string, NonNullable<WarmUp['inputs']>[string]] => {
      const range = profile?.[input.name];
      const shape = shapes.get(input.name)!;
      const dims = model.maxBatch > 0 ? shape.slice(1) : shape;
      // As `reshape` has it.
      const typed = { data_type: dataTypes[input.dtype]!, dims: dims.length === 0 ? [1] : dims };
      const bytes = range?.values
        ? integerTensor(input.dtype as IntegerDtype, shape, range.opt).bytes
        : oneRequest(input, known, dims);
      if (bytes === undefined) return [input.name, { ...typed, zero_data: true }];
      const file = `profile_${at}_${fileName(input.name, index)}`;
      files.set(`warmup/${file}`, bytes);
      return [input.name, { ...typed, input_data_file: file }];
    });
    return [{ name: `profile ${at}`, batch_size: batch, inputs: Object.fromEntries(inputs) }];
  });
  return model.states.length > 0 ? { config: [], files: new Map() } : { config, files };
}

/** The usual shapes of a profile, with that many rows. */
const shapesOf = (
  { inputs, maxBatch }: ServedModel,
  profile: Profile | null,
  batch: number,
): ReadonlyMap<string, readonly number[]> =>
  new Map(
    inputs.map(({ name, shape }) => {
      const range = profile?.[name];
      const usual = shape!.map((size, axis) => size ?? range?.opt[axis] ?? 1);
      return [name, maxBatch > 0 ? [batch, ...usual.slice(1)] : usual];
    }),
  );

/** Whether each engine has a profile for them: which GPU will load the model is not known. */
const fitsEverywhere = ({ profiles }: ServedModel, shapes: ReadonlyMap<string, readonly number[]>): boolean =>
  profiles.every(
    (own) =>
      own.length === 0 ||
      own.some((profile) =>
        Object.entries(profile).every(
          ([name, { min, max, values }]) =>
            values ||
            (shapes.get(name) ?? []).every((size, axis) => min[axis]! <= size && size <= max[axis]!),
        ),
      ),
  );

/** The inputs of the known answer's first case of a profile, whose shapes are the usual ones. */
function knownInputs({ answer, inputs }: ServedModel, profile: number | null): NamedTensors {
  const of = answer?.cases.find((each) => each.profile === profile);
  if (answer === undefined || of === undefined) return new Map();
  const own = new Set(inputs.map(({ name }) => name));
  const made = madeInputs(
    answer,
    of.inputs.filter(({ name }) => own.has(name)),
  );
  return inTypesOf(
    inputs.map((input) => ({ ...input, dtype: input.dtype as Dtype })),
    made,
  );
}

/** The first row of a known input; each request of a warm-up has the same. Undefined where it has another shape. */
function oneRequest(
  { name, dtype }: EngineTensor,
  known: NamedTensors,
  dims: readonly number[],
): Uint8Array | undefined {
  const tensor = known.get(name);
  if (tensor === undefined) return undefined;
  const bytes = packedBytes(dtype as Dtype, elementCount(dims));
  const rest = tensor.shape.slice(tensor.shape.length - dims.length);
  return rest.join() === dims.join() ? tensor.bytes.subarray(0, bytes) : undefined;
}

/** States as Triton keeps them between the requests of a sequence. */
export function initialStates(model: ServedModel): WithFiles<State> {
  const files = new Map<string, Uint8Array>();
  const config = model.states.map((state, at) => {
    const { input, output, initial } = state;
    const dims = dimsOf(model, input);
    const typed = { data_type: dataTypes[input.dtype]! };
    // The first axis of a profile's smallest shape is one sequence, where the batch is another axis.
    const { min = [] } = model.profiles[0]?.[0]?.[input.name] ?? {};
    const skipped = input.shape!.length - dims.length;
    const first = dims.map((size, axis) => (size === -1 ? Math.max(1, min[axis + skipped] ?? 1) : size));
    const file = fileName(input.name, at);
    if (initial !== 0) files.set(`initial_state/${file}`, filled(state, first));
    return {
      input_name: input.name,
      output_name: output.name,
      ...typed,
      dims,
      initial_state: [
        {
          name: `${input.name} at the start`,
          ...typed,
          dims: first,
          ...(initial === 0 ? { zero_data: true } : { data_file: file }),
        },
      ],
    };
  });
  return { config, files };
}

function filled({ input, initial }: ServedState, dims: readonly number[]): Uint8Array {
  const dtype = input.dtype as Dtype;
  const values = new Float32Array(elementCount(dims)).fill(initial);
  if (isIntegerDtype(dtype)) return integerTensor(dtype, dims, values).bytes;
  if (dtype === 'bool') return new Uint8Array(values.length).fill(1);
  return inDtype({ ...input, dtype }, floatTensor('float32', dims, values), 'the contract').bytes;
}
