import type { VerifiedOutput } from '../../src/quality/verify/result.js';
import type { ForgeResult } from '../../src/report/forge-result.js';
import { samplePassport } from '../support/sample-engine.js';

const passport = samplePassport(new Uint8Array(1));

/** Bins of a log-normal error around `center`, a tenth of a decade wide: the shape that FP16 rounding gives. */
function bellBins(center: number, elements: number, reach = 1.6) {
  const bins: { from: number; to: number; count: number }[] = [];
  for (let step = -24; step <= Math.round(reach * 10); step += 1) {
    const from = center * 10 ** (step / 10);
    const weight = Math.exp(-((step / 7) ** 2) * (step > 0 ? 2.2 : 0.7));
    bins.push({ from, to: from * 10 ** 0.1, count: Math.round((elements * weight) / 14) });
  }
  return bins;
}

function verifiedOutput(more: Partial<VerifiedOutput> = {}): VerifiedOutput {
  return {
    name: 'logits',
    dtype: 'float32',
    candidateDtype: 'float32',
    shape: [8, 1000],
    elements: 8000,
    outcome: 'pass',
    pass: true,
    checks: [
      { statistic: 'p99 of non-zeros', measured: 0.00119, limit: 0.005, pass: true },
      { statistic: 'max', measured: 0.00212, limit: 0.01, pass: true },
      // Limits that lie close together, with the longest labels there are.
      {
        ...{ statistic: 'RMS', measured: 0.0004, limit: 0.0062, pass: true },
        ...{ slice: { axis: 1, position: 4 }, sample: 12 },
      },
      { statistic: 'RMS', measured: 0.0004, limit: 0.0058, pass: true, sample: 12 },
    ],
    tolerance: { absolute: 0.005, relative: 0, why: 'FP16 against FP32' },
    planted: [],
    reasons: [],
    statistics: [
      { name: 'max', amount: 0.00212 },
      { name: 'mean', amount: 0.000312 },
      { name: 'median', amount: 0.000251 },
      { name: 'p99', amount: 0.00119 },
      { name: 'SNR in dB', amount: 65.1 },
    ],
    histogram: { bins: bellBins(2.8e-4, 8000, 0.9), zeros: 37, nonFinite: 0 },
    ...more,
  };
}

/** A failure whose limits lie on one another. */
export function closeLimits(): ForgeResult {
  const result = failedSample();
  const limits = { max: 0.236, p99: 0.235, 'p99 of non-zeros': 0.231, RMS: 0.23, mean: 0.228 };
  const checks = Object.entries(limits).map(([statistic, limit]) => ({
    ...{ statistic, limit, measured: 0.24, pass: false },
  }));
  const output = verifiedOutput({ outcome: 'fail', pass: false, checks });
  return { ...result, verification: { ...result.verification!, outputs: [output] } };
}

