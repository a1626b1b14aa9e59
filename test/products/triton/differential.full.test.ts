import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import type { TritonCheck } from '../../../src/products/triton/check/result.js';
import type { TritonTry } from '../../../src/products/triton/try/result.js';
import { describeWith } from '../../support/needs.js';
import { trtforge } from '../../support/trtforge.js';
import {
  detector,
  encoder,
  engineFiles,
  type PassportFacts,
  trtPlan,
  writeFiles,
} from './sample-repository.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-triton-differential-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const plain = `backend: "tensorrt"
max_batch_size: 8
input [ { name: "images" data_type: TYPE_FP32 dims: [ 3, -1, -1 ] } ]
output [
  { name: "scores" data_type: TYPE_FP32 dims: [ 4 ] },
  { name: "count" data_type: TYPE_INT32 dims: [ 1 ] reshape { shape: [ ] } }
]
instance_group [ { kind: KIND_GPU count: 1 profile: [ "0", "1" ] } ]
`;
const sequence = `backend: "tensorrt"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP16 dims: [ 128, -1 ] } ]
output [ { name: "y" data_type: TYPE_FP16 dims: [ 4 ] } ]
sequence_batching {
  oldest { max_candidate_sequences: 8 }
  state [ {
    input_name: "z" output_name: "z_next" data_type: TYPE_FP16 dims: [ 2 ]
    initial_state { name: "zeros" data_type: TYPE_FP16 dims: [ 2 ] zero_data: true }
  } ]
}
`;
const ensemble = `platform: "ensemble"
max_batch_size: 8
input [ { name: "image" data_type: TYPE_FP32 dims: [ 3, 640, 640 ] } ]
output [ { name: "s" data_type: TYPE_FP32 dims: [ 4 ] } ]
ensemble_scheduling { step [
  { model_name: "plain" model_version: -1 input_map { key: "images" value: "image" } output_map { key: "scores" value: "s" } }
] }
`;
const bases = { plain, sequence, ensemble };

const queue = (policy: string) => `dynamic_batching { ${policy} }`;
const control = (text: string) => ['oldest {', `control_input [ ${text} ] oldest {`] as const;
const ragged = ['dims: [ 3, -1, -1 ]', 'dims: [ 3, -1, -1 ] allow_ragged_batch: true'] as const;
const start = 'kind: CONTROL_SEQUENCE_START';

/** What is added to a configuration, or replaced in it. */
type Variant = readonly [
  name: string,
  base: keyof typeof bases,
  ...change: readonly [string] | readonly [string | RegExp, string],
];

const variants: readonly Variant[] = [
  ['plain', 'plain', ''],
  ['sequence', 'sequence', ''],
  ['ensemble', 'ensemble', ''],
  ['nchw', 'plain', 'dims: [ 3, -1', 'format: FORMAT_NCHW dims: [ 3, -1'],
  ['nchw-2-dims', 'plain', 'dims: [ 3, -1, -1 ]', 'format: FORMAT_NCHW dims: [ 3, -1 ]'],
  ['nhwc-4-dims', 'plain', 'dims: [ 3, -1, -1 ]', 'format: FORMAT_NHWC dims: [ 1, -1, -1, 3 ]'],
  ['cache', 'plain', 'response_cache { enable: true }'],
  ['cache-off', 'sequence', 'response_cache { enable: false }'],
  ['cache-sequence', 'sequence', 'response_cache { enable: true }'],
  [
    'cache-decoupled',
    'plain',
    'response_cache { enable: true } model_transaction_policy { decoupled: true }',
  ],
  ['cache-ensemble', 'ensemble', 'response_cache { enable: true }'],
  [
    'graphs',
    'plain',
    'optimization { cuda { graphs: true graph_spec { batch_size: 8 input { key: "images" value { dim: [ 3, 640, 640 ] } } } } }',
  ],
  [
    'graph-above',
    'plain',
    'optimization { cuda { graphs: true graph_spec { batch_size: 9 input { key: "images" value { dim: [ 3, 640, 640 ] } } } } }',
  ],
  ['slots', 'sequence', /oldest \{[^}]*\}/, 'direct { minimum_slot_utilization: 0.5 }'],
  ['slots-above', 'sequence', /oldest \{[^}]*\}/, 'direct { minimum_slot_utilization: 1.5 }'],
  ['slots-below', 'sequence', /oldest \{[^}]*\}/, 'direct { minimum_slot_utilization: -0.5 }'],
  ['order', 'plain', queue('preserve_ordering: true')],
  [
    'order-priorities',
    'plain',
    queue('preserve_ordering: true priority_levels: 2 default_priority_level: 1'),
  ],
  [
    'order-one-priority',
    'plain',
    queue('preserve_ordering: true priority_levels: 1 default_priority_level: 1'),
  ],
  [
    'order-delay',
    'plain',
    queue(
      'preserve_ordering: true default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 5 }',
    ),
  ],
  [
    'order-delay-never',
    'plain',
    queue('preserve_ordering: true default_queue_policy { timeout_action: DELAY }'),
  ],
  [
    'order-delay-priority',
    'plain',
    queue(
      'preserve_ordering: true priority_levels: 1 default_priority_level: 1 priority_queue_policy { key: 1 value { timeout_action: DELAY default_timeout_microseconds: 5 } }',
    ),
  ],
  ['priority', 'plain', queue('priority_levels: 3 default_priority_level: 2')],
  ['priority-default-absent', 'plain', queue('priority_levels: 3')],
  ['priority-default-above', 'plain', queue('priority_levels: 3 default_priority_level: 4')],
  [
    'priority-queue-zero',
    'plain',
    queue('priority_levels: 3 default_priority_level: 1 priority_queue_policy { key: 0 value { } }'),
  ],
  [
    'priority-queue-above',
    'plain',
    queue('priority_levels: 3 default_priority_level: 1 priority_queue_policy { key: 4 value { } }'),
  ],
  ['sequence-order', 'sequence', 'oldest {', 'oldest { preserve_ordering: true'],
  ['backend-ensemble', 'ensemble', 'platform', 'backend'],
  ['backend-and-platform-ensemble', 'ensemble', 'backend: "ensemble"'],
  ['ensemble-other-backend', 'ensemble', 'platform: "ensemble"', 'backend: "tensorrt"'],
  ['ensemble-nothing', 'ensemble', 'platform: "ensemble"', ''],
  ['platform-ensemble-without-steps', 'plain', 'backend: "tensorrt"', 'platform: "ensemble"'],
  [
    'batch-input',
    'plain',
    'batch_input [ { kind: BATCH_ELEMENT_COUNT target_name: "n" data_type: TYPE_FP32 source_input: "images" } ]',
  ],
  [
    'batch-input-two-sources',
    'plain',
    'batch_input [ { kind: BATCH_ELEMENT_COUNT target_name: "n" data_type: TYPE_FP32 source_input: [ "images", "images" ] } ]',
  ],
  [
    'batch-input-no-source',
    'plain',
    'batch_input [ { kind: BATCH_ELEMENT_COUNT target_name: "n" data_type: TYPE_FP32 } ]',
  ],
  [
    'batch-input-unknown-source',
    'plain',
    'batch_input [ { kind: BATCH_ELEMENT_COUNT target_name: "n" data_type: TYPE_FP32 source_input: "pictures" } ]',
  ],
  [
    'batch-input-type',
    'plain',
    'batch_input [ { kind: BATCH_ITEM_SHAPE target_name: "n" data_type: TYPE_FP16 source_input: "images" } ]',
  ],
  [
    'batch-input-int',
    'plain',
    'batch_input [ { kind: BATCH_ITEM_SHAPE_FLATTEN target_name: "n" data_type: TYPE_INT32 source_input: "images" } ]',
  ],
  [
    'batch-input-no-target',
    'plain',
    'batch_input [ { kind: BATCH_ELEMENT_COUNT data_type: TYPE_FP32 source_input: "images" } ]',
  ],
  [
    'batch-input-two-targets',
    'plain',
    'batch_input [ { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: [ "n", "m" ] data_type: TYPE_FP32 source_input: "images" } ]',
  ],
  [
    'batch-output',
    'plain',
    'batch_output [ { kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: "scores" source_input: "images" } ]',
  ],
  [
    'batch-output-two-sources',
    'plain',
    'batch_output [ { kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: "scores" source_input: [ "images", "images" ] } ]',
  ],
  [
    'batch-output-unknown-target',
    'plain',
    'batch_output [ { kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: "none" source_input: "images" } ]',
  ],
  [
    'batch-output-unknown-source',
    'plain',
    'batch_output [ { kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: "scores" source_input: "pictures" } ]',
  ],
  [
    'batch-output-no-target',
    'plain',
    'batch_output [ { kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "images" } ]',
  ],
  ['ragged', 'plain', ...ragged],
  ['control', 'sequence', ...control(`{ name: "START" control [ { ${start} fp32_false_true: [ 0, 1 ] } ] }`)],
  [
    'control-twice',
    'sequence',
    ...control(
      `{ name: "START" control [ { ${start} fp32_false_true: [ 0, 1 ] } ] }, { name: "S2" control [ { ${start} fp32_false_true: [ 0, 1 ] } ] }`,
    ),
  ],
  [
    'control-two-values',
    'sequence',
    ...control(
      `{ name: "START" control [ { ${start} fp32_false_true: [ 0, 1 ] int32_false_true: [ 0, 1 ] } ] }`,
    ),
  ],
  ['control-no-values', 'sequence', ...control(`{ name: "START" control [ { ${start} } ] }`)],
  [
    'control-one-value',
    'sequence',
    ...control(`{ name: "START" control [ { ${start} fp32_false_true: [ 1 ] } ] }`),
  ],
  ['control-empty', 'sequence', ...control('{ name: "START" }')],
  ['control-no-name', 'sequence', ...control(`{ control [ { ${start} fp32_false_true: [ 0, 1 ] } ] }`)],
  [
    'control-corrid',
    'sequence',
    ...control('{ name: "ID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] }'),
  ],
  [
    'control-corrid-type',
    'sequence',
    ...control('{ name: "ID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_FP32 } ] }'),
  ],
  [
    'control-corrid-untyped',
    'sequence',
    ...control('{ name: "ID" control [ { kind: CONTROL_SEQUENCE_CORRID } ] }'),
  ],
  [
    'control-ready-and-start',
    'sequence',
    ...control(
      `{ name: "START" control [ { ${start} fp32_false_true: [ 0, 1 ] }, { kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0, 1 ] } ] }`,
    ),
  ],
  [
    'control-corrid-twice',
    'sequence',
    ...control(
      '{ name: "ID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT64 } ] }, { name: "S2" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT64 } ] }',
    ),
  ],
  [
    'control-corrid-values',
    'sequence',
    ...control(
      '{ name: "ID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 int32_false_true: [ 0, 1 ] } ] }',
    ),
  ],
  [
    'control-start-type',
    'sequence',
    ...control(`{ name: "START" control [ { ${start} fp32_false_true: [ 0, 1 ] data_type: TYPE_FP32 } ] }`),
  ],
  ['idle', 'sequence', 'sequence_batching {', 'sequence_batching { max_sequence_idle_microseconds: 5'],
  ['candidates-zero', 'sequence', 'max_candidate_sequences: 8', 'max_candidate_sequences: 0'],
  ['delay', 'plain', queue('max_queue_delay_microseconds: 100')],
  ['versions', 'plain', 'version_policy { all { } }'],
  ['io-twice', 'plain', /output \[/, 'output [ { name: "count" data_type: TYPE_INT32 dims: [ 1 ] },'],
  ['group-count-negative', 'plain', 'count: 1', 'count: -1'],
  ['rate', 'plain', 'count: 1', 'count: 1 rate_limiter { resources [ { name: "R" count: 1 } ] priority: 1 }'],
];

/** An engine that has the controls that a configuration names. */
const withControls = (text: string, engine: PassportFacts | undefined): PassportFacts | undefined => {
  const controls = ['START', 'S2', 'ID'].filter((name) => text.includes(`name: "${name}"`));
  const inputs = controls.map((name) => ({ name, dtype: 'float32', shape: [null, 1] }));
  return engine && { ...engine, inputs: [...engine.inputs, ...inputs] };
};

/** What the core takes, and the back end or nobody serves. */
const beyondCore: readonly string[] = ['graph-above', 'io-twice'];

describeWith('triton', "Triton's own core beside the check", (server) => {
  it('rejects what the check names as an error, and nothing else', async () => {
    const engines = { plain: detector, sequence: encoder, ensemble: undefined };
    const repository = join(folder, 'repository');
    for (const [name, base, from, to] of variants) {
      const text = to === undefined ? `${bases[base]}${from}\n` : bases[base].replace(from, to);
      const engine = withControls(text, engines[base]);
      const files = engine === undefined ? { '1/': '' } : engineFiles('1/model.plan', trtPlan(1), engine);
      writeFiles(join(repository, name), { ...files, 'config.pbtxt': text });
    }
    const environment = {
      ...process.env,
      PATH: `${server}${delimiter}${process.env.PATH}`,
      XDG_CACHE_HOME: join(folder, 'cache'),
    };
    const json = async <T>(verb: string) =>
      (await trtforge(['triton', verb, repository, '--json'], environment)).json<T>();
    const tried = await json<TritonTry>('try');
    const { findings } = await json<TritonCheck>('check');
    const table = variants.map(([name]) => {
      const { ready, reason } = tried.models.find((model) => model.name === name)!;
      const codes = findings.flatMap(({ code, severity, where }) =>
        severity === 'error' && where.startsWith(`${name}/`) ? [code] : [],
      );
      return { name, core: ready ? 'loads' : (reason ?? ''), check: codes.join(' ') };
    });
    writeFileSync(process.env.TRITON_TABLE ?? join(folder, 'table.json'), JSON.stringify(table, null, 1));
    expect(
      table.filter(({ core, check }) => (core === 'loads') !== (check === '')).map(({ name }) => name),
    ).toEqual(beyondCore);
  }, 300_000);
});
