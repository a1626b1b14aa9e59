import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { findingCodes } from '../../../src/products/triton/check/findings.js';
import { type TritonCheck, tritonCheckSchema } from '../../../src/products/triton/check/result.js';
import { writeDetector } from '../../fakes/nvinfer-engine.js';
import { samplePlan } from '../../support/sample-engine.js';
import { codeOfLine, trtforge } from '../../support/trtforge.js';
import {
  detector,
  encoder,
  engineFiles,
  type Files,
  goodRepository,
  trtPlan,
  writeFiles,
} from './sample-repository.js';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trtforge-triton-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function check(files: Files, ...options: string[]): Promise<TritonCheck & { exitCode: number }> {
  const { json, exitCode } = await trtforge([
    'triton',
    'check',
    writeFiles(folder, files),
    '--json',
    ...options,
  ]);
  const result = json<TritonCheck & { exitCode: number; error?: unknown }>();
  expect(result.error).toBeUndefined();
  return { ...result, exitCode };
}

let otherModel = '';
beforeAll(async () => {
  otherModel = await writeDetector(join(mkdtempSync(join(tmpdir(), 'trtforge-triton-model-')), 'det.onnx'));
});
afterAll(() => rmSync(dirname(otherModel), { recursive: true, force: true }));

type Fault = (files: Files) => Files;

/** A text in a file in the place of another; the file must have it. */
const edit =
  (path: string, from: string | RegExp, to: string): Fault =>
  (files) => {
    const text = String(files[path]);
    expect(text.replace(from, to)).not.toBe(text);
    return { ...files, [path]: text.replace(from, to) };
  };
const add =
  (more: Files): Fault =>
  (files) => ({ ...files, ...more });
const remove =
  (...paths: string[]): Fault =>
  (files) =>
    Object.fromEntries(Object.entries(files).filter(([path]) => !paths.includes(path)));

const det = (from: string | RegExp, to: string) => edit('det/config.pbtxt', from, to);
const enc = (from: string | RegExp, to: string) => edit('enc/config.pbtxt', from, to);
const pipe = (from: string | RegExp, to: string) => edit('pipe/config.pbtxt', from, to);
const [tensor, one] = [detector.inputs[0]!, 'det/1/sm_89.plan'];
/** The detector's plan for 8.9 with other facts in its passport. */
const engine = (facts: Partial<typeof detector>) =>
  add(engineFiles(one, trtPlan(1), { ...detector, ...facts }));
const batchOne = { ...tensor, shape: [1, 3, null, null] };

/** Batches of 4 to 8. */
const fromFour = { z: { min: [4, 2], opt: [4, 2], max: [8, 2], values: false } };
const aboveEight = {
  images: { min: [16, 3, 320, 320], opt: [16, 3, 640, 640], max: [16, 3, 640, 640], values: false },
};

