import type { NativeEngineTensor } from '../../../addon/native-engine.js';
import { TrtforgeError } from '../../../errors.js';
import { dtypeFromTensorrt } from '../../../formats/tensor/dtype.js';
import type { BindingRange, EngineBinding } from './engine-interface.js';

/** `TensorFormat::kLINEAR`: row-major, which is what tensors here are. */
const LINEAR = 0;

export interface EngineBindings {
  readonly inputs: readonly EngineBinding[];
  readonly outputs: readonly EngineBinding[];
}

/** The inputs and outputs of an engine in our words. Throws TF_SESSION_BINDING for a type or memory layout that cannot cross. */
export function engineBindings(
  planPath: string,
  tensors: readonly NativeEngineTensor[],
  profiles: number,
): EngineBindings {
  const of = (mode: NativeEngineTensor['mode']) =>
    tensors.filter((tensor) => tensor.mode === mode).map((tensor) => binding(planPath, tensor, profiles));
  return { inputs: of('input'), outputs: of('output') };
}

function binding(planPath: string, tensor: NativeEngineTensor, profiles: number): EngineBinding {
  const { name, mode, location, shape, format } = tensor;
  const dtype = dtypeFromTensorrt(tensor.dtype);
  if (dtype === undefined)
    throw unusable(planPath, tensor, `has the type ${tensor.dtype} of TensorRT, which is unknown`);
  if (format !== LINEAR) {
    throw unusable(
      planPath,
      tensor,
      `has the memory layout ${format} of TensorRT; only linear ones can cross`,
    );
  }
  const hostValues = mode === 'input' && location === 'host';
  // Where the library reports no profile, a fixed shape is its own range; values are then unbounded.
  const fixed = hostValues ? undefined : { min: shape, opt: shape, max: shape };
  return {
    name,
    dtype,
    shape: shape.map((dimension) => (dimension < 0 ? null : dimension)),
    hostValues,
    profiles: mode === 'output' ? [] : rangesOf(tensor, profiles, fixed),
  };
}

function rangesOf(
  tensor: NativeEngineTensor,
  profiles: number,
  fixed: BindingRange | undefined,
): readonly BindingRange[] {
  const ranges = Array.from({ length: Math.max(1, profiles) }, (_, at) => tensor.profiles[at] ?? fixed);
  return ranges.filter((range) => range !== undefined);
}

const unusable = (planPath: string, { mode, name }: NativeEngineTensor, why: string): TrtforgeError =>
  new TrtforgeError('TF_SESSION_BINDING', `The ${mode} ${name} of ${planPath} ${why}.`, {
    remedy: 'Build the engine with linear inputs and outputs of plain types.',
  });
