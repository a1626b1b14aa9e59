import { areDrawable } from '../../../engines/identity/passport.js';
import type { Profile } from '../../../engines/profiles/profile.js';
import { inTypesOf } from '../../../engines/run/input-dtype.js';
import type { StoredEngine } from '../../../engines/store/store.js';
import { filledTensor } from '../../../formats/contract/state.js';
import { type Dtype, elementCount, packedBytes } from '../../../formats/tensor/dtype.js';
import {
  type IntegerDtype,
  integerTensor,
  type NamedTensors,
  type Tensor,
} from '../../../formats/tensor/tensor.js';
import { madeInputs, ofEngine } from '../../../quality/known-answer/made-inputs.js';
import { batchesOf, type EngineTensor, isTaken } from '../engine.js';
import { type ConfigState, configTensor, type ModelConfig } from '../model-config.js';
import { refused, type ServedModel } from './served-model.js';

/** Tensors that a configuration names: raw little-endian, without a header, by path below the model. */
export type TensorFiles = Map<string, Uint8Array>;

/** A plan below its version, by the GPUs it was built for. */
export const planFile = ({ passport }: StoredEngine): string =>
  `sm_${passport.identity.document.target.computeCapabilities.join('_')}.plan`;

/** A tensor's name as a file's; names of ONNX have slashes. */
const fileName = (name: string, at: number): string =>
  /^\w[\w.-]{0,100}$/.test(name) ? name : `${at}_${name.replace(/[^\w.-]/g, '_').slice(0, 100)}`;

/** Of the known answer's inputs together; further profiles warm up with zeros. */
const LARGEST_WARM_UP = 2 ** 28;

/** One for each profile, at its usual shapes and its smallest batch: inputs of the known answer, whose integers are valid indices, else zeros. */
export function warmUps(model: ServedModel, files: TensorFiles): NonNullable<ModelConfig['model_warmup']> {
  const { inputs, maxBatch, profiles, states } = model;
  // The request of a warm-up belongs to no sequence.
  if (states.length > 0) return [];
  return profiles[0]!.flatMap((profile, at) => {
    const batch = maxBatch === 0 ? 1 : batchesOf(profile, inputs).min;
    const shapeOf = ({ name, shape }: EngineTensor) => {
      const usual = shape!.map((size, axis) => size ?? profile[name]!.opt[axis]!);
      return maxBatch > 0 ? [batch, ...usual.slice(1)] : usual;
    };
    // Which GPU will load the model is not known: every engine must take the same.
    const takesAll = (each: Profile) => inputs.every((input) => isTaken(each, input, shapeOf(input)));
    if (batch > Math.max(1, maxBatch) || !profiles.every((own) => takesAll(own[at]!))) return [];
    const kept = [...files.values()].reduce((sum, { length }) => sum + length, 0);
    const known: NamedTensors = kept > LARGEST_WARM_UP ? new Map() : knownInputs(model, at);
    const entries = inputs.map((input, index) => {
      const { data_type, dims = [] } = configTensor({ ...input, shape: shapeOf(input) }, maxBatch > 0);
      const range = profile[input.name];
      const bytes = range?.values
        ? integerTensor(input.dtype as IntegerDtype, dims, range.opt).bytes
        : oneRow(known.get(input.name), shapeOf(input).slice(maxBatch > 0 ? 1 : 0));
      const file = `profile_${at}_${fileName(input.name, index)}`;
      if (bytes !== undefined) files.set(`warmup/${file}`, bytes);
      const data = bytes === undefined ? { zero_data: true } : { input_data_file: file };
      return [input.name, { data_type: data_type!, dims, ...data }] as const;
    });
    return [{ name: `profile ${at}`, batch_size: batch, inputs: Object.fromEntries(entries) }];
  });
}

/** The inputs of the known answer's first case of a profile, which has the usual shapes. */
function knownInputs({ plans, inputs }: ServedModel, profile: number): NamedTensors {
  const { knownAnswer: passed } = plans[0]!.engine.passport;
  const knownAnswer = passed && ofEngine(passed, { inputs });
  // Of an engine of fixed shapes the case has no profile.
  const found = knownAnswer?.cases.find((each) => (each.profile ?? 0) === profile);
  if (knownAnswer === undefined || found === undefined) return new Map();
  return inTypesOf(
    inputs.map((input) => ({ ...input, dtype: input.dtype as Dtype })),
    madeInputs(knownAnswer, found.inputs),
    'the known answer',
  );
}

/** The first row: all requests of a warm-up have the same. Undefined where it has another shape. */
function oneRow(tensor: Tensor | undefined, dims: readonly number[]): Uint8Array | undefined {
  if (tensor?.shape.slice(tensor.shape.length - dims.length).join() !== dims.join()) return undefined;
  // A copy: the other rows go.
  return new Uint8Array(tensor.bytes.subarray(0, packedBytes(tensor.dtype, elementCount(dims))));
}

/** States as Triton keeps them between the requests of a sequence. */
export const initialStates = (model: ServedModel, files: TensorFiles): readonly ConfigState[] =>
  model.states.map(({ input, output, initial }, at): ConfigState => {
    const { data_type, dims = [] } = configTensor(input, model.maxBatch > 0);
    // Where the batch is another axis, the smallest shape is that of one sequence.
    const least = model.profiles[0]?.[0]?.[input.name]?.min.slice(-dims.length) ?? [];
    const first = dims.map((size, axis) => (size === -1 ? Math.max(1, least[axis] ?? 1) : size));
    const file = fileName(input.name, at);
    if (initial !== 0) {
      if (!areDrawable([{ dtype: input.dtype, shape: first }]))
        throw refused(`The state ${input.name} has more than 1 GiB at its smallest size.`);
      files.set(`initial_state/${file}`, filledTensor(input.dtype as Dtype, first, initial).bytes);
    }
    const data = initial === 0 ? { zero_data: true } : { data_file: file };
    return {
      input_name: input.name,
      output_name: output.name,
      data_type: data_type!,
      dims,
      initial_state: [{ name: `${input.name} at the start`, data_type: data_type!, dims: first, ...data }],
    };
  });