/** A fault, where it is reported, by which code. */
const faults: readonly (readonly [code: string, where: string, fault: Fault, ...options: string[]])[] = [
  ['no-models', '.', () => ({})],
  ['config-unreadable', 'det/config.pbtxt', det('platform', 'plattform')],
  ['config-unreadable', 'det/config.pbtxt', det('name', '\0name')],
  ['config-missing', 'shape/config.pbtxt', remove('shape/config.pbtxt')],
  [
    'config-named-otherwise',
    'shape/config.pbtxt',
    (files) => ({
      ...remove('shape/config.pbtxt')(files),
      'shape/config.pbtxt.txt': files['shape/config.pbtxt']!,
    }),
  ],
  ['config-bom', 'det/config.pbtxt', det('name', '\ufeffname')],
  ['name-differs', 'det/config.pbtxt: name', det('name: "det"', 'name: "detector"')],
  ['backend-missing', 'shape/config.pbtxt', edit('shape/config.pbtxt', 'backend: "tensorrt"', '')],
  ['backend-unknown', 'det/config.pbtxt', det('platform: "tensorrt_plan"', '')],
  ['backend-unknown', 'det/config.pbtxt: platform', det('tensorrt_plan', 'tensorrt')],
  [
    'backend-unknown',
    'enc/config.pbtxt: platform',
    enc('backend: "tensorrt"', 'platform: "tensorrt_plan" backend: "python"'),
  ],
  ['backend-differs', 'enc/config.pbtxt: backend', enc('"tensorrt"', '"onnxruntime"')],
  ['version-missing', 'pipe/config.pbtxt', remove('pipe/1/')],
  ['version-missing', 'enc/config.pbtxt: version_policy.specific', enc('[ 3 ]', '[ 3, 7 ]')],
  ['version-missing', 'enc/config.pbtxt: version_policy', enc('[ 3 ]', '[ ]')],
  [
    'version-missing',
    'enc/config.pbtxt: version_policy',
    enc('specific { versions: [ 3 ] }', 'latest { num_versions: 0 }'),
  ],
  ['version-ignored', 'det/01', add({ 'det/01/model.plan': trtPlan(9) })],
  ['nested-model', 'det/old', add({ 'det/old/config.pbtxt': '' })],
  ['not-a-model', 'notes', add({ 'notes/readme.txt': '' })],
  ['stray-plan', 'yolo.engine', add({ 'yolo.engine': trtPlan(9) })],
  ['stray-plan', 'det/model.plan', add({ 'det/model.plan': trtPlan(9) })],
  ['plan-missing', 'enc/3/model.plan', remove('enc/3/model.plan')],
  [
    'plan-named-otherwise',
    'enc/3/model.plan',
    (files) => ({ ...remove('enc/3/model.plan')(files), 'enc/3/model.engine': trtPlan(9) }),
  ],
  ['plan-unreadable', one, add({ [one]: 'version https://git-lfs.github.com/spec/v1' })],
  ['plan-rtx', one, add({ [one]: samplePlan() })],
  [
    'plan-foreign-header',
    one,
    add({ [one]: Buffer.concat([Buffer.from([14, 0, 0, 0]), Buffer.from('{"author":"x"}'), trtPlan(1)]) }),
  ],
  ['tensorrt-differs', one, (files) => files, '--tensorrt', '10.12'],
  ['tensorrt-mixed', '.', add(engineFiles(one, trtPlan(1, '10.9.0.34'), detector))],
  ['capability-key', 'det/config.pbtxt: cc_model_filenames', det('"8.9"', '"89"')],
  ['capability-key', 'det/config.pbtxt: cc_model_filenames', det('"8.9"', '"sm_89"')],
  ['capability-file-missing', 'det/1/sm_90.plan', remove('det/1/sm_90.plan')],
  ['capability-differs', one, det('"8.9"', '"8.6"')],
  ['capability-differs', 'enc/3/model.plan', (files) => files, '--gpu', 'H100'],
  [
    'default-beside-capabilities',
    'det/config.pbtxt: cc_model_filenames',
    add({ 'det/1/model.plan': trtPlan(1) }),
  ],
  ['gpu-product-differs', one, engine({ gpu: 'NVIDIA L40S' }), '--gpu', 'NVIDIA L4'],
  ['gpu-without-plan', 'det/config.pbtxt: cc_model_filenames', (files) => files, '--gpu', 'sm_120'],
  ['passport-missing', 'enc/3/model.plan', remove('enc/3/model.plan.passport.json')],
  ['passport-unreadable', `${one}.passport.json`, add({ [`${one}.passport.json`]: '{}' })],
  ['passport-differs', `${one}.passport.json`, add({ [one]: trtPlan(7) })],
  ['model-changed', one, (files) => ({ ...files, 'det/1/det.onnx': readFileSync(otherModel) })],
  [
    'identity-differs',
    'det/config.pbtxt: parameters["trtforge.identity.8.9"]',
    det(/string_value: "\w/, 'string_value: "x'),
  ],
  ['instance-kind', 'det/config.pbtxt: instance_group[0].kind', det('KIND_GPU', 'KIND_CPU')],
  ['profile-unknown', 'det/config.pbtxt: instance_group[0].profile', det('"1"', '"2"')],
  ['profiles-unserved', 'det/config.pbtxt: instance_group', det('profile: [ "0", "1" ]', '')],
  ['batch-above-profile', 'det/config.pbtxt: max_batch_size', det('max_batch_size: 8', 'max_batch_size: 16')],
  [
    'batch-below-profile',
    'enc/config.pbtxt: max_batch_size',
    add(engineFiles('enc/3/model.plan', trtPlan(3), { ...encoder, recipe: { profiles: [fromFour] } })),
  ],
  [
    'batch-without-profile',
    'det/config.pbtxt: max_batch_size',
    engine({ recipe: { profiles: [aboveEight, aboveEight] } }),
  ],
  ['batch-negative', 'det/config.pbtxt: max_batch_size', det('max_batch_size: 8', 'max_batch_size: -1')],
  ['batch-axis-fixed', 'det/config.pbtxt: input[0].dims', engine({ inputs: [batchOne] })],
  [
    'batch-axis-other',
    'det/config.pbtxt: max_batch_size',
    engine({ outputs: [{ ...detector.outputs[0]!, symbols: ['rows', null] }, detector.outputs[1]!] }),
  ],
  ['batch-axis-missing', 'det/config.pbtxt: input[0].dims', det('max_batch_size: 8', '')],
  ['batching-without-batch', 'det/config.pbtxt: dynamic_batching', det('max_batch_size: 8', '')],
  ['two-schedulers', 'det/config.pbtxt', det('dynamic_batching', 'sequence_batching { } dynamic_batching')],
  [
    'preferred-above-max',
    'det/config.pbtxt: dynamic_batching.preferred_batch_size',
    det('preferred_batch_size: [ 4 ]', 'preferred_batch_size: [ 16 ]'),
  ],
  [
    'preferred-above-max',
    'enc/config.pbtxt: sequence_batching.oldest.preferred_batch_size',
    enc('preferred_batch_size: [ 4 ]', 'preferred_batch_size: [ 16 ]'),
  ],
  [
    'preferred-outside-profile',
    'enc/config.pbtxt: sequence_batching.oldest.preferred_batch_size',
    (files) =>
      enc(
        'preferred_batch_size: [ 4 ]',
        'preferred_batch_size: [ 2 ]',
      )({
        ...files,
        ...engineFiles('enc/3/model.plan', trtPlan(3), { ...encoder, recipe: { profiles: [fromFour] } }),
      }),
  ],
  ['io-completed', 'shape/config.pbtxt: output', edit('shape/config.pbtxt', /output.*/, '')],
  ['tensor-incomplete', 'det/config.pbtxt: input[0]', det('data_type: TYPE_FP32', '')],
  ['tensor-incomplete', 'post/config.pbtxt: input[0]', edit('post/config.pbtxt', 'dims: [ 4 ]', '')],
  ['tensor-missing', 'det/config.pbtxt: output', det(/,\s*{ name: "count"[^}]*} }/, '')],
  ['tensor-unknown', 'det/config.pbtxt: input[0]', det('"images" data', '"image" data')],
  [
    'tensor-unknown',
    'enc/config.pbtxt: sequence_batching.control_input[0]',
    enc('state [', 'control_input [ { name: "START" control [ { int32_false_true: [ 0, 1 ] } ] } ] state ['),
  ],
  ['tensor-twice', 'det/config.pbtxt: output[1]', det('"count"', '"scores"')],
  [
    'type-differs',
    'det/config.pbtxt: input[0].data_type',
    det('"images" data_type: TYPE_FP32', '"images" data_type: TYPE_FP16'),
  ],
  [
    'type-not-carried',
    'det/config.pbtxt: input[0].data_type',
    engine({ inputs: [{ ...tensor, dtype: 'float8_e4m3fn' }] }),
  ],
  ['dims-zero', 'det/config.pbtxt: input[0].dims', det('[ 3, -1, -1 ]', '[ 3, 0, -1 ]')],
  ['dims-zero', 'enc/config.pbtxt: sequence_batching.state[0].dims', enc('dims: [ 2 ]', 'dims: [ 0 ]')],
  ['dims-differ', 'det/config.pbtxt: input[0].dims', det('[ 3, -1, -1 ]', '[ 1, -1, -1 ]')],
  [
    'dims-differ',
    'shape/config.pbtxt: input[1].dims',
    edit('shape/config.pbtxt', 'dims: [ 2 ] is', 'dims: [ 3 ] is'),
  ],
  ['dims-open', 'det/config.pbtxt: output[0].dims', det('dims: [ 4 ]', 'dims: [ -1 ]')],
  ['dims-outside-profile', 'det/config.pbtxt: input[0].dims', det('[ 3, -1, -1 ]', '[ 3, 160, 160 ]')],
  ['reshape-differs', 'det/config.pbtxt: output[1].reshape', det('dims: [ 1 ]', 'dims: [ 2 ]')],
  [
    'shape-tensor',
    'shape/config.pbtxt: input[1].is_shape_tensor',
    edit('shape/config.pbtxt', 'is_shape_tensor: true', ''),
  ],
  [
    'shape-tensor',
    'det/config.pbtxt: input[0].is_shape_tensor',
    det('-1, -1 ]', '-1, -1 ] is_shape_tensor: true'),
  ],
  [
    'state-also-input',
    'enc/config.pbtxt: sequence_batching.state[0].input_name',
    enc('input [', 'input [ { name: "z" data_type: TYPE_FP16 dims: [ 2 ] },'),
  ],
  [
    'state-also-output',
    'enc/config.pbtxt: sequence_batching.state[0].output_name',
    enc('output [', 'output [ { name: "z_next" data_type: TYPE_FP16 dims: [ 2 ] },'),
  ],
  [
    'type-differs',
    'enc/config.pbtxt: sequence_batching.state[0].data_type',
    enc(/"z_next" data_type: TYPE_FP16/, '"z_next" data_type: TYPE_FP32'),
  ],
  ['dims-differ', 'enc/config.pbtxt: sequence_batching.state[0].dims', enc('dims: [ 2 ]', 'dims: [ 3 ]')],
  ['state-differs', 'enc/config.pbtxt: sequence_batching.state', enc('"z_next"', '"y"')],
  ['state-not-fed', 'enc/config.pbtxt: sequence_batching.state', enc(/state \[[\s\S]*?\} \]\n/, '')],
  [
    'state-initial',
    'enc/config.pbtxt: sequence_batching.state[0].initial_state',
    enc('"ones" data_type: TYPE_FP16', '"ones" data_type: TYPE_FP32'),
  ],
  [
    'state-initial',
    'enc/config.pbtxt: sequence_batching.state[0].initial_state',
    enc(/(initial.*)dims: \[ 2 \]/, '$1dims: [ 3 ]'),
  ],
  [
    'state-initial',
    'enc/config.pbtxt: sequence_batching.state[0].initial_state',
    remove('enc/initial_state/z'),
  ],
  [
    'state-initial',
    'enc/config.pbtxt: sequence_batching.state[0].initial_state',
    add({ 'enc/initial_state/z': 'abcdefgh' }),
  ],
  [
    'state-initial',
    'enc/config.pbtxt: sequence_batching.state[0].initial_state',
    enc('data_file: "z"', 'zero_data: true'),
  ],
  [
    'state-order',
    'enc/config.pbtxt: sequence_batching.state[0]',
    enc('state [', 'state [ { input_name: "a" output_name: "z_other" data_type: TYPE_FP16 dims: [ 2 ] },'),
  ],
  [
    'state-by-client',
    'enc/config.pbtxt: sequence_batching.state',
    (files) =>
      enc(
        /output \[ (.*) \]/,
        'input [ { name: "n" data_type: TYPE_INT64 dims: [ 1 ] reshape { shape: [ ] } } ] output [ $1, { name: "n_next" data_type: TYPE_INT64 dims: [ 1 ] reshape { shape: [ ] } } ]',
      )({
        ...files,
        ...engineFiles('enc/3/model.plan', trtPlan(3), {
          ...encoder,
          inputs: [...encoder.inputs, { name: 'n', dtype: 'int64', shape: [null] }],
          outputs: [...encoder.outputs, { name: 'n_next', dtype: 'int64', shape: [null] }],
        }),
        'enc/lengths.json':
          '{"schema":"trtforge.contract/1","name":"n","inputs":[{"name":"n"}],"outputs":[{"name":"n_next"}],"state":[{"input":"n","output":"n_next"}]}',
      }),
  ],
  [
    'contract-invalid',
    'enc/contract.json',
    (files) => ({
      ...files,
      'enc/contract.json': `${files['enc/contract.json']}`.replace('initial', 'inital'),
    }),
  ],
  ['contract-invalid', 'enc/cut.json', add({ 'enc/cut.json': '{"schema":"trtforge.contract/1"}' })],
  [
    'state-by-name',
    'enc/config.pbtxt: sequence_batching.state',
    (files) =>
      enc(
        /sequence_batching \{[\s\S]*?\} \]\n\}/,
        'input [ { name: "z" data_type: TYPE_FP16 dims: [ 2 ] } ] output [ { name: "z_next" data_type: TYPE_FP16 dims: [ 2 ] } ]',
      )(remove('enc/contract.json')(files)),
  ],
  ['state-uninitialized', 'enc/config.pbtxt: sequence_batching.state[0]', enc(/initial_state.*/, '')],
  [
    'state-same-buffer',
    'enc/config.pbtxt: sequence_batching.state[0]',
    enc('initial_state', 'use_same_buffer_for_input_output: true initial_state'),
  ],
  ['state-instances', 'enc/config.pbtxt: instance_group', enc('count: 2', 'count: 1')],
  ['warmup-batch', 'det/config.pbtxt: model_warmup[0].batch_size', det('batch_size: 1 ', 'batch_size: 9 ')],
  [
    'warmup-input-unknown',
    'det/config.pbtxt: model_warmup[0].inputs["image"]',
    det('key: "images"', 'key: "image"'),
  ],
  ['warmup-input-missing', 'det/config.pbtxt: model_warmup[0].inputs', det('key: "images"', 'key: "image"')],
  ['warmup-dims', 'det/config.pbtxt: model_warmup[0]', det('[ 3, 640, 640 ]', '[ 3, 64, 64 ]')],
  [
    'warmup-dims',
    'det/config.pbtxt: model_warmup[0].inputs["images"]',
    det('[ 3, 640, 640 ]', '[ 640, 640 ]'),
  ],
  ['warmup-data', 'shape/config.pbtxt: model_warmup[0].inputs["size"]', remove('shape/warmup/size')],
  [
    'warmup-data',
    'shape/config.pbtxt: model_warmup[0].inputs["size"]',
    add({ 'shape/warmup/size': 'short' }),
  ],
  [
    'warmup-with-states',
    'enc/config.pbtxt: model_warmup[0]',
    enc(
      'backend',
      'model_warmup [ { batch_size: 1 inputs { key: "x" value { data_type: TYPE_FP16 dims: [ 128, 41 ] zero_data: true } } } ] backend',
    ),
  ],
  ['label-file', 'det/config.pbtxt: output[0].label_filename', remove('det/labels.txt')],
  ['label-count', 'det/config.pbtxt: output[0].label_filename', add({ 'det/labels.txt': 'cat\n' })],
  [
    'graphs-open-dims',
    'det/config.pbtxt: optimization.cuda',
    det('dynamic', 'optimization { cuda { graphs: true } } dynamic'),
  ],
  [
    'graph-batch',
    'det/config.pbtxt: optimization.cuda.graph_spec[0].batch_size',
    det('dynamic', 'optimization { cuda { graphs: true graph_spec { batch_size: 9 } } } dynamic'),
  ],
  [
    'graph-batch',
    'shape/config.pbtxt: optimization.cuda.graph_spec[0].batch_size',
    edit('shape/config.pbtxt', 'backend', 'optimization { cuda { graph_spec { batch_size: 1 } } } backend'),
  ],
  [
    'graphs-unbatched',
    'shape/config.pbtxt: optimization.cuda',
    edit('shape/config.pbtxt', 'backend', 'optimization { cuda { graphs: true } } backend'),
  ],
  [
    'allocation-strategy',
    'enc/config.pbtxt: parameters["execution_context_allocation_strategy"]',
    enc(
      'backend',
      'parameters { key: "execution_context_allocation_strategy" value { string_value: "on_profile_change" } } backend',
    ),
  ],
  [
    'format-dims',
    'det/config.pbtxt: input[0].format',
    det('dims: [ 3, -1, -1 ]', 'format: FORMAT_NCHW dims: [ 1, 3, -1, -1 ]'),
  ],
  [
    'cache-unsupported',
    'enc/config.pbtxt: response_cache',
    enc('backend', 'response_cache { enable: true } backend'),
  ],
  [
    'slot-utilization',
    'enc/config.pbtxt: sequence_batching.direct.minimum_slot_utilization',
    enc(/oldest \{[^}]*\}/, 'direct { minimum_slot_utilization: 2 }'),
  ],
  [
    'queue-policy',
    'det/config.pbtxt: dynamic_batching',
    det('dynamic_batching {', 'dynamic_batching { priority_levels: 2'),
  ],
  [
    'batch-io',
    'det/config.pbtxt: batch_input[0]',
    det('dynamic', 'batch_input [ { target_name: "n" data_type: TYPE_FP32 } ] dynamic'),
  ],
  [
    'control-input',
    'enc/config.pbtxt: sequence_batching.control_input[0]',
    enc('state [', 'control_input [ { name: "START" control [ { } ] } ] state ['),
  ],
  ['instance-gpus', 'det/config.pbtxt: instance_group[0].gpus', det('KIND_GPU', 'KIND_MODEL gpus: [ 0 ]')],
  ['ensemble-step', 'pipe/config.pbtxt: platform', pipe('platform', 'backend: "ensemble" platform')],
  ['ensemble-step', 'pipe/config.pbtxt: ensemble_scheduling.step[0].model_name', pipe('"det"', '"dog"')],
  [
    'ensemble-step',
    'pipe/config.pbtxt: ensemble_scheduling.step[1].input_map',
    pipe(
      'key: "scores" value: "s" } output_map { key: "best"',
      'key: "x" value: "s" } output_map { key: "best"',
    ),
  ],
  [
    'ensemble-step',
    'pipe/config.pbtxt: ensemble_scheduling.step[0].model_version',
    pipe('model_version: -1', 'model_version: 2'),
  ],
  [
    'ensemble-tensor',
    'pipe/config.pbtxt: ensemble_scheduling',
    pipe('input_map { key: "scores" value: "s"', 'input_map { key: "scores" value: "t"'),
  ],
  [
    'ensemble-shape',
    'pipe/config.pbtxt: ensemble_scheduling.step[1].input_map',
    edit('post/config.pbtxt', 'dims: [ 4 ]', 'dims: [ 5 ]'),
  ],
  [
    'ensemble-shape',
    'pipe/config.pbtxt: ensemble_scheduling.step[1].output_map',
    edit('post/config.pbtxt', 'TYPE_INT32', 'TYPE_INT64'),
  ],
  ['ensemble-shape', 'pipe/config.pbtxt: output[0]', pipe('dims: [ 1 ]', '')],
  [
    'ensemble-extra',
    'pipe/config.pbtxt: instance_group',
    pipe('ensemble_s', 'instance_group [ { count: 2 } ] ensemble_s'),
  ],
];

