import { pairByName } from '../../../engines/run/state-names.js';
import type { StoredEngine } from '../../../engines/store/store.js';
import type { Dtype } from '../../../formats/tensor/dtype.js';
import { type ClientFacts, clientText } from './client.js';
import type { BundleMeta, StateContract } from './contract.js';
import { type EngineTensor, refused, type ServedModel } from './served-model.js';

const roles = { encoder: /encoder/i, predictor: /predict|decoder/i, joint: /joint/i } as const;
type Role = keyof typeof roles;

/** The engines of each component, by the names of their models. Throws TF_SERVING_REFUSED. */
export function componentsOf(
  engines: readonly StoredEngine[],
): readonly { readonly role: Role; readonly engines: readonly StoredEngine[] }[] {
  const roleOf = ({ passport }: StoredEngine) =>
    (Object.keys(roles) as Role[]).find((role) => roles[role].test(passport.model.name));
  const other = engines.find((engine) => roleOf(engine) === undefined);
  if (other !== undefined)
    throw refused(
      `${other.passport.name} is the engine of no component: its model is called ${other.passport.model.name}.`,
      'A bundle has encoder, predictor and joint; export another model by itself.',
    );
  return (Object.keys(roles) as Role[]).map((role) => {
    const own = engines.filter((engine) => roleOf(engine) === role);
    if (own.length > 0) return { role, engines: own };
    throw refused(`The bundle has no engine of its ${role}.`, 'Name the engines of all three components.');
  });
}

/** The states of a component whose known answer has none, by their names. */
export function namedStates({ passport }: StoredEngine): StateContract | undefined {
  const typed = (tensors: readonly EngineTensor[]) =>
    tensors.map((tensor) => ({ ...tensor, dtype: tensor.dtype as Dtype }));
  const { inputs, outputs } = passport.plan;
  const pairs = pairByName(typed(inputs), typed(outputs)).map((pair) => ({ ...pair, initial: 0 }));
  if (Object.keys(passport.knownAnswer?.state ?? {}).length > 0 || pairs.length === 0) return undefined;
  return { schema: 'trtforge.contract/1', inputs: [], state: pairs };
}

const isFloat = ({ dtype }: EngineTensor): boolean => /^b?float/.test(dtype);

/** A program that decodes with the three models, or why there can be none, completing "no client: …". */
export function clientOf(
  [encoder, predictor, joint]: readonly ServedModel[],
  meta: BundleMeta,
): { readonly text: string } | string {
  if (encoder === undefined || predictor === undefined || joint === undefined) return 'it needs three models';
  const models = [encoder, predictor, joint];
  const narrow = models
    .flatMap(({ inputs, outputs }) => [...inputs, ...outputs])
    .find(({ dtype }) => /float16$/.test(dtype));
  if (narrow !== undefined) return `"${narrow.name}" is ${narrow.dtype}, which Triton's JSON does not carry`;
  const signal = encoder.inputs.find(isFloat);
  const [token, ...counts] = predictor.inputs.filter((input) => !isFloat(input));
  const floats = joint.inputs.filter(isFloat);
  const encoded = floats.find(({ name }) => /^enc/i.test(name)) ?? floats[0];
  const predicted = floats.find((input) => input !== encoded);
  const rows = signal?.shape?.[1];
  const width = joint.outputs[0]?.shape?.at(-1);
  const timeAxis = encoded?.shape?.findIndex((size, axis) => axis > 0 && size === null) ?? -1;
  if (typeof rows !== 'number' || signal?.shape?.length !== 3)
    return 'the encoder does not take features [B, mels, T]';
  if (!token || !encoded || !predicted || typeof width !== 'number' || encoded.shape?.length !== 3)
    return 'predictor and joint network are not those of a transducer';
  const durations = meta.duration_values ?? [];
  const described = (model: ServedModel, tensor: EngineTensor) => ({
    name: tensor.name,
    datatype: tensor.dtype.replace('float', 'FP').replace('int', 'INT').toUpperCase(),
    // One request is one row; the shape of [B] is [1, 1] where Triton batches.
    shape: model.maxBatch > 0 && tensor.shape?.length === 1 ? [1, 1] : [1],
  });
  const part = (model: ServedModel, output: (tensor: EngineTensor) => boolean) => ({
    model: model.name,
    isStateful: model.states.length > 0,
    output: model.outputs.find(output)!.name,
  });
  const length = encoder.inputs.find((input) => !isFloat(input));
  const facts: ClientFacts = {
    encoder: {
      ...part(encoder, isFloat),
      signal: described(encoder, signal),
      length: length === undefined ? null : described(encoder, length),
      steps: encoder.outputs.find((output) => !isFloat(output))?.name ?? null,
    },
    predictor: {
      ...part(predictor, isFloat),
      token: described(predictor, token),
      counts: counts.map((input) => described(predictor, input)),
    },
    joint: {
      ...part(joint, isFloat),
      encoded: described(joint, encoded),
      predicted: described(joint, predicted),
    },
    rows,
    timeAxis: timeAxis < 0 ? 2 : timeAxis,
    blank: meta.blank_id ?? width - durations.length - 1,
    durations,
    labels: meta.labels ?? null,
    chunks:
      encoder.states.length > 0 && meta.streaming
        ? {
            size: meta.streaming.chunk_size,
            shift: meta.streaming.shift_size,
            before: meta.streaming.pre_encode_cache_size,
          }
        : null,
  };
  return { text: clientText(facts) };
}
