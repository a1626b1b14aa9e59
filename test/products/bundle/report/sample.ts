import type { ChainCheck } from '../../../../src/products/bundle/chain-schema.js';
import type { BundleReport, ComponentReport } from '../../../../src/products/bundle/result.js';
import type { ForgeResult, ReportPhase } from '../../../../src/report/forge-result.js';
import { sampleResult } from '../../../report/sample.js';

const env: BundleReport['env'] = {
  tensorrt_version: '10.6.0.26',
  cuda_version: '12.8',
  gpu: 'NVIDIA H200',
  driver: '570.86',
  compute_capability: '9.0',
  product: 'tensorrt',
  toolchain: 'TENSORRT_HOME',
  platform: 'linux x64',
};

const done = (name: string, startMs: number, ms: number): ReportPhase => ({
  name,
  status: 'done',
  startMs,
  ms,
  detail: '',
  steps: [],
});

/** The run of forge over one component, in the order of the bundle. */
const forged = (place: number): ForgeResult =>
  sampleResult({
    verification: null,
    report: null,
    files: [],
    phases: [
      done('inspect', 300 + 500 * place, 100),
      done('resolve', 400 + 500 * place, 400),
      done('convert', 2000 + 13000 * place, 2800),
      done('build', 4800 + 13000 * place, 10200),
      done('smoke run', 41000 + 100 * place, 100),
    ],
  });

const names = ['encoder', 'predictor', 'joint'];

export function sampleComponent(component: string, more: Partial<ComponentReport> = {}): ComponentReport {
  return {
    component,
    status: 'built',
    onnx: `out/${component}.onnx`,
    engine: `engines/${component}.engine`,
    commands: {
      build: ['trtexec', `--onnx=out/${component}.onnx`],
    },
    engine_bytes: 25_000_000,
    engine_human: '23.84 MiB',
    profile: {
      min: { audio_signal: [1, 128, 16] },
      opt: { audio_signal: [1, 128, 64] },
      max: { audio_signal: [1, 128, 256] },
    },
    profile_index: 0,
    timings_sec: { build: 12.5, smoke: 0.04, convert: 0.8 },
    logs: {
      build: `engines/build_logs/${component}.log`,
      smoke: `engines/build_logs/${component}_smoke.log`,
    },
    env,
    engine_sha256: 'cd'.repeat(32),
    onnx_sha256: 'ef'.repeat(32),
    external_data: { files: 3, bytes: 48_000_000, sha256: '23'.repeat(32) },
    layers: 412,
    workspace_bytes: null,
    timing_cache_state: 'hit',
    staging: null,
    smoke: {
      ran: 'engine',
      backend: 'TensorRT 10.6.0.26 on NVIDIA H200',
      ms: 40,
      instead: null,
      outputs: [{ name: 'encoder_output', dtype: 'float16', shape: [1, 1024, 64], finite: true }],
    },
    warnings: [],
    forge: forged(Math.max(0, names.indexOf(component))),
    ...more,
  };
}

export function sampleCheck(more: Partial<ChainCheck> = {}): ChainCheck {
  return {
    candidate: 'engines',
    reference_backend: 'ONNX Runtime 1.30.0 (CPU)',
    candidate_backend: 'TensorRT 10.6.0.26 on NVIDIA H200',
    seed: 0,
    samples: 2,
    frames: 256,
    decisions: 40,
    emitted_tokens: 12,
    token_agreement: 40,
    duration_agreement: 40,
    equal_sequences: 2,
    unequal_sequences: [],
    min_agreement: 0.99,
    drift_limit: 0.015,
    differences: [],
    smallest_margin: 0.1,
    components: [
      { component: 'encoder', token_changes: 0, duration_changes: 0, max_abs: 0.04, relative_rms: 0.0015 },
      {
        component: 'predictor',
        token_changes: 0,
        duration_changes: 0,
        max_abs: 0.0001,
        relative_rms: 2.4e-5,
      },
      { component: 'joint', token_changes: 0, duration_changes: 0, max_abs: 0.003, relative_rms: 5.4e-4 },
    ],
    drifts: 'encoder',
    outcome: 'pass',
    reasons: [],
    ms: 1200,
    ...more,
  };
}