/** What differs from the sample and is no fault: at most infos are found. */
const fine: readonly (readonly [what: string, change: Fault, ...options: string[]])[] = [
  ['a configuration that Triton completes', edit('shape/config.pbtxt', /^(input|output) .*/gm, '')],
  ['no name, no instances, no version policy', det(/name: "det"|version_policy.*/, '')],
  [
    'a version-compatible plan on a newer TensorRT',
    (files) => ({
      ...remove(...Object.keys(files).filter((path) => /^(det|shape|pipe)/.test(path)))(files),
      ...engineFiles('enc/3/model.plan', trtPlan(3, '10.9.0.34'), {
        ...encoder,
        recipe: { ...encoder.recipe, flags: ['version-compatible'] },
      }),
    }),
    '--tensorrt',
    '10.13',
  ],
  [
    'a hardware-compatible plan for a newer GPU',
    (files) => ({
      ...files,
      ...engineFiles('enc/3/model.plan', trtPlan(3), {
        ...encoder,
        capability: 80,
        recipe: { ...encoder.recipe, hardwareCompatibility: 'ampere-plus' },
      }),
    }),
    '--gpu',
    'L4',
  ],
  [
    'a policy that asks for more versions than there are',
    edit('shape/config.pbtxt', 'backend', 'version_policy { latest { num_versions: 3 } } backend'),
  ],
  [
    "parameters of the back end, and of others' own",
    enc(
      'backend',
      'parameters { key: "metadata" value { string_value: "task: detect" } } parameters { key: "execution_context_allocation_strategy" value { string_value: "STATIC" } } backend',
    ),
  ],
  ['a version that is not served', add({ 'det/0/sm_89.plan': 'none' })],
  ['dims that a profile takes', det('[ 3, -1, -1 ]', '[ 3, 640, 640 ]')],
  [
    'graphs with their shapes',
    det('dynamic', 'optimization { cuda { graphs: true graph_spec { batch_size: 1 } } } dynamic'),
  ],
];