/** A forge of ResNet-50 that passed: every part of the report is filled. Tests change what they are about. */
export function sampleResult(more: Partial<ForgeResult> = {}): ForgeResult {
  return {
    schema: 'trtforge.forge/2',
    version: '0.1.0',
    startedAt: '2026-11-21T01:46:01.000Z',
    totalMs: 6284,
    request: { model: 'models/resnet50.onnx', precision: 'fp16', target: 'tensorrt-rtx:sm_89' },
    runRoot: 'runs/resnet50-fp16',
    engine: 'runs/resnet50-fp16/engines/resnet50_1_fp16_sm_89_1.7.1.116.engine',
    passport: 'runs/resnet50-fp16/engines/resnet50_1_fp16_sm_89_1.7.1.116.engine.passport.json',
    report: 'runs/resnet50-fp16/report.html',
    exitCode: 0,
    verdict: {
      outcome: 'pass',
      headline:
        'The typed model agrees with the FP32 original on all outputs, and the engine was built from it.',
      reasons: [
        'The engine itself was not run: this machine has no NVIDIA driver. Numbers are those of the typed ONNX model on ONNX Runtime.',
      ],
    },
    error: null,
    phases: [
      {
        name: 'inspect',
        status: 'done',
        startMs: 4,
        ms: 31,
        detail: '122 nodes, no error among 2 findings',
        steps: [],
      },
      {
        name: 'convert',
        status: 'done',
        startMs: 38,
        ms: 742,
        detail: '118 of 121 float nodes to FP16',
        steps: [],
      },
      {
        name: 'build',
        status: 'done',
        startMs: 781,
        ms: 2140,
        detail: 'built: nothing in the store had this identity',
        steps: [
          { name: 'identity', startMs: 781, ms: 190 },
          { name: 'parse', startMs: 990, ms: 240 },
          { name: 'compile', startMs: 1230, ms: 1480 },
        ],
      },
      {
        name: 'verify',
        status: 'done',
        startMs: 2922,
        ms: 3290,
        detail: '2 of 2 outputs within tolerance',
        steps: [],
      },
      {
        name: 'verify engine',
        status: 'skipped',
        startMs: null,
        ms: null,
        detail: 'no NVIDIA driver on this machine',
        steps: [],
      },
      {
        name: 'bench',
        status: 'skipped',
        startMs: null,
        ms: null,
        detail: 'no NVIDIA driver on this machine',
        steps: [],
      },
      {
        name: 'report',
        status: 'done',
        startMs: 6214,
        ms: 70,
        detail: 'report.html, report.md, report.json',
        steps: [],
      },
    ],
    model: {
      schema: 'trtforge.inspect/1',
      kind: 'onnx',
      file: 'models/resnet50.onnx',
      fileBytes: 102_442_450,
      externalFiles: [],
      irVersion: 8,
      opsets: { '': 17 },
      producer: 'trtforge',
      producerVersion: '0.1.0',
      graphName: 'resnet50',
      metadata: {},
      inputs: [{ name: 'input', dtype: 'float32', shape: ['batch', 3, 224, 224] }],
      outputs: [
        { name: 'logits', dtype: 'float32', shape: ['batch', 1000] },
        { name: 'features', dtype: 'float32', shape: ['batch', 2048, null, null] },
      ],
      nodes: 122,
      nodesTotal: 122,
      functions: [],
      ops: { Conv: 53, Relu: 49, Add: 16, GlobalAveragePool: 1, MaxPool: 1, Flatten: 1, Gemm: 1 },
      initializers: { count: 161, bytes: 102_228_128 },
      initializersByDtype: { float32: { count: 161, bytes: 102_228_128, parameters: 25_557_032 } },
      parameters: 25_557_032,
      sparseInitializers: 0,
      findings: [
        {
          code: 'dynamic-dimension-without-symbol',
          severity: 'warning',
          message: 'Dimension 2 of output features is dynamic and has no symbol.',
          where: 'features',
        },
        { code: 'opset-old', severity: 'info', message: 'Opset 17 has no bfloat16 Resize.', where: 'graph' },
      ],
    },
    conversion: {
      schema: 'trtforge.convert/1',
      input: 'models/resnet50.onnx',
      output: 'model/resnet50.fp16.onnx',
      precision: 'fp16',
      ioTypes: 'keep',
      opset: { before: 17, after: 17, reason: null },
      functionsInlined: 0,
      nodes: { total: 122, converted: 118, kept: 4, untouched: 0 },
      convertedOps: { Conv: 53, Relu: 49, Add: 16 },
      rules: [
        { id: 'op-default', title: 'Operator that stays FP32 by default', nodes: 1 },
        { id: 'reduction-depth', title: 'Sums more terms than --max-reduction-depth', nodes: 3 },
      ],
      kept: [
        { node: '/head/Softmax', op: 'Softmax', rule: 'op-default', reason: 'Softmax sums exponentials' },
        {
          node: '/stem/GlobalAveragePool',
          op: 'GlobalAveragePool',
          rule: 'reduction-depth',
          reason: 'reduces over 50176 elements',
        },
        {
          node: '/neck/ReduceMean',
          op: 'ReduceMean',
          rule: 'reduction-depth',
          reason: 'reduces over 8192 elements',
        },
        {
          node: '/neck/ReduceMean_1',
          op: 'ReduceMean',
          rule: 'reduction-depth',
          reason: 'reduces over 8192 elements',
        },
      ],
      casts: { added: 6, removed: 2 },
      quantization: null,
      weights: { converted: 107, keptFp32: 0, saturated: 0, toZero: 0, subnormal: 0, losses: [] },
      inputs: [],
      outputs: [],
      bytes: { before: 102_442_450, after: 51_293_011 },
      externalData: null,
      warnings: [],
      ms: 742,
    },
    build: {
      engine: 'runs/resnet50-fp16/engines/resnet50_1_fp16_sm_89_1.7.1.116.engine',
      passportPath: 'runs/resnet50-fp16/engines/resnet50_1_fp16_sm_89_1.7.1.116.engine.passport.json',
      passport: {
        ...passport,
        name: 'resnet50_1_fp16_sm_89_1.7.1.116.engine',
        plan: {
          ...passport.plan,
          bytes: 52_301_880,
          precisions: {
            operators: [{ op: 'Conv', nodes: 53, types: { int8: 51, float16: 2 } }],
            floating: [
              {
                node: 'layer3.0.conv2',
                op: 'Conv',
                requested: 'int8',
                computes: 'float16',
                reason: 'The scales of its weights are along axis 1, so it computes in floating point.',
                finding: 'quantized-weight-axis',
              },
              {
                node: 'conv1',
                op: 'Conv',
                requested: null,
                computes: 'float16',
                reason: 'The model does not quantize it.',
                finding: null,
              },
            ],
            attentions: {
              quantized: 1,
              fused: 0,
              reasons: ['A pair stands between the scores and Softmax.'],
            },
            conversions: { quantize: 1, dequantize: 2, move: 1 },
          },
        },
        built: { ...passport.built, ms: 1720 },
      },
      identity: passport.identity.digest,
      readablePath: null,
      source: 'built',
      rule: 'exact',
      why: [
        {
          from: 'local',
          code: null,
          reason: 'it has no engine of this model',
          nearest: null,
          differences: [],
        },
      ],
      timings: { lookupMs: 3, waitMs: 0, remoteMs: 0, buildMs: 1790, keepMs: 12, uploadMs: 0 },
      warnings: [],
    },
    engineVerification: null,
    heal: null,
    bench: null,
    profileFrom: [],
    verification: {
      schema: 'trtforge.verify/1',
      reference: 'models/resnet50.onnx',
      candidate: 'model/resnet50.fp16.onnx',
      referenceBackend: 'ONNX Runtime 1.30.0 (CPU)',
      candidateBackend: 'ONNX Runtime 1.30.0 (CPU)',
      precision: 'fp16',
      roundedValues: 121,
      verdicts: { contract: 'pass', numeric: 'pass', task: null },
      chunks: 3,
      failures: [],
      drift: null,
      repeat: null,
      seed: 0,
      samples: 3,
      inputs: [{ name: 'input', dtype: 'float32', shape: [8, 3, 224, 224], from: 'uniform in [-1, 1]' }],
      outputs: [
        verifiedOutput(),
        verifiedOutput({
          name: 'features',
          shape: [8, 2048, 7, 7],
          elements: 802_816,
          histogram: { bins: bellBins(6e-5, 802_816, 2.1), zeros: 15_211, nonFinite: 0 },
          checks: [{ statistic: 'max', measured: 0.0083, limit: 0.01, pass: true }],
          statistics: [
            { name: 'max', amount: 0.0083 },
            { name: 'mean', amount: 0.0000711 },
            { name: 'median', amount: 0.0000591 },
            { name: 'p99', amount: 0.00041 },
            { name: 'SNR in dB', amount: 58.2 },
          ],
        }),
      ],
      reasons: [],
      outcome: 'pass',
    },
    environment: [
      { name: 'machine', text: 'linux x64, 2 × Some Processor, 23.5 GiB' },
      { name: 'Node.js', text: '20.20.0' },
      { name: 'toolchain', text: 'tensorrt-rtx 1.7.1.116 (installed by trtforge)' },
      { name: 'GPU', text: 'none: libcuda.so.1 is not there' },
    ],
    repeat: 'trtforge forge models/resnet50.onnx --precision fp16 --target tensorrt-rtx:sm_89',
    files: [
      { path: 'report.html', what: 'this page' },
      { path: 'engines/resnet50_1_fp16_sm_89_1.7.1.116.engine', what: 'the engine' },
    ],
    ...more,
  };
}

