import type { TritonCheck } from './result.js';

type Finding = TritonCheck['findings'][number];
type Severity = Finding['severity'];

/** A row: the message with places for values, and the remedy. */
const rows =
  (severity: Severity) =>
  ([row = '']: TemplateStringsArray) => {
    const [message = '', remedy = ''] = row.split(' | ');
    return { severity, message, remedy };
  };
const [error, warning, info] = [rows('error'), rows('warning'), rows('info')];

/** The findings of `triton check`. Error: Triton does not load the model, or cannot serve what the configuration states. */
export const findingCodes = {
  'no-models': error`The repository has no model folder. | Pass the folder that has one folder a model.`,
  'config-unreadable': error`{0} | Correct the line named.`,
  'config-missing': warning`There is no configuration that can be read. | Write one: trtforge triton export ENGINE -o REPOSITORY`,
  'config-named-otherwise': warning`Triton reads config.pbtxt alone, not {0}. | Rename the file.`,
  'config-bom': error`The file begins with a byte-order mark, which Triton cannot read. | Save it as UTF-8 without one.`,
  'name-differs': error`The name is "{0}", and the folder is "{1}". | Give both one name, or remove "name".`,
  'backend-missing': warning`There is neither platform nor backend: Triton decides by the name of the file. | Write backend: "tensorrt".`,
  'backend-unknown': error`Triton has no platform "{0}" with backend "{1}". | Write backend: "tensorrt" or platform: "tensorrt_plan" for a plan.`,
  'backend-differs': error`{0} is a plan, and the back end is "{1}". | Write backend: "tensorrt".`,
  'version-missing': error`There is no folder for {0}. | Add the version folder; that of an ensemble is empty.`,
  'version-ignored': warning`Triton ignores this folder of a plan: its name is not a number without leading zeros. | Rename it.`,
  'nested-model': warning`The model folder lies in another folder, where Triton does not look. | Move it into the repository itself.`,
  'not-a-model': error`Triton takes the folder for a model, and it has neither configuration nor version. | Move it out of the repository.`,
  'stray-plan': warning`The plan lies where Triton does not look. | Put it into MODEL/1/.`,
  'plan-missing': error`The plan is not there. | Copy it there, or correct default_model_filename.`,
  'plan-named-otherwise': error`The plan is not there, and {0} beside it is one. | Rename that file, or name it in default_model_filename.`,
  'plan-unreadable': error`{0} | Copy or build the plan again.`,
  'plan-foreign-header': error`An exporter wrote a header before the plan: TensorRT rejects its magic tag. | Remove it: trtforge engine strip-header model.plan -o plain.plan`,
  'plan-rtx': error`The plan is TensorRT-RTX's, which Triton's back end cannot run. | Build the model with --target tensorrt.`,
  'tensorrt-differs': error`It was built with TensorRT {0}, and the server has {1}. | Build it with that of the server, or take the container that has that of the plan.`,
  'tensorrt-mixed': error`Plans were built with TensorRT {0}, and a server has one. | Build all with one TensorRT.`,
  'capability-key': error`"{0}" is not a compute capability. | Write it as major.minor: "8.9".`,
  'capability-file-missing': error`The plan for "{0}" is not there, which is found only on that GPU. | Copy it there, or remove the entry.`,
  'capability-differs': error`Its passport states {0}, and it is served on sm_{1}. | Name the plan that was built for that GPU.`,
  'default-beside-capabilities': warning`A GPU without an entry loads {0}, without a word. | Remove that file and default_model_filename.`,
  'gpu-without-plan': error`No entry is for sm_{0}. | Add a plan for this GPU.`,
  'gpu-product-differs': warning`It was built on {0}: its tactics were chosen on another product of this compute capability. | Build it where it is served.`,
  'passport-missing': info`Without a passport, tensors, profiles and states were not compared with the engine. | Build or import it with trtforge.`,
  'passport-unreadable': warning`{0} | Copy the passport again.`,
  'passport-differs': error`{0} | Copy the plan and its passport together.`,
  'model-changed': warning`{0} | Build the plan of the model again, unless that is meant.`,
  'identity-differs': error`{0} is the identity of no plan that is there. | Write that of the plan: trtforge triton export ENGINE -o REPOSITORY`,
  'instance-gpus': error`{0} takes no list of GPUs. | Remove gpus.`,
  'instance-kind': error`{0}: Triton runs plans on GPUs alone. | Write KIND_GPU, or remove kind.`,
  'profile-unknown': error`{2} has the profiles 0 to {1}, not "{0}". | Write the index of one, as a string.`,
  'profiles-unserved': warning`{1} has {0} profiles, and only profile 0 is served. | Name them: profile: ["0", "1"].`,
  'batch-above-profile': error`It is {0}, and the largest batch of {2} is {1}. | Lower it, or build with a larger profile.`,
  'batch-below-profile': warning`Requests of fewer than {0} fail: no profile that is served takes them on every GPU. | Build with a profile from a batch of 1.`,
  'batch-without-profile': error`No batch from 1 to {0} has a profile on every GPU. | Build the engines with the same profiles, or serve them as two models.`,
  'batch-negative': error`{0} is not a batch. | Write 0 for none.`,
  'batch-axis-fixed': error`Batching needs an open first axis: "{0}" is {2} in {3}. | Set max_batch_size to 0, and write dims with the first axis.`,
  'batch-axis-other': error`Batching splits "{0}" by rows: in {2} {1}. | Set max_batch_size to 0, and write dims with the first axis.`,
  'batch-axis-missing': warning`"{0}" is {1} without a batch, and {2} in {3}; Triton completes max_batch_size unless that is disabled. | Write max_batch_size, or dims with the first axis.`,
  'batching-without-batch': warning`max_batch_size is 0: nothing is batched. | Set it, or remove dynamic_batching.`,
  'two-schedulers': error`{0} | Keep one of dynamic_batching, sequence_batching, ensemble_scheduling.`,
  'preferred-above-max': error`{0} is not a batch from 1 to max_batch_size, {1}. | Write such sizes.`,
  'preferred-outside-profile': warning`No profile that is served takes a batch of {0}. | Write a size that one takes.`,
  'io-completed': info`Triton takes them from the engine. | Write them, if the server runs with --disable-auto-complete-config.`,
  'tensor-incomplete': warning`"{0}" has no data_type or no dims; Triton completes them unless that is disabled. | Write both.`,
  'tensor-missing': error`"{0}" of {1} is not there. | Add it.`,
  'tensor-unknown': error`{1} has no such tensor "{0}". | Correct the name.`,
  'tensor-twice': error`"{0}" is there twice. | Keep one of them.`,
  'type-differs': error`"{0}" is {1}, and {2} in {3}. | Write the type of the engine.`,
  'type-not-carried': error`"{0}" is {1} in {2}, which Triton does not carry. | Build the engine with inputs and outputs of another type.`,
  'dims-zero': error`[{0}] has a size that is neither positive nor -1. | Write sizes from 1, or -1 for an open one.`,
  'dims-differ': error`"{0}" is {1} for each request, and {2} in {3}. | Write the dims of the engine.`,
  'dims-open': warning`"{0}" is {1}, open where {3} has {2}: other sizes fail when they are requested. | Write the size that the engine has.`,
  'dims-outside-profile': error`"{0}": no profile that is served takes {1}. | Write a size within the profile, or build with a wider one.`,
  'reshape-differs': error`"{0}": [{1}] cannot become [{2}]. | Write a shape of as many elements, and without batching not an empty one.`,
  'shape-tensor': error`"{0}": is_shape_tensor must be {1} for {2}. | Write what the engine has.`,
  'state-also-input': error`"{0}" is an input too, which clients would have to send. | Remove it from "input".`,
  'state-also-output': info`"{0}" is an output too: every response copies the state. | Remove it from "output" unless clients read it.`,
  'state-differs': error`"{0}" is fed from "{1}", and {3} gives it as "{2}". | Correct output_name.`,
  'state-not-fed': warning`"{1}" of {2} becomes "{0}" of the next step, and no entry feeds it: every request starts anew. | Add a state entry.`,
  'contract-invalid': warning`{0} | Correct it, or draft it again: trtforge stream draft MODEL -o contract.json`,
  'state-by-name': warning`"{1}" of {2} reads like the next "{0}", and is no state here: every request starts anew. | Export it with --contract, or let the client send it back.`,
  'state-order': error`Triton pairs states by the order of their names, and would feed "{0}" from "{1}". | Name the outputs so that they sort as the inputs do.`,
  'state-by-client': info`"{0}" has no axis besides the batch, so that Triton cannot keep it: the client sends back "{1}". | Keep it so.`,
  'state-initial': error`"{0}": {1}. | Give it the type and dims of the state, a name, and zero_data or a data_file in initial_state/.`,
  'state-uninitialized': warning`Nothing states what "{0}" is when a sequence begins. | Add initial_state { name data_type dims zero_data: true }.`,
  'state-same-buffer': warning`"{0}" shares a buffer with its output, which TensorRT does not promise to work. | Remove use_same_buffer_for_input_output.`,
  'state-instances': info`With implicit state, executions of an instance do not overlap. | A count of 2 or more keeps the GPU busy.`,
  'warmup-batch': error`{0} is not a batch from 1 to {1}; Triton takes it all the same. | Write such a size.`,
  'warmup-input-unknown': error`The model has no input "{0}". | Correct the name.`,
  'warmup-input-missing': error`Input "{0}" is not there. | Add it: a warm-up needs every input.`,
  'warmup-dims': error`"{0}" {1}. | Write the type of the input, and sizes without batch that a profile takes.`,
  'warmup-data': error`"{0}" {1}. | Write zero_data or random_data: true, or put the file of that size into warmup/.`,
  'warmup-with-states': error`A warm-up request belongs to no sequence: its states cannot be written, and the load fails. | Remove model_warmup.`,
  'label-file': error`{0} | Put the file beside config.pbtxt, or remove label_filename.`,
  'label-count': warning`{0} has {1} labels, and the last axis is {2}. | Write a label a line.`,
  'graph-batch': error`It is {0}, and max_batch_size is {1}. | Write a batch from 1 to max_batch_size; 0 without batching.`,
  'graphs-unbatched': warning`Without batching, the back end uses CUDA graphs since July 2026 only. | Set max_batch_size, or expect none on an older server.`,
  'allocation-strategy': error`The back end has no strategy "{0}", only {1}. | Write one of them.`,
  'format-dims': error`{0} needs 3 dims, and there are [{1}]. | Remove format, or write the dims of a picture.`,
  'cache-unsupported': error`The response cache cannot be used with {0}. | Remove response_cache.`,
  'slot-utilization': error`{0} is not from 0 to 1. | Write such a share.`,
  'queue-policy': error`{0}. | Correct the policy, or remove it.`,
  'batch-io': error`{0}. | Correct the entry.`,
  'control-input': error`{0}. | Correct the control.`,
  'graphs-open-dims': warning`Inputs have open axes besides the batch. | Add a graph_spec for each shape that is captured.`,
  'ensemble-step': error`{0}. | Correct the step.`,
  'ensemble-tensor': error`"{0}" {1}. | Connect it: each tensor is written once, and read.`,
  'ensemble-shape': error`"{0}" is {1}, and {2}. | Give both sides one type and one shape.`,
  'ensemble-extra': error`An ensemble takes no {0}. | Remove it.`,
} as const;

export type FindingCode = keyof typeof findingCodes;

/** Values fill the places of the code's message. */
export type Report = (code: FindingCode, where: string, ...values: readonly unknown[]) => void;

/** Collects findings, each once: what holds for the engine of one capability mostly holds for the others, and the first is named. */
export class Findings {
  private readonly all = new Map<string, Finding>();

  readonly report: Report = (code, where, ...values) => {
    const { message: template, ...row } = findingCodes[code];
    const message = template.replace(/\{(\d)\}/g, (_, at) => String(values[Number(at)]));
    const key = `${code}\n${where}\n${values[0]}`;
    if (!this.all.has(key)) this.all.set(key, { code, where, message, ...row });
  };

  /** Errors first. */
  list(): Finding[] {
    const order = ['error', 'warning', 'info'];
    return [...this.all.values()].sort((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
  }
}