describe('triton check', () => {
  it('has every code in its page, with its severity, and a planted fault for each', () => {
    const page = readFileSync(new URL('../../../docs/triton.md', import.meta.url), 'utf8');
    const listed = Array.from(
      page.matchAll(/^\| `([a-z-]+)` \| (error|warning|info) \|/gm),
      ([, code, severity]) => [code, severity],
    );
    expect(listed).toEqual(Object.entries(findingCodes).map(([code, { severity }]) => [code, severity]));
    const planted = new Set(faults.map(([code]) => code));
    expect(Object.keys(findingCodes).filter((code) => !planted.has(code))).toEqual([]);
  });

  it('finds nothing in a repository without a fault', async () => {
    const result = await check(goodRepository(), '--gpu', 'L4', '--tensorrt', '10.13');
    expect(result.findings).toEqual([]);
    expect(result).toMatchObject({
      outcome: 'pass',
      exitCode: 0,
      container: { tensorrt: '10.13', tags: [] },
    });
    expect(result.models.map(({ name, backend, versions }) => [name, backend, versions])).toEqual([
      ['det', 'tensorrt', ['1']],
      ['enc', 'tensorrt', ['3']],
      ['pipe', 'ensemble', ['1']],
      ['post', 'python', ['1']],
      ['shape', 'tensorrt', ['1']],
    ]);
    expect(result.models[0]!.plans).toMatchObject([
      { file: 'det/1/sm_89.plan', capability: '8.9', tensorrt: '10.13.3.9' },
      { file: 'det/1/sm_90.plan', capability: '9.0' },
    ]);
    const { ok: _ok, exitCode: _exitCode, command: _command, ...own } = { ok: 0, command: 0, ...result };
    expect(tritonCheckSchema.safeParse(own).success).toBe(true);
  });

  it.each(fine.map(([what, change, ...options]) => ({ what, change, options })))(
    'finds no fault in $what',
    async ({ change, options }) => {
      const { findings } = await check(change(goodRepository()), ...options);
      expect(findings.filter(({ severity }) => severity !== 'info')).toEqual([]);
    },
  );

  it('finds a state that only the known answer states', async () => {
    const knownAnswer = {
      ...{ schema: 'trtforge.known-answer/1' as const, reference: 'r', precision: 'fp32', seed: 1 },
      ...{ generator: 1 as const, cases: [], rows: null, state: { z: 'z_next' }, left: [], builtOn: null },
    };
    const files = engineFiles('enc/3/model.plan', trtPlan(3), { ...encoder, knownAnswer });
    const change = enc(/state \[[\s\S]*?\} \]\n/, '');
    const { findings } = await check(change(remove('enc/contract.json')({ ...goodRepository(), ...files })));
    expect(findings.map(({ code }) => code)).toContain('state-not-fed');
  });

  it('is a check of the gate', async () => {
    const { out } = await trtforge(['triton', 'check', writeFiles(folder, goodRepository()), '--json']);
    const bad = await trtforge([
      'triton',
      'check',
      writeFiles(folder, det('"8.9"', '"89"')(goodRepository())),
      '--json',
    ]);
    writeFiles(folder, {
      'policy.yaml': 'schema: trtforge.gate-policy/1\nextends: triton-check\n',
      'good.json': out,
      'bad.json': bad.out,
    });
    const gate = async (name: string) =>
      (await trtforge(['gate', join(folder, 'policy.yaml'), `check=${join(folder, name)}`])).exitCode;
    expect([await gate('good.json'), await gate('bad.json')]).toEqual([0, 1]);
  });

  it.each(['L40S', 'nvidia l40s', 'sm_89', '8.9', '89'])('takes --gpu %s', async (gpu) => {
    const result = await check(engine({ gpu: 'NVIDIA L40S' })(goodRepository()), '--gpu', gpu);
    expect(result.findings).toEqual([]);
  });

  it.each([
    ['--gpu', 'fast'],
    ['--gpu', 'sm_'],
    ['--tensorrt', 'new'],
  ])('rejects %s %s', async (...options) => {
    const { exitCode } = await trtforge([
      'triton',
      'check',
      writeFiles(folder, goodRepository()),
      ...options,
    ]);
    expect(exitCode).toBe(2);
  });

  it('rejects the folder of one model, and what is not a folder', async () => {
    writeFiles(folder, goodRepository());
    expect(await codeOfLine(['triton', 'check', join(folder, 'det')])).toBe('TF_USAGE');
    expect(await codeOfLine(['triton', 'check', join(folder, 'none')])).toBe('TF_FILE_NOT_FOUND');
  });

  it('names the containers whose TensorRT is stated, each with its source', async () => {
    const { container } = await check(goodRepository(), '--tensorrt', '10.0.1');
    expect(container.tags).toEqual([
      {
        image: 'tritonserver',
        tag: '24.05-py3',
        tensorrt: '10.0.1.6',
        source: expect.stringMatching(/^https:/),
        date: '2024-06-25',
      },
    ]);
  });

  it('prints findings with their remedies for a reader', async () => {
    const { out } = await trtforge([
      'triton',
      'check',
      writeFiles(folder, det('"8.9"', '"89"')(goodRepository())),
    ]);
    expect(out).toContain('capability-key');
    expect(out).toContain('det/config.pbtxt: cc_model_filenames');
  });

  it.each(faults.map(([code, where, fault, ...options]) => ({ code, where, fault, options })))(
    '$code at "$where"',
    async ({ code, where, fault, options }) => {
      const result = await check(fault(goodRepository()), ...options);
      const found = result.findings.filter((each) => each.code === code).map((each) => each.where);
      expect(found, JSON.stringify(result.findings, null, 1)).toContain(where);
      const hasError = result.findings.some(({ severity }) => severity === 'error');
      expect([result.outcome, result.exitCode]).toEqual(hasError ? ['fail', 1] : ['pass', 0]);
    },
  );
});
