import { digestModel } from '../../../engines/identity/model-digest.js';
import { type Passport, readPassport } from '../../../engines/identity/passport.js';
import { axesOf } from '../../../engines/profiles/profile.js';
import { chooseBackEnd, openSession } from '../../../engines/runtime/open-session.js';
import type { EngineLoadOptions } from '../../../engines/runtime/tensorrt/options.js';
import { TrtforgeError } from '../../../errors.js';
import type { WorkContext } from '../../../events.js';
import { editModel } from '../../../formats/onnx/model.js';
import type { ValueFacts } from '../../../formats/onnx/model-facts.js';
import { interfaceOf } from '../../../formats/onnx/values.js';
import { type Dtype, dtypes } from '../../../formats/tensor/dtype.js';
import type { ModelBinding, ModelBindings } from '../contract/bindings.js';

/** The bindings of a model or an engine, known without running it. */
export interface KnownModel extends ModelBindings {
  readonly path: string;
  readonly kind: 'model' | 'engine';
  /** Digest of the model's content, weights included; of an engine, that of the model it was built from. null where it was not requested or is not known. */
  readonly digest: string | null;
}

/** The options of an engine are for one that must be loaded. */
export interface ModelContext extends EngineLoadOptions, WorkContext {
  /** Which of the visible GPUs; default 0. */
  readonly device?: number;
  /** Whether the digest is needed; it reads every weight. Default false. */
  readonly digest?: boolean;
}

/**
 * Bindings of an ONNX model from its graph, of an engine from its passport; an engine without one is loaded, which needs a GPU. Throws what opening
 * throws, among them TF_GPU_UNAVAILABLE.
 */
export async function readModelBindings(path: string, context: ModelContext = {}): Promise<KnownModel> {
  const { takes } = chooseBackEnd(path, context);
  return takes === 'engine' ? ofEngine(path, context) : ofModel(path, context);
}

async function ofModel(path: string, context: ModelContext): Promise<KnownModel> {
  return editModel(path, async (model) => {
    const binding = ({ name, dtype, shape }: ValueFacts): ModelBinding => ({
      name,
      dtype: knownDtype(dtype),
      shape,
    });
    const declared = interfaceOf(model.proto);
    const [inputs, outputs] = [declared.inputs.map(binding), declared.outputs.map(binding)];
    // Last: the digest changes the messages it reads.
    const digest = context.digest === true ? (await digestModel(model, context)).digest : null;
    return { path, kind: 'model', inputs, outputs, digest };
  });
}

async function ofEngine(path: string, context: ModelContext): Promise<KnownModel> {
  const passport = passportOf(path, context.identity);
  if (passport !== null) return fromPassport(path, passport);
  const session = await openSession(path, context, context);
  try {
    return { path, kind: 'engine', inputs: session.inputs, outputs: session.outputs, digest: null };
  } finally {
    await session.close();
  }
}

function passportOf(path: string, identity: string | undefined): Passport | null {
  try {
    return readPassport(path, identity);
  } catch (error) {
    if (error instanceof TrtforgeError && error.code === 'TF_PASSPORT_MISSING') return null;
    throw error;
  }
}

function fromPassport(path: string, passport: Passport): KnownModel {
  const { model, recipe } = passport.identity.document;
  const { inputs, outputs } = axesOf(passport);
  const binding = ({ name, dtype, shape }: (typeof inputs)[number]): ModelBinding => ({
    name,
    dtype: knownDtype(dtype),
    shape,
    profiles: recipe.profiles.flatMap((profile) => {
      const range = profile[name];
      return range === undefined || range.values ? [] : [{ min: range.min, max: range.max }];
    }),
  });
  return {
    path,
    kind: 'engine',
    inputs: inputs.map(binding),
    outputs: outputs.map(binding),
    digest: model,
  };
}

const knownDtype = (name: string | null): Dtype | null =>
  name !== null && Object.hasOwn(dtypes, name) ? (name as Dtype) : null;
