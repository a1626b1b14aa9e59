import type { Profile } from '../../../engines/profiles/profile.js';
import { inDtype } from '../../../engines/run/inputs.js';
import type { StoredEngine } from '../../../engines/store/store.js';
import { type Dtype, elementCount, packedBytes } from '../../../formats/tensor/dtype.js';
import type { NamedTensors, Tensor } from '../../../formats/tensor/tensor.js';
import {
  floatTensor,
  type IntegerDtype,
  integerTensor,
  isIntegerDtype,
} from '../../../formats/tensor/values.js';
import { inTypesOf, madeInputs } from '../../../quality/known-answer/made-inputs.js';
import { dataTypes, type ModelConfig } from '../model-config.js';
import type { EngineTensor, ServedModel } from './served-model.js';

/** A part of the configuration, and the tensors it names: raw little-endian, without a header, by path below the model. */
interface WithFiles<T> {
  readonly config: readonly T[];
  readonly files: ReadonlyMap<string, Uint8Array>;
}
type WarmUp = NonNullable<ModelConfig['model_warmup']>[number];
type State = NonNullable<NonNullable<ModelConfig['sequence_batching']>['state']>[number];

/** A plan below its version, by the GPUs it was built for. */
export const planFile = ({ passport }: StoredEngine): string =>
  `sm_${passport.identity.document.target.computeCapabilities.join('_')}.plan`;

/** The dimensions that a configuration has: without the batch, -1 where they are open. */
export const dimsOf = ({ maxBatch }: ServedModel, { shape }: EngineTensor): readonly number[] =>
  shape!.slice(maxBatch > 0 ? 1 : 0).map((size) => size ?? -1);

/** A tensor's name as a file's; names of ONNX have slashes. */
const fileName = (name: string, at: number): string =>
  /^\w[\w.-]{0,100}$/.test(name) ? name : `${at}_${name.replace(/[^\w.-]/g, '_').slice(0, 100)}`;

/** One for each profile, at its usual shapes and its smallest batch: inputs of the known answer, whose integers are valid indices, else zeros. */
export function warmUps(model: ServedModel): WithFiles<WarmUp> {
  const { inputs, maxBatch, profiles, states } = model;
  const files = new Map<string, Uint8Array>();
  // The request of a warm-up belongs to no sequence.
  if (states.length > 0) return { config: [], files };
  const own = profiles[0]!.length === 0 ? [{}] : profiles[0]!;
  const config = own.flatMap((profile: Profile, at): readonly WarmUp[] => {
    const batch = maxBatch === 0 ? 1 : Math.max(1, ...Object.values(profile).map(({ min }) => min[0]!));
    const shapeOf = ({ name, shape }: EngineTensor) => {
      const usual = shape!.map((size, axis) => size ?? profile[name]!.opt[axis]!);
      return maxBatch > 0 ? [batch, ...usual.slice(1)] : usual;
    };
    // Which GPU will load the model is not known: every engine must take the same.
    const isTaken = inputs.every((input) =>
      profiles.every((each) => {
        const range = each[at]?.[input.name];
        const isWithin = (size: number, axis: number) =>
          range!.min[axis]! <= size && size <= range!.max[axis]!;
        return range === undefined || range.values || shapeOf(input).every(isWithin);
      }),
    );
    if (batch > Math.max(1, maxBatch) || !isTaken) return [];
    const known = knownInputs(model, at);
    const entries = inputs.map((input, index) => {
      const dims = maxBatch > 0 ? shapeOf(input).slice(1) : shapeOf(input);
      const typed = { data_type: dataTypes[input.dtype]!, dims: dims.length === 0 ? [1] : dims };
      const range = profile[input.name];
      const bytes = range?.values
        ? integerTensor(input.dtype as IntegerDtype, dims, range.opt).bytes
        : oneRow(known.get(input.name), dims);
      const file = `profile_${at}_${fileName(input.name, index)}`;
      if (bytes !== undefined) files.set(`warmup/${file}`, bytes);
      return [
        input.name,
        { ...typed, ...(bytes === undefined ? { zero_data: true } : { input_data_file: file }) },
      ];
    });
    return [{ name: `profile ${at}`, batch_size: batch, inputs: Object.fromEntries(entries) }];
  });
  return { config, files };
}

/** The inputs of the known answer's first case of a profile, which has the usual shapes. */
function knownInputs({ plans, inputs, profiles }: ServedModel, profile: number): NamedTensors {
  const { knownAnswer } = plans[0]!.engine.passport;
  const own = profiles[0]!.length === 0 ? null : profile;
  const found = knownAnswer?.cases.find((each) => each.profile === own);
  if (knownAnswer === undefined || found === undefined) return new Map();
  return inTypesOf(
    inputs.map((input) => ({ ...input, dtype: input.dtype as Dtype })),
    madeInputs(knownAnswer, found.inputs),
  );
}

/** The first row: all requests of a warm-up have the same. Undefined where it has another shape. */
function oneRow(tensor: Tensor | undefined, dims: readonly number[]): Uint8Array | undefined {
  if (tensor?.shape.slice(tensor.shape.length - dims.length).join() !== dims.join()) return undefined;
  return tensor.bytes.subarray(0, packedBytes(tensor.dtype, elementCount(dims)));
}

/** States as Triton keeps them between the requests of a sequence. */
export function initialStates(model: ServedModel): WithFiles<State> {
  const files = new Map<string, Uint8Array>();
  const config = model.states.map(({ input, output, initial }, at): State => {
    const dims = dimsOf(model, input);
    // Where the batch is another axis, the smallest shape is that of one sequence.
    const least = model.profiles[0]?.[0]?.[input.name]?.min.slice(-dims.length) ?? [];
    const first = dims.map((size, axis) => (size === -1 ? Math.max(1, least[axis] ?? 1) : size));
    const typed = { data_type: dataTypes[input.dtype]! };
    const file = fileName(input.name, at);
    if (initial !== 0) files.set(`initial_state/${file}`, filled(input.dtype as Dtype, first, initial));
    const data = initial === 0 ? { zero_data: true } : { data_file: file };
    const initialState = { name: `${input.name} at the start`, ...typed, dims: first, ...data };
    return {
      input_name: input.name,
      output_name: output.name,
      ...typed,
      dims,
      initial_state: [initialState],
    };
  });
  return { config, files };
}

function filled(dtype: Dtype, shape: readonly number[], value: number): Uint8Array {
  const values = new Float32Array(elementCount(shape)).fill(value);
  if (isIntegerDtype(dtype)) return integerTensor(dtype, shape, values).bytes;
  if (dtype === 'bool') return new Uint8Array(values.length).fill(1);
  return inDtype({ name: 'state', dtype, shape }, floatTensor('float32', shape, values), 'the contract')
    .bytes;
}
