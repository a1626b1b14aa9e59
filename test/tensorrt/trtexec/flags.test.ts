import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { trtexecFlags } from '../../../src/behaviour/trtexec.js';
import { benchArguments, buildArguments } from '../../../src/tensorrt/trtexec/flags.js';
import type { TrtexecBenchRequest, TrtexecBuildRequest } from '../../../src/tensorrt/trtexec/options.js';
import { recordedLogs } from '../../fakes/trtexec.js';
import { refusal } from '../../support/refusal.js';
import { measured as measuredAtOptimum, noPlugins, plain } from '../../support/trtexec-requests.js';

const always = ['--onnx=m.onnx', '--saveEngine=m.plan', '--skipInference', '--avgTiming=1'];

/** What a request adds to the plain one, sorted by nothing: in trtexec's own order. */
const added = (request: Partial<TrtexecBuildRequest>, version: string) =>
  buildArguments({ ...plain, ...request }, version).filter((argument) => !always.includes(argument));

describe('builds, per version', () => {
  test.each([
    ['8.6.1.6', {}, []],
    ['8.6.1.6', { precisions: ['fp16'] }, ['--fp16']],
    ['10.6.0.26', { precisions: ['fp16', 'bf16'] }, ['--fp16', '--bf16']],
    ['10.6.0.26', { stronglyTyped: true }, ['--stronglyTyped']],
    ['11.1.0.106', { stronglyTyped: true }, []],
    [
      '10.6.0.26',
      { switches: ['no-tf32', 'sparse-weights', 'refit'] },
      ['--noTF32', '--sparsity=enable', '--refit'],
    ],
    [
      '10.6.0.26',
      { switches: ['version-compatible', 'exclude-lean-runtime'] },
      ['--versionCompatible', '--excludeLeanRuntime'],
    ],
    [
      '10.6.0.26',
      { switches: ['obey-precision-constraints'], layerPrecisions: ['/a:fp32'] },
      ['--layerPrecisions=/a:fp32', '--precisionConstraints=obey'],
    ],
    ['8.6.1.6', { switches: ['enable-tactic-heuristic'] }, ['--heuristic']],
    [
      '10.6.0.26',
      { switches: ['strip-plan', 'weight-streaming'], stronglyTyped: true },
      ['--stronglyTyped', '--stripWeights', '--allowWeightStreaming'],
    ],
    [
      '10.6.0.26',
      { optimizationLevel: 5, maxAuxStreams: 0, maxTactics: 3, avgTimingIterations: 4 },
      ['--builderOptimizationLevel=5', '--maxAuxStreams=0', '--avgTiming=4', '--maxTactics=3'],
    ],
    [
      '10.9.0.34',
      { tilingOptimizationLevel: 'moderate', l2LimitForTiling: 1048576 },
      ['--l2LimitForTiling=1048576', '--tilingOptimizationLevel=2'],
    ],
    [
      '8.6.1.6',
      { profilingVerbosity: 'detailed', hardwareCompatibility: 'ampere-plus' },
      ['--profilingVerbosity=detailed', '--hardwareCompatibilityLevel=ampere+'],
    ],
    [
      '10.9.0.34',
      { hardwareCompatibility: 'same-compute-capability' },
      ['--hardwareCompatibilityLevel=sameComputeCapability'],
    ],
    ['10.6.0.26', { runtimePlatform: 'windows-amd64' }, ['--runtimePlatform=WindowsAMD64']],
    [
      '10.6.0.26',
      { tacticSources: ['jit-convolutions'] },
      ['--tacticSources=-CUBLAS,-CUBLAS_LT,-CUDNN,-EDGE_MASK_CONVOLUTIONS,+JIT_CONVOLUTIONS'],
    ],
    [
      '11.1.0.106',
      { stronglyTyped: true, tacticSources: ['jit-convolutions'] },
      ['--tacticSources=-EDGE_MASK_CONVOLUTIONS,+JIT_CONVOLUTIONS'],
    ],
    ['8.6.1.6', { previewFeatures: ['faster-dynamic-shapes-0805'] }, ['--preview=+fasterDynamicShapes0805']],
    ['10.6.0.26', { previewFeatures: ['aliased-plugin-io-10-03'] }, ['--preview=+aliasedPluginIO1003']],
    [
      '10.6.0.26',
      { timingCache: 't.cache', device: 1, verbose: true },
      ['--timingCacheFile=t.cache', '--device=1', '--verbose'],
    ],
    [
      '10.6.0.26',
      { plugins: { static: ['a.so', 'b.so'], dynamic: ['c.so'], serialize: ['c.so'] } },
      [
        '--staticPlugins=a.so',
        '--staticPlugins=b.so',
        '--dynamicPlugins=c.so',
        '--setPluginsToSerialize=c.so',
      ],
    ],
  ] satisfies [string, Partial<TrtexecBuildRequest>, string[]][])(
    '%s %j: %j',
    (version, request, expected) => {
      expect(added(request, version)).toEqual(expected);
    },
  );

  test.each([
    [4 * 2 ** 30, 'workspace:4096'],
    [32768 * 2 ** 20, 'workspace:32768'],
    [512 * 1024, 'workspace:0.5'],
    [1, 'workspace:0.00000095367431640625'],
  ])(
    '%d bytes of workspace are a bare number of MiB, the only form every version reads alike',
    (bytes, text) => {
      for (const version of ['8.6.1.6', '10.6.0.26'])
        expect(added({ memoryPools: { workspace: bytes } }, version)).toEqual([`--memPoolSize=${text}`]);
    },
  );

  test('several pools in one option; a default one is left out', () => {
    const memoryPools = { workspace: 2 ** 30, dlaSRAM: null, tacticSharedMem: 2 ** 20 };
    expect(added({ memoryPools }, '10.6.0.26')).toEqual(['--memPoolSize=workspace:1024,tacticSharedMem:1']);
  });

  const range = { min: [1, 3], opt: [8, 3], max: [32, 3] };

  test('one profile is written alike everywhere', () => {
    for (const version of ['8.6.1.6', '10.6.0.26'])
      expect(added({ profiles: [{ x: range, 'a:0': { min: [1], opt: [2], max: [4] } }] }, version)).toEqual([
        '--minShapes=x:1x3,a:0:1',
        '--optShapes=x:8x3,a:0:2',
        '--maxShapes=x:32x3,a:0:4',
      ]);
  });

  const scalar = { min: [], opt: [], max: [] };

  test('a scalar has a word from 10.0 on', () => {
    expect(added({ profiles: [{ x: range, 'a:0': scalar }] }, '10.0.1.6')).toContain(
      '--minShapes=x:1x3,a:0:scalar',
    );
  });

  test('what every engine of a version is, its trtexec does not get: 10 takes the word, warns, and passes the builder nothing', () => {
    const previewFeatures = ['profile-sharing-0806'];
    expect(added({ previewFeatures }, '9.3.0.1')).toEqual(['--preview=+profileSharing0806']);
    expect(added({ previewFeatures }, '10.0.1.6')).toEqual([]);
  });

  test('several profiles are numbered, each before its shapes', () => {
    expect(added({ profiles: [{ x: range }, { x: range }] }, '10.6.0.26')).toEqual([
      '--profile=0',
      '--minShapes=x:1x3',
      '--optShapes=x:8x3',
      '--maxShapes=x:32x3',
      '--profile=1',
      '--minShapes=x:1x3',
      '--optShapes=x:8x3',
      '--maxShapes=x:32x3',
    ]);
  });

  test.each([
    ['8.6.1.6', { stronglyTyped: true }, /strongly typed networks; trtexec 9.1 and newer/],
    ['11.1.0.106', {}, /weakly typed networks; trtexec 8.6 to 10.x/],
    ['8.6.1.6', { precisions: ['bf16'] }, /--bf16; trtexec 9.1 to 10.x/],
    ['10.0.1.6', { precisions: ['int4'] }, /--int4; trtexec 10.1 to 10.x/],
    ['8.6.1.6', { profiles: [{ x: range }, { x: range }] }, /--profile; trtexec 9.1 and newer/],
    ['10.6.0.26', { tilingOptimizationLevel: 'fast' }, /--tilingOptimizationLevel; trtexec 10.8 and newer/],
    ['10.3.0.26', { maxTactics: 3 }, /--maxTactics; trtexec 10.4 and newer/],
    [
      '10.6.0.26',
      { hardwareCompatibility: 'same-compute-capability' },
      /sameComputeCapability; trtexec 10.9 and newer/,
    ],
    ['8.6.1.6', { memoryPools: { tacticSharedMem: 1 } }, /tacticSharedMem; trtexec 10.0 and newer/],
    ['11.1.0.106', { stronglyTyped: true, tacticSources: ['cudnn'] }, /CUDNN; trtexec 8.6 to 10.x/],
    ['10.6.0.26', { previewFeatures: ['runtime-activation-resize-10-10'] }, /trtexec 10.10 and newer/],
    ['10.6.0.26', { switches: ['enable-tactic-heuristic'] }, /--heuristic; trtexec 8.6 to 9.x/],
    ['10.6.0.26', { previewFeatures: ['no-such'] }, /No version of trtexec/],
    // The parser of 10.16 takes +multiDeviceRuntime, and nothing hands it to the builder.
    ['10.16.0.72', { previewFeatures: ['multidevice-runtime-10-16'] }, /No version of trtexec/],
    ['8.6.1.6', { profiles: [{ x: scalar }] }, /--shapes=scalar; trtexec 10.0 and newer/],
    ['10.6.0.26', { precisions: ['int8'] }, /random ranges/],
    ['10.6.0.26', { stronglyTyped: true, precisions: ['fp16'] }, /types from the graph/],
    ['10.6.0.26', { profiles: [{ 'a,b': range }] }, /cannot be written/],
  ] satisfies [string, Partial<TrtexecBuildRequest>, RegExp][])(
    '%s %j is rejected: %s',
    (version, request, why) => {
      const error = refusal(() => added(request, version));
      expect(error.code).toBe('TF_OPTION_UNSUPPORTED');
      expect(error.message).toMatch(why);
    },
  );
});

