import { type EngineTensor, isShapeTensor } from '../engine.js';
import { type ConfigTensor, configTensor, type ModelConfig, printModelConfig } from '../model-config.js';
import { hasLabels, type ServedModel } from './served-model.js';
import { initialStates, planFile, type TensorFiles, warmUps } from './tensor-files.js';

/** A stream that pauses this long is over: its states go. */
const IDLE_MICROSECONDS = 5_000_000;
/** Sequences that an instance keeps at a time, at least; each costs its states twice. */
const CANDIDATES = 64;

const SEQUENCE_COMMENTS = `# With states an instance writes them back before its next execution: more instances fill the GPU.
# No model_warmup: a warm-up request belongs to no sequence, so its states cannot be written, and the load would fail.
`;

/** The text of config.pbtxt; the tensors that it names are added to `files`. */
export function configOf(model: ServedModel, files: TensorFiles): string {
  const { name, version, isPinned, plans, maxBatch, profiles, delay, states } = model;
  const { preprocess } = plans[0]!.engine.passport.model;
  const batcher = {
    preferred_batch_size: preferredSizes(model),
    ...(delay === undefined ? {} : { max_queue_delay_microseconds: delay }),
  };
  // Without a list the first profile alone is served.
  const servedProfiles = profiles[0]!.length > 1 ? profiles[0]!.map((_, index) => String(index)) : [];
  const typed = (tensor: EngineTensor) => configTensor(tensor, maxBatch > 0);
  const byPlan = <T>(key: string, value: (plan: ServedModel['plans'][number]) => T) =>
    Object.fromEntries(plans.map((plan) => [`${key}${plan.capability}`, value(plan)]));
  const config: ModelConfig = {
    name,
    platform: 'tensorrt_plan',
    max_batch_size: maxBatch,
    input: model.inputs.map((input) => ({
      ...typed(input),
      ...(isShapeTensor(profiles[0]!, input.name) ? { is_shape_tensor: true } : {}),
    })),
    output: model.outputs.map((output) => labelled(model, typed(output))),
    instance_group: [{ kind: 'KIND_GPU', count: model.instances ?? 1, profile: servedProfiles }],
    // No default_model_filename: a GPU without an entry would load the plan of another.
    cc_model_filenames: byPlan('', ({ engine }) => planFile(engine)),
    ...(states.length > 0
      ? {
          sequence_batching: {
            max_sequence_idle_microseconds: IDLE_MICROSECONDS,
            oldest: { max_candidate_sequences: Math.max(CANDIDATES, maxBatch), ...batcher },
            state: initialStates(model, files),
          },
        }
      : maxBatch > 1
        ? { dynamic_batching: batcher }
        : {}),
    ...(isPinned ? { version_policy: { specific: { versions: [version] } } } : {}),
    model_warmup: warmUps(model, files),
    parameters: {
      ...byPlan('trtforge.identity.', ({ engine }) => ({ string_value: engine.identity })),
      ...(preprocess === undefined ? {} : { 'trtforge.preprocess': { string_value: preprocess } }),
    },
  };
  return `# Written by trtforge triton export.\n${states.length > 0 ? SEQUENCE_COMMENTS : ''}${printModelConfig(config)}\n`;
}

/** The batches that the engines were tuned for. */
function preferredSizes({ maxBatch, profiles }: ServedModel): readonly number[] {
  const tuned = profiles.flat().flatMap((profile) => Object.values(profile).map(({ opt }) => opt[0]!));
  return [...new Set(tuned)].filter((size) => size > 1 && size <= maxBatch).sort((a, b) => a - b);
}

const labelled = ({ labels }: ServedModel, tensor: ConfigTensor): ConfigTensor =>
  hasLabels(tensor, labels) ? { ...tensor, label_filename: 'labels.txt' } : tensor;
