import type { FleetStatus } from '../../../src/products/fleet/plan-schema.js';
import type { Rehearsal } from '../../../src/products/fleet/rehearsal-result.js';

const MODELS = ['models/ch_PP-OCRv4_det_infer.onnx', 'models/yolo.onnx', 'speech/model_meta.json: encoder'];
export const TARGETS = ['l4', 'a10', 'h100', 'rtx-4090', 'rtx-5090', 't4', 'orin'];

export const LACKS = 'node vm lacks tensorrt 10.13.3.9.';
const NEVER = 'remote store: miss (s3://team/engines has no engine of this model)';

type Job = FleetStatus['jobs'][number];

/** Of each model and target one engine: most are there; the others failed, were refused or are missing. */
function standing(row: number, column: number, name: string): Partial<Job> {
  const index = row * TARGETS.length + column;
  if (column >= 5)
    return {
      state: 'missing',
      why: [NEVER, `nearest there: engine ${index}`],
      bytes: null,
      buildMs: null,
      builtAt: null,
      check: null,
    };
  if (column === 3)
    return {
      state: 'failed',
      why: [`${name} is not built: ${LACKS}`],
      node: 'vm',
      bytes: null,
      buildMs: null,
      builtAt: null,
    };
  if (index === 1) return { state: 'refused', why: ['gpu-time is 1.3, above 1.1.'], gate: 'fail' };
  return {};
}

/** The status of a fleet of 21 engines; `hostile` is in every text that comes from outside. */
export const sampleStatus = (hostile = ''): FleetStatus => ({
  schema: 'trtforge.fleet-status/1',
  version: '0.1.0',
  plan: 'a'.repeat(32),
  address: `s3://team/engines/plan.json${hostile}`,
  at: '2026-11-21T01:46:01.000Z',
  outcome: 'fail',
  jobs: MODELS.flatMap((model, row) =>
    TARGETS.map((on, column): Job => {
      const name = `engine-${row}-${on}${hostile}`;
      return {
        index: row * TARGETS.length + column,
        name,
        identity: 'b'.repeat(64),
        model: `${model}${hostile}`,
        precision: 'fp16',
        on: `${on}${hostile}`,
        state: 'have',
        why: [],
        bytes: 1_000_000 * (1 + row * 7 + column),
        buildMs: 61_000 / (1 + column),
        builtAt: `2026-${10 + (column % 2)}-0${1 + column}T00:00:00.000Z`,
        check: 'pass',
        gate: null,
        node: null,
        gpu: null,
        ...standing(row, column, name),
      };
    }),
  ),
  schedulers: [{ name: 'slurm', why: null }],
});

/** A rehearsal of two engines: one is no-go by its time, of the other a step was not done. */
export const sampleRehearsal: Rehearsal = {
  schema: 'trtforge.fleet-rehearse/1',
  version: '0.1.0',
  from: 'tensorrt@8.6.1.6',
  to: 'tensorrt@10.6.0.26',
  gpu: 'NVIDIA L4',
  at: '2026-11-21T01:46:01.000Z',
  outcome: 'fail',
  reasons: ['gpu-time of detector is 1.3, above 1.1.'],
  engines: MODELS.slice(0, 2).map((model, index) => ({
    name: `engine-${index}`,
    identity: 'b'.repeat(64),
    model,
    on: 'l4',
    before: index === 0 ? { name: 'old', bytes: 9_000_000, buildMs: 61_000 } : null,
    after: { bytes: 8_000_000, buildMs: 50_000 },
    verify: 'pass',
    answer: index === 0 ? 'pass' : null,
    ratio: index === 0 ? { ratio: 1.3, low: 1.2, high: 1.4 } : null,
    notDone: index === 0 ? [] : ['the old engine does not load here.'],
  })),
  gate: {
    schema: 'trtforge.gate/1',
    policy: 'rehearsal',
    extended: [],
    dropped: [],
    baseline: null,
    baselineUpdated: false,
    day: '2026-11-21',
    results: [],
    outcome: 'fail',
    counts: { pass: 0, waived: 0, warn: 0, inconclusive: 0, fail: 1, skipped: 0 },
    findings: [
      {
        check: 'gpu-time',
        why: null,
        result: 'engine-0.bench',
        field: 'ratio',
        at: 'ratio',
        value: 1.3,
        unit: null,
        baseline: null,
        rule: 'limit',
        outcome: 'fail',
        unwaived: 'fail',
        message: 'ratio is 1.3, above 1.1',
        waiver: null,
        line: null,
      },
    ],
    waivers: [],
    reasons: [],
    repeat: null,
  },
  repeat: 'trtforge fleet rehearse engines.yaml --from tensorrt@8.6.1.6 --to tensorrt@10.6.0.26',
};