const measured: TrtexecBenchRequest = { ...measuredAtOptimum, shapes: { x: [64, 3] } };
const defaults = [
  '--iterations=10',
  '--duration=3',
  '--warmUp=200',
  '--infStreams=1',
  '--idleTime=0',
  '--avgRuns=10',
  '--percentile=90,95,99',
];

describe('measurements, per version', () => {
  const mode = (request: Partial<TrtexecBenchRequest>, version: string) =>
    benchArguments({ ...measured, ...request }, version).slice(2, -defaults.length);

  test.each([
    [
      '8.6.1.6',
      { transfers: false, graph: true, spinWait: true },
      ['--noDataTransfers', '--useSpinWait', '--useCudaGraph'],
    ],
    [
      '10.6.0.26',
      { transfers: false, graph: true, spinWait: true },
      ['--noDataTransfers', '--useSpinWait', '--useCudaGraph'],
    ],
    ['11.1.0.106', { transfers: false, graph: true, spinWait: true }, []],
    ['8.6.1.6', { transfers: true, graph: false, spinWait: false }, []],
    ['10.6.0.26', { transfers: true, graph: false, spinWait: false }, []],
    [
      '11.1.0.106',
      { transfers: true, graph: false, spinWait: false },
      ['--includeDataTransfers', '--noSpinWait', '--noCudaGraph'],
    ],
  ])('%s measures %j with %j', (version, request, expected) => {
    expect(mode(request, version)).toEqual(expected);
  });

  test.each([
    ['10.0.1.6', 1 << 20, '1048576'],
    ['10.0.1.6', 0, '100%'],
    ['10.0.1.6', 'automatic', '-1'],
    ['10.1.0.27', 0, '0'],
    ['10.6.0.26', 2 ** 40, '1099511627776'],
    ['10.6.0.26', 'automatic', '-1'],
    ['11.1.0.106', 1, '1'],
    ['11.1.0.106', 0, '0'],
    ['11.1.0.106', 'automatic', '-1'],
  ] as const)('%s gets a budget of streamed weights of %s as %s', (version, weightBudget, word) => {
    expect(benchArguments({ ...measured, weightBudget }, version).slice(-2)).toEqual([
      `--weightStreamingBudget=${word}`,
      '--allowWeightStreaming',
    ]);
  });

  test.each([
    ['8.6.1.6', 1000],
    ['9.3.0.1', 0],
    ['9.3.0.1', 'automatic'],
  ] as const)('%s has no option for a budget of %s', (version, weightBudget) => {
    const error = refusal(() => benchArguments({ ...measured, weightBudget }, version));
    expect([error.code, error.message]).toEqual([
      'TF_OPTION_UNSUPPORTED',
      `trtexec ${version} has no --weightStreamingBudget; trtexec 10.0 and newer has it.`,
    ]);
  });

  test('what has a default is stated all the same', () => {
    expect(benchArguments(measured, '10.6.0.26')).toEqual([
      '--loadEngine=m.plan',
      '--shapes=x:64x3',
      '--noDataTransfers',
      '--useSpinWait',
      '--useCudaGraph',
      ...defaults,
    ]);
  });

  test('a profile is measured in a run of its own; 11 always does that', () => {
    const exports = { times: 't', profile: 'p', layers: 'l', output: 'o' };
    const files = ['--exportTimes=t', '--exportLayerInfo=l', '--exportOutput=o', '--exportProfile=p'];
    expect(benchArguments({ ...measured, exports }, '10.6.0.26').slice(-5)).toEqual([
      ...files,
      '--separateProfileRun',
    ]);
    expect(benchArguments({ ...measured, exports }, '11.1.0.106').slice(-4)).toEqual(files);
  });

  test('8.6 has one profile', () => {
    expect(benchArguments({ ...measured, profile: 1 }, '10.6.0.26')).toContain('--useProfile=1');
    expect(refusal(() => benchArguments({ ...measured, profile: 1 }, '8.6.1.6')).message).toMatch(
      /--useProfile/,
    );
  });

  test.each(['8.6.1.6', '10.6.0.26', '11.1.0.106'])(
    '%s opens the runtime it is named, and the full one unnamed',
    (version) => {
      const compatible = { ...measured, allowHostCode: true };
      for (const runtime of ['lean', 'dispatch'] as const)
        expect(benchArguments({ ...compatible, runtime }, version).slice(-2)).toEqual([
          `--useRuntime=${runtime}`,
          '--versionCompatible',
        ]);
      expect(benchArguments(compatible, version)).not.toContain('--useRuntime=full');
    },
  );

  test('only the full runtime takes plug-ins of the process; those that travel with plans go with any', () => {
    const plugins = { ...noPlugins, static: ['a.so'] };
    const error = refusal(() => benchArguments({ ...measured, runtime: 'lean', plugins }, '11.1.0.106'));
    expect([error.code, error.message]).toEqual([
      'TF_OPTION_UNSUPPORTED',
      expect.stringContaining('(a.so) only into the full TensorRT, not into the lean runtime'),
    ]);
    const dynamic = { ...noPlugins, dynamic: ['b.so'] };
    expect(
      benchArguments({ ...measured, runtime: 'lean', plugins: dynamic }, '11.1.0.106').slice(-2),
    ).toEqual(['--useRuntime=lean', '--dynamicPlugins=b.so']);
  });

  test('input files', () => {
    expect(benchArguments({ ...measured, inputFiles: { x: '/t/x.bin' } }, '10.6.0.26')).toContain(
      '--loadInputs=x:/t/x.bin',
    );
    expect(
      refusal(() => benchArguments({ ...measured, inputFiles: { x: '/t/a,b' } }, '10.6.0.26')).code,
    ).toBe('TF_OPTION_UNSUPPORTED');
  });
});

describe('the table of flags agrees with the help that was recorded', () => {
  test.each([
    ['8.6', '8.6.1.6', []],
    ['10.6', '10.6.0.26', []],
    // Its parser takes it, its help does not say so.
    ['11.1', '11.1.0.106', ['distributiveIndependence']],
  ])('%s', (name, version, unlisted) => {
    const help = readFileSync(join(recordedLogs, `${name}-err_unknown_flag.log`), 'utf8');
    const effective = help.replace(/^.*This flag is a no-op.*$/gm, '');
    const known = new Set([
      ...[...effective.matchAll(/--([A-Za-z]\w*)/g)].map(([, flag]) => flag),
      ...unlisted,
    ]);
    const isSaid = (since: string, until: string | null) => {
      const number = (text: string) =>
        text
          .split('.')
          .slice(0, 2)
          .reduce((sum, part) => sum * 100 + Number(part), 0);
      return number(version) >= number(since) && (until === null || number(version) < number(until));
    };
    for (const [flag, { since, until }] of Object.entries(trtexecFlags))
      expect({ flag, known: known.has(flag) }).toEqual({ flag, known: isSaid(since, until) });
  });
});
