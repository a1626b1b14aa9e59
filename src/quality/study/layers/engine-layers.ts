import { join } from 'node:path';
import { digestModelFile } from '../../../engines/identity/model-digest.js';
import { TrtforgeError } from '../../../errors.js';
import type { VerifyContext, VerifyRequest } from '../../verify/request.js';
import { writeChange } from '../conversion.js';
import { CandidateEngines, programOf } from '../engines.js';
import { fusionGroups, innerTensors } from '../fusions.js';

/** An engine whose layers are compared: engines of its model are built with some of its tensors as outputs too. */
export interface EngineLayers {
  /** The model that it was built from, as its recipe converts the reference. */
  readonly model: string;
  /** Tensors that lie inside of its kernels: as outputs they would make other kernels of them. Empty where its program cannot be read. */
  readonly inside: ReadonlySet<string>;
  /** Builds the engine of a model. */
  readonly build: (model: string) => Promise<string>;
}

/** Converts the reference where the engine's was. Throws TF_USAGE for an engine of another model, and what verifying it and converting throw; building throws what it throws. */
export async function engineLayers(
  request: VerifyRequest,
  folder: string,
  context: VerifyContext,
): Promise<EngineLayers> {
  const { candidate, reference, device, toolchain, plugins } = request;
  const build = {
    device,
    toolchain: typeof toolchain === 'string' ? toolchain : undefined,
    plugins,
    store: false,
  } as const;
  const engines = await CandidateEngines.decide({ ...request, output: folder, build }, context);
  if (engines === null) throw new TrtforgeError('TF_INTERNAL', `${candidate} is not an engine.`);
  const digest = await digestModelFile(reference, { signal: context.signal });
  const conversion = engines.conversion(digest);
  if (conversion === null && !engines.isOf(digest))
    throw new TrtforgeError('TF_USAGE', `${candidate} was built from another model than ${reference}.`, {
      remedy: 'Pass the model that the engine was built from: --against model.onnx',
    });
  const model = conversion === null ? reference : join(folder, 'typed.onnx');
  if (conversion !== null) await writeChange({ model: reference, ...conversion }, {}, model, context.signal);
  const program = programOf(engines.engine);
  const groups = program === null ? [] : fusionGroups(innerTensors(model), program);
  return {
    model,
    inside: new Set(groups.flatMap(({ tensors }) => tensors)),
    build: async (marked) => (await engines.build(marked, join(folder, 'candidate.engine'))).path,
  };
}