/** The same run with an output that overflowed, so that the numeric verdict is fail. */
export function failedSample(): ForgeResult {
  const result = sampleResult();
  const overflowed = verifiedOutput({
    outcome: 'fail',
    pass: false,
    checks: [
      { statistic: 'max', measured: 'Infinity', limit: 0.01, pass: false },
      { statistic: 'mean', measured: 0.0231, limit: 0.002, pass: false },
    ],
    statistics: [
      { name: 'max', amount: 'Infinity' },
      { name: 'mean', amount: 0.0231 },
    ],
    histogram: { bins: bellBins(2.8e-3, 8000), zeros: 0, nonFinite: 12 },
  });
  return {
    ...result,
    exitCode: 1,
    verdict: {
      outcome: 'fail',
      headline: '1 of 1 output is outside its tolerance.',
      reasons: ['logits: max error Infinity is above 0.01.'],
    },
    verification: {
      ...result.verification!,
      verdicts: { contract: 'pass', numeric: 'fail', task: null },
      outputs: [overflowed],
      outcome: 'fail',
      reasons: ['logits: 12 elements are infinite.'],
      next: {
        ...{ passes: false, tried: 0, keepNodes: [], command: null, message: 'No repair found.' },
        bisect: 'trtforge bisect model/resnet50.fp16.onnx --against models/resnet50.onnx -o bisect',
      },
    },
  };
}