/** A bundle that was built and decoded with its engines: every part of the page is filled. Tests change what they are about. */
export function sampleBundle(more: Partial<BundleReport> = {}): BundleReport {
  return {
    schema: 'trtforge.bundle/1',
    version: '0.1.0',
    exitCode: 0,
    meta: 'out/model_meta.json',
    model_name: 'parakeet',
    onnx_dir: 'out',
    outdir: 'engines',
    report: 'engines/build_report.json',
    timing_cache: 'engines/timing.cache',
    device: 0,
    fp16: true,
    precision: 'fp16',
    builder: 'native',
    target: 'tensorrt:sm_90',
    builder_optimization_level: null,
    workspace_mb: null,
    trtexec: { path: null },
    staging_dir: null,
    started_utc: '20261121_014601',
    finished_utc: '20261121_014644',
    total_sec: 43,
    phases: [done('read', 100, 200), done('chained check', 41500, 1500)],
    repeat: 'trtforge bundle forge out/model_meta.json --outdir engines --precision fp16',
    env,
    environment: [
      { name: 'GPU', text: 'NVIDIA H200 (sm_90)' },
      { name: 'driver', text: '570.86' },
    ],
    components: names.map((name) => sampleComponent(name)),
    checks: [sampleCheck()],
    not_checked: [],
    mismatches: [],
    warnings: [
      'The meta file does not say how many mel bins there are, so the encoder is taken at its word.',
    ],
    outcome: 'pass',
    failure: null,
    ...more,
  };
}

/** The same, deciding otherwise than its models: once wrongly, once by a low margin; one component gives no numbers. */
export function failedBundle(): BundleReport {
  const [encoder, predictor, joint] = sampleCheck().components;
  return sampleBundle({
    outcome: 'fail',
    exitCode: 1,
    checks: [
      sampleCheck({
        outcome: 'fail',
        token_agreement: 39,
        duration_agreement: 39,
        equal_sequences: 1,
        unequal_sequences: [{ sample: 0, index: 3 }],
        reasons: ['1 of 80 decisions differs by more than a low margin.'],
        differences: [
          {
            sample: 0,
            index: 3,
            step: 9,
            what: 'token',
            reference: 3,
            candidate: 31,
            reference_margin: 0.4,
            candidate_margin: 0.02,
            movement: 0.01,
            low_margin: false,
          },
          {
            sample: 1,
            index: 7,
            step: 12,
            what: 'duration',
            reference: 1,
            candidate: 2,
            reference_margin: 0.001,
            candidate_margin: 0.0003,
            movement: 0.01,
            low_margin: true,
          },
        ],
        components: [
          { ...encoder!, max_abs: null, relative_rms: null },
          predictor!,
          { ...joint!, relative_rms: 0.031, token_changes: 1 },
        ],
        drifts: 'encoder',
      }),
    ],
  });
}

/** The predictor could not be built: the encoder is there, the joint network was not reached. */
export function stoppedBundle(): BundleReport {
  const failure = {
    component: 'predictor',
    step: 'build' as const,
    code: 'TF_BUILD_FAILED',
    message: 'TensorRT could not build out/predictor.onnx.\nNode LSTM_12 has no implementation.',
    remedy: 'Read build_logs/predictor.log.',
    issues: [
      {
        id: 'no-implementation',
        severity: 'error' as const,
        cause: 'No tactic implements the node.',
        remedy: 'Give the builder more workspace.',
        versions: 'all',
        source: 'https://docs.nvidia.com/',
        count: 1,
        lines: [{ line: 3, text: 'Could not find any implementation' }],
        model: null,
      },
    ],
  };
  const nothing = {
    engine_bytes: null,
    engine_human: null,
    engine_sha256: null,
    layers: null,
    timing_cache_state: null,
    smoke: null,
    timings_sec: { build: null, smoke: null, convert: null },
  } as const;
  const ran = (place: number, until: number, more: readonly ReportPhase[]): ForgeResult => {
    const result = forged(place);
    return { ...result, phases: [...result.phases.slice(0, until), ...more] };
  };
  const unreached = (name: string): ReportPhase => ({
    ...done(name, 0, 0),
    status: 'not-reached',
    startMs: null,
    ms: null,
    detail: 'the run stopped in predictor: build',
  });
  return sampleBundle({
    outcome: 'error',
    exitCode: 3,
    error: `${failure.code}: ${failure.message}`,
    failure,
    checks: [],
    total_sec: 28,
    phases: [done('read', 100, 200)],
    components: [
      sampleComponent('encoder', { smoke: null, forge: ran(0, 4, [unreached('smoke run')]) }),
      sampleComponent('predictor', {
        ...nothing,
        status: 'failed',
        forge: {
          ...ran(1, 3, [{ ...done('build', 17800, 10200), status: 'failed', detail: failure.message }]),
          build: null,
        },
      }),
      sampleComponent('joint', {
        ...nothing,
        status: 'not-reached',
        forge: { ...ran(2, 2, [unreached('build')]), build: null, conversion: null },
      }),
    ],
  });
}
