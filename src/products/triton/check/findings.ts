type Severity = 'error' | 'warning' | 'info';

const of =
  (severity: Severity) =>
  (remedy: string): { readonly severity: Severity; readonly remedy: string } => ({ severity, remedy });
const [error, warning, info] = [of('error'), of('warning'), of('info')];

const oneSide = 'Correct the configuration, or write it again from the engine: trtforge triton export.';

/** What `triton check` finds. Error: Triton does not load the model, or it cannot serve what the configuration states. */
export const findingCodes = {
  'no-models': error('Pass the folder that has one folder a model.'),
  'config-unreadable': error('Correct the line named.'),
  'config-missing': warning('Write a config.pbtxt: trtforge triton export.'),
  'config-bom': warning('Save the file as UTF-8 without a byte-order mark.'),
  'name-differs': error('Give the folder and the model one name, or remove "name".'),
  'backend-missing': warning('Write backend: "tensorrt".'),
  'backend-unknown': error('Write backend: "tensorrt" or platform: "tensorrt_plan" for a TensorRT plan.'),
  'backend-differs': error('Write backend: "tensorrt" for a TensorRT plan.'),
  'version-missing': error('Add the version folder (1), also for an ensemble, where it is empty.'),
  'version-ignored': warning('Rename the folder to a number without leading zeros.'),
  'nested-model': warning('Move the model folder into the repository itself.'),
  'not-a-model': warning('Move it out of the repository: Triton takes each of its folders for a model.'),
  'stray-plan': warning('Put the plan into MODEL/1/.'),
  'plan-unused': info('Remove it, or name it in the configuration.'),
  'plan-missing': error('Copy the plan there, or correct default_model_filename.'),
  'plan-unreadable': error('Copy or build the plan again.'),
  'plan-foreign-header': error('Run trtforge engine strip-header PLAN -o model.plan.'),
  'plan-rtx': error('Build the model for TensorRT: trtforge build MODEL --target tensorrt.'),
  'tensorrt-differs': error(
    'Build the plan with the TensorRT of the server, or take the container that has that of the plan.',
  ),
  'tensorrt-mixed': error('Build all plans with one TensorRT: a server has one.'),
  'capability-key': error('Write the compute capability as major.minor: "8.9".'),
  'capability-file-missing': error('Copy the plan there, or remove the entry.'),
  'capability-differs': error('Name the plan that was built for that compute capability.'),
  'default-beside-capabilities': warning(
    'Remove default_model_filename and model.plan: a GPU without an entry then fails by name, and does not load the plan of another.',
  ),
  'gpu-without-plan': error('Add a plan for this GPU to cc_model_filenames.'),
  'gpu-product-differs': warning('Build the plan on the product that serves it.'),
  'passport-missing': info(
    'Build or import the engine with trtforge to have its inputs, outputs and profiles compared.',
  ),
  'passport-unreadable': warning('Copy the passport again.'),
  'passport-differs': error('Copy the plan and its passport together.'),
  'identity-differs': error('Write the identity of the plan that is there: trtforge triton export.'),
  'instance-kind': error('Write kind: KIND_GPU, or remove kind.'),
  'profile-unknown': error("Write the index of one of the engine's profiles, as a string."),
  'profiles-unserved': warning('Name the profiles: instance_group [ { profile: ["0", "1"] } ].'),
  'batch-above-profile': error(
    "Lower max_batch_size to the profile's largest batch, or build with a larger one.",
  ),
  'batch-axis-fixed': error('Set max_batch_size to 0 and write dims with the first axis.'),
  'batch-axis-missing': error('Set max_batch_size, or write dims with the first axis.'),
  'batching-without-batch': warning('Set max_batch_size, or remove dynamic_batching.'),
  'two-schedulers': error('Keep one of dynamic_batching, sequence_batching, ensemble_scheduling.'),
  'preferred-above-max': error('Write sizes from 1 to max_batch_size.'),
  'preferred-outside-profile': warning('Write a size that a profile of the engine takes.'),
  'io-completed': info('Write them, if the server runs with --disable-auto-complete-config.'),
  'tensor-missing': error(oneSide),
  'tensor-unknown': error(oneSide),
  'tensor-twice': error('Keep one of them.'),
  'type-differs': error(oneSide),
  'type-not-carried': error(
    'Build the engine with inputs and outputs of a type that Triton carries: FP32, FP16, BF16, INT8, UINT8, INT32, INT64, BOOL.',
  ),
  'dims-zero': error('Write sizes from 1, or -1 for an open one.'),
  'dims-differ': error(oneSide),
  'dims-open': warning('Write the size that the engine has.'),
  'dims-outside-profile': error('Write a size within the profile, or build with a wider one.'),
  'reshape-differs': error('Write a shape of as many elements.'),
  'shape-tensor': error(
    'Set is_shape_tensor where the profile ranges over the values of the input, and only there.',
  ),
  'state-also-input': error('Remove the tensor from "input": Triton feeds it.'),
  'state-also-output': info('Remove it from "output" unless clients read the state.'),
  'state-differs': error(oneSide),
  'state-not-fed': warning(
    'Add a state entry to sequence_batching; otherwise every request starts anew, or the client carries the state.',
  ),
  'state-initial': error(
    "Give initial_state the state's type and dims without -1, a name, and zero_data or a data_file in initial_state/.",
  ),
  'state-uninitialized': warning('Add initial_state { name data_type dims zero_data: true }.'),
  'state-same-buffer': warning(
    'Remove use_same_buffer_for_input_output: TensorRT does not promise that input and output may be one buffer.',
  ),
  'state-instances': info(
    'With implicit state executions do not overlap: count 2 or more keeps the GPU busy.',
  ),
  'warmup-batch': error('Write a batch_size from 1 to max_batch_size.'),
  'warmup-input-unknown': error('Name an input of the model.'),
  'warmup-input-missing': error('Add it: a warm-up needs every input.'),
  'warmup-dims': error("Write the input's type, and dims without batch that a profile takes."),
  'warmup-data': error('Write zero_data or random_data: true, or put the file of that size into warmup/.'),
  'label-file': error('Put the file beside config.pbtxt, or remove label_filename.'),
  'label-count': warning('Write a label a line, as many as the last axis has.'),
  'graphs-open-dims': warning('Add a graph_spec for each shape that is captured.'),
  'ensemble-step': error('Correct the step: each input of its model from one tensor, each output to one.'),
  'ensemble-tensor': error('Connect the tensor: each is written once and read.'),
  'ensemble-shape': error('Give both sides one type and one shape.'),
  'ensemble-extra': error('Remove it: an ensemble has no instances, warm-up or optimization of its own.'),
} as const;

export type FindingCode = keyof typeof findingCodes;

export interface Finding {
  readonly code: string;
  readonly severity: Severity;
  /** `det/config.pbtxt: instance_group[0].profile` */
  readonly where: string;
  readonly message: string;
  readonly remedy: string;
}

export type Report = (code: FindingCode, where: string, message: string) => void;

/** Findings, errors first; what several plans or versions have in common is one. */
export class Findings {
  private readonly all = new Map<string, Finding>();

  readonly report: Report = (code, where, message) => {
    this.all.set(`${code}\n${where}\n${message}`, { code, where, message, ...findingCodes[code] });
  };

  list(): Finding[] {
    const order = ['error', 'warning', 'info'];
    return [...this.all.values()].sort((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
  }
}