/** A run that stopped in its build phase: there is neither engine nor verification. */
export function stoppedSample(): ForgeResult {
  const result = sampleResult();
  return {
    ...result,
    exitCode: 3,
    verdict: {
      outcome: 'inconclusive',
      headline: 'The run stopped in its phase build.',
      reasons: ['No TensorRT was found on this machine.'],
    },
    error: {
      phase: 'build',
      code: 'TF_TOOLCHAIN_NOT_FOUND',
      message: 'No TensorRT was found on this machine.',
      remedy: 'Run trtforge toolchain install tensorrt-rtx --accept-license.',
      exitCode: 3,
      issues: [
        {
          id: 'library-not-found',
          severity: 'error',
          cause: 'The library libnvinfer.so.10 is not where the loader looks.',
          remedy: 'Install the package it belongs to.',
          versions: 'all',
          source: 'measured',
          count: 1,
          lines: [{ line: 1, text: 'libnvinfer.so.10: cannot open shared object file' }],
          model: null,
        },
      ],
    },
    engine: null,
    passport: null,
    build: null,
    verification: null,
    phases: result.phases.map((phase) =>
      phase.name === 'build'
        ? {
            ...phase,
            status: 'failed',
            ms: 12,
            steps: [],
            detail: 'TF_TOOLCHAIN_NOT_FOUND: No TensorRT was found on this machine.',
          }
        : phase.name === 'verify'
          ? { ...phase, status: 'not-reached', startMs: null, ms: null, detail: 'the run stopped before' }
          : phase,
    ),
  };
}
