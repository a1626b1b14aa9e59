// Stands in for trtexec: says what the recorded runs of a version say, with the echo of the options it is given, and writes a plan with a real header.
//   node fake-trtexec.mjs CONFIG.json [trtexec's own options]
// CONFIG: { version: '8.6' | '10.6' | '11.1', says?: '10.3.0.26', fault?: string, planBytes?: number, pidFile?: string, gpuFile?: string,
//           streamable?: number of bytes of weights that the engine can stream, isSaturated?: larger batches are as much slower }
import { spawn } from 'node:child_process';
import { appendFileSync, copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';

// As of the library's fake: the plan that a build gives.
const { FAKE_PLAN } = process.env;
const wanted = FAKE_PLAN ? readFileSync(FAKE_PLAN) : undefined;
const {
  version,
  says,
  fault = 'none',
  planBytes = wanted?.length ?? 4096,
  pidFile,
  gpuFile,
  streamable = 0,
  isSaturated = false,
} = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const args = process.argv.slice(3);
const fixture = (path) => new URL(`../fixtures/${path}`, import.meta.url);
const recorded = (name) =>
  readFileSync(fixture(`trtexec-logs/${name}.log`), 'utf8')
    .split('\n')
    .slice(0, -1);

const MIB = 1 << 20;
const dialect = {
  8.6: { banner: '[TensorRT v8601]', header: [8, 6, 1, 6], build: '8.6-build_fp16', bench: '8.6-bench_b1' },
  10.6: {
    banner: '[TensorRT v100600] [b26]',
    header: [10, 6, 0, 26],
    build: '10.6-build_typed',
    bench: '10.6-bench_r50_b64',
  },
  11.1: {
    banner: '[TensorRT v110100] [b106]',
    header: [11, 1, 0, 106],
    build: '11.1-build2',
    bench: '11.1-err_lean_no_driver',
  },
}[version];
if (says !== undefined) {
  const [major, minor, patch, build] = says.split('.').map(Number);
  dialect.banner = `[TensorRT v${major * 10_000 + minor * 100 + patch}] [b${build}]`;
  dialect.header = [major, minor, patch, build];
}
const options = args.map((arg) => {
  const at = arg.indexOf('=');
  return at < 0 ? [arg.slice(2), ''] : [arg.slice(2, at), arg.slice(at + 1)];
});
const given = (name) => options.some(([key]) => key === name);
const said = (name, otherwise) => options.find(([key]) => key === name)?.[1] ?? otherwise;

// Of the GPUs it sees, the one it is told to use.
if (gpuFile !== undefined)
  appendFileSync(gpuFile, `${process.env.CUDA_VISIBLE_DEVICES ?? 'all'} ${said('device', '-')}\n`);

// Streams of a terminal: information on one, warnings and errors on the other.
const say = (line) => (/\] \[[WEF]\] /.test(line) ? process.stderr : process.stdout).write(`${line}\n`);
const tell = (severity, message) => say(`[11/20/2026-21:32:52] [${severity}] ${message}`);
const mark = (word) => say(`&&&& ${word} TensorRT.trtexec ${dialect.banner} # trtexec ${args.join(' ')}`);
const end = (exitCode) => {
  process.exitCode = exitCode;
};

/** The help in a recorded refusal names every option that version takes. */
const knownOptions = () =>
  new Set(
    [
      ...recorded(`${version}-err_unknown_flag`)
        .join('\n')
        .matchAll(/--([A-Za-z]\w*)/g),
    ].map(([, flag]) => flag),
  );

function poolsEcho() {
  const asked = new Map(
    (said('memPoolSize', '') || '')
      .split(',')
      .filter(Boolean)
      .map((part) => part.split(':')),
  );
  const names = [
    'workspace',
    'dlaSRAM',
    'dlaLocalDRAM',
    'dlaGlobalDRAM',
    ...(version === '8.6' ? [] : ['tacticSharedMem']),
  ];
  const size = (text) => {
    // 8.6 stops reading at the first letter; later ones take the last letter for the unit.
    if (version === '8.6') return Number.parseFloat(text);
    const unit = { B: 1 / MIB, K: 1 / 1024, M: 1, G: 1024 }[text.at(-1).toUpperCase()];
    return Number.parseFloat(text) * (unit ?? 1);
  };
  if (fault === 'misreads-pools')
    return `Memory Pools: ${names.map((name) => `${name}: 0.03125 MiB`).join(', ')}`;
  const printed = (name) => {
    if (!asked.has(name)) return 'default';
    const [unit, perMiB] = name === 'tacticSharedMem' && !isFirst10 ? ['KiB', 1024] : ['MiB', 1];
    return `${Number((size(asked.get(name)) * perMiB).toPrecision(6))} ${unit}`;
  };
  return `Memory Pools: ${names.map((name) => `${name}: ${printed(name)}`).join(', ')}`;
}

function precisionEcho() {
  const [major, minor] = dialect.header;
  const isEarly = major === 10 && minor < 2;
  if (version === '11.1' || (given('stronglyTyped') && !isEarly)) return 'Precision: Strongly Typed';
  const types = ['fp16', 'bf16', 'int8', 'fp8', 'int4'].filter(given).map((name) => name.toUpperCase());
  const typing = given('stronglyTyped') ? ' (Strongly Typed)' : '';
  const constraints = given('precisionConstraints')
    ? ` (${said('precisionConstraints')} precision constraints)`
    : '';
  return `Precision: ${['FP32', ...types].join('+')}${typing}${constraints}`;
}

/** Shapes stand behind the --profile they belong to. */
function profilesEcho() {
  const profiles = [];
  for (const [key, value] of options) {
    const end = { minShapes: 0, optShapes: 1, maxShapes: 2 }[key];
    if (key === 'profile' || (end !== undefined && profiles.length === 0)) profiles.push(new Map());
    if (end === undefined) continue;
    for (const part of value.split(',')) {
      const at = part.lastIndexOf(':');
      const [name, dims] = [part.slice(0, at), part.slice(at + 1)];
      const range = profiles.at(-1).get(name) ?? [];
      range[end] = dims === 'scalar' ? '' : dims;
      profiles.at(-1).set(name, range);
    }
  }
  const words = (index) => (version === '8.6' ? 'Input build shape' : `Input build shape (profile ${index})`);
  return profiles.flatMap((profile, index) =>
    [...profile].map(([name, range]) => `${words(index)}: ${name}=${range.join('+')}`),
  );
}

/** 10.0 turns streaming off with 0, later ones with -2. */
const isFirst10 = dialect.header.slice(0, 2).join('.') === '10.0';

function budgetEcho() {
  const budget = fault === 'ignores-budget' ? '100%' : said('weightStreamingBudget', '100%');
  if (budget === '-1') return 'Automatic';
  if (budget.includes('%')) return `${Number.parseFloat(budget).toFixed(6)}%`;
  return isFirst10 && budget === '0' ? 'Disabled' : `${budget} bytes`;
}

/** Said only of engines that can stream their weights; the least that 10.0 takes is a quarter here, and what later ones choose a half. */
function weightBudget() {
  const budget = said('weightStreamingBudget', isFirst10 ? '0' : '-2');
  if (isFirst10 && budget === '0') return tell('I', 'Weight streaming has been disabled at runtime.');
  if (isFirst10 && budget === '-1')
    return tell('I', 'The weight streaming budget will automatically be chosen by TensorRT.');
  const chosen = { '-2': streamable, '-1': streamable / 2, '100%': streamable / 4 }[budget] ?? Number(budget);
  const bytes = fault === 'clamps-budget' ? chosen / 2 : chosen;
  tell('I', `Weight streaming is enabled with a device memory limit of ${bytes} bytes.`);
}

/** `+JIT_CONVOLUTIONS,-CUDNN` in the order and the words of the echo. */
function sourcesEcho() {
  const words = {
    CUBLAS: 'cublas',
    CUBLAS_LT: 'cublasLt',
    CUDNN: 'cudnn',
    EDGE_MASK_CONVOLUTIONS: 'edge mask convolutions',
    JIT_CONVOLUTIONS: 'JIT convolutions',
  };
  const asked = said('tacticSources', '').split(',');
  const printed = Object.entries(words).flatMap(([name, word]) =>
    asked.includes(`+${name}`) ? `${word} [ON], ` : asked.includes(`-${name}`) ? `${word} [OFF], ` : [],
  );
  return `Tactic sources: ${given('tacticSources') ? printed.join('') : 'Using default tactic sources'}`;
}

function previewsEcho() {
  const words = {
    fasterDynamicShapes0805: 'kFASTER_DYNAMIC_SHAPES_0805',
    disableExternalTacticSourcesForCore0805: 'kDISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805',
    ...(version === '8.6' ? { profileSharing0806: 'kPROFILE_SHARING_0806' } : {}),
    aliasedPluginIO1003: 'kALIASED_PLUGIN_IO_10_03',
    runtimeActivationResize: 'kRUNTIME_ACTIVATION_RESIZE_10_10',
  };
  const asked = said('preview', '').split(',');
  const printed = Object.entries(words).flatMap(([name, word]) =>
    asked.includes(`+${name}`) ? `${word} [ON], ` : [],
  );
  return `Preview Features: ${given('preview') ? printed.join('') : 'Use default preview flags.'}`;
}

const VERBOSITY = { layer_names_only: 0, none: 1, detailed: 2 };
const pluginsEcho = () =>
  options
    .filter(([key]) => key === 'staticPlugins')
    .map(([, path]) => ` ${path}`)
    .toReversed()
    .join('');

const enabled = (on) => (on ? 'Enabled' : 'Disabled');
const isNew = version === '11.1';
const echo = {
  'Memory Pools': poolsEcho,
  Precision: precisionEcho,
  Model: () => `Model: ${said('onnx', '')}`,
  avgTiming: () => `avgTiming: ${said('avgTiming', 8)}`,
  BuilderOptimizationLevel: () => `BuilderOptimizationLevel: ${said('builderOptimizationLevel', -1)}`,
  MaxAuxStreams: () => `MaxAuxStreams: ${said('maxAuxStreams', -1)}`,
  MaxTactics: () => `MaxTactics: ${said('maxTactics', -1)}`,
  Sparsity: () => `Sparsity: ${enabled(given('sparsity'))}`,
  Refit: () => `Refit: ${enabled(given('refit'))}`,
  'Strip weights': () => `Strip weights: ${enabled(given('stripWeights'))}`,
  'Version Compatible': () => `Version Compatible: ${enabled(given('versionCompatible'))}`,
  'Exclude Lean Runtime': () => `Exclude Lean Runtime: ${enabled(given('excludeLeanRuntime'))}`,
  'Weight Streaming': () => `Weight Streaming: ${enabled(given('allowWeightStreaming'))}`,
  'DirectIO mode': () => `DirectIO mode: ${enabled(given('directIO'))}`,
  'Restricted mode': () => `Restricted mode: ${enabled(given('restricted'))}`,
  'Allow GPU fallback for DLA': () => `Allow GPU fallback for DLA: ${enabled(given('allowGPUFallback'))}`,
  Heuristic: () => `Heuristic: ${enabled(given('heuristic'))}`,
  'Enable Compilation Cache': () => `Enable Compilation Cache: ${enabled(!given('noCompilationCache'))}`,
  'Enable Monitor Memory': () => `Enable Monitor Memory: ${enabled(given('monitorMemory'))}`,
  'Distributive Independence': () =>
    `Distributive Independence: ${enabled(given('distributiveIndependence'))}`,
  errorOnTimingCacheMiss: () => `errorOnTimingCacheMiss: ${enabled(given('errorOnTimingCacheMiss'))}`,
  timingCacheMode: () =>
    `timingCacheMode: ${given('noBuilderCache') ? 'disable' : given('timingCacheFile') ? 'global' : 'local'}`,
  timingCacheFile: () => `timingCacheFile: ${said('timingCacheFile', '')}`,
  'Profiling verbosity': () =>
    `Profiling verbosity: ${VERBOSITY[said('profilingVerbosity', 'layer_names_only')]}`,
  'Tactic sources': sourcesEcho,
  'Preview Features': previewsEcho,
  'Runtime Platform': () =>
    `Runtime Platform: ${said('runtimePlatform') === 'WindowsAMD64' ? 'Windows AMD64' : 'Same As Build'}`,
  'TensorRT runtime': () => `TensorRT runtime: ${said('useRuntime', 'full')}`,
  Device: () => `Device: ${said('device', 0)}`,
  Plugins: () => `Plugins:${pluginsEcho()}`,
  'Loaded static plugins': () => `Loaded static plugins:${pluginsEcho()}`,
  'Optimization Profile Index': () => `Optimization Profile Index: ${said('useProfile', 0)}`,
  'Separate profiling': () => `Separate profiling: ${enabled(given('separateProfileRun'))}`,
  Averages: () => `Averages: ${said('avgRuns', 10)} inferences`,
  Percentiles: () => `Percentiles: ${said('percentile', '90,95,99')}`,
  'Export timing to JSON file': () => `Export timing to JSON file: ${said('exportTimes', '')}`,
  'Export output to JSON file': () => `Export output to JSON file: ${said('exportOutput', '')}`,
  'Export profile to JSON file': () => `Export profile to JSON file: ${said('exportProfile', '')}`,
  'Skip inference': () => `Skip inference: ${enabled(given('skipInference'))}`,
  'Save engine': () => `Save engine: ${said('saveEngine', '')}`,
  'Load engine': () => `Load engine: ${said('loadEngine', '')}`,
  Iterations: () => `Iterations: ${said('iterations', 10)}`,
  Duration: () => `Duration: ${said('duration', 3)}s (+ ${said('warmUp', 200)}ms warm up)`,
  'Idle time': () => `Idle time: ${said('idleTime', 0)}ms`,
  'Inference Streams': () => `Inference Streams: ${said('infStreams', 1)}`,
  'Data transfers': () =>
    `Data transfers: ${enabled(isNew ? given('includeDataTransfers') : !given('noDataTransfers'))}`,
  'Spin-wait': () =>
    `Spin-wait: ${enabled(fault === 'misreads-mode' ? false : isNew ? !given('noSpinWait') : given('useSpinWait'))}`,
  'Weight Streaming Budget': () => `Weight Streaming Budget: ${budgetEcho()}`,
  'CUDA Graph': () => `CUDA Graph: ${enabled(isNew ? !given('noCudaGraph') : given('useCudaGraph'))}`,
};

/** A recorded line with what this run was told in place of what that run was told. */
function replay(line) {
  const [, prefix, message] = /^(\[[^\]]*\] \[.\] )(.*)$/.exec(line) ?? [];
  if (message === undefined) return say(line);
  if (/^Input build shape/.test(message)) return;
  if (/^Input inference shape/.test(message)) return inferenceShapes();
  if (message === '=== System Options ===' && given('saveEngine'))
    for (const shape of profilesEcho()) tell('I', shape);
  if (/^Created engine with size/.test(message))
    return say(`${prefix}Created engine with size: ${Number((planBytes / MIB).toPrecision(6))} MiB`);
  const key = message.split(':')[0].trim();
  return say(message.includes(':') && echo[key] !== undefined ? `${prefix}${echo[key]()}` : line);
}

let areShapesSaid = false;
function inferenceShapes() {
  if (areShapesSaid || !given('shapes')) return;
  areShapesSaid = true;
  for (const part of said('shapes', '').split(',')) {
    const at = part.lastIndexOf(':');
    tell('I', `Input inference shape : ${part.slice(0, at)}=${part.slice(at + 1)}`);
  }
}

function plan() {
  const bytes = Buffer.alloc(planBytes, 7);
  bytes.fill(0, 0, 28);
  bytes.write('ftrt', 0, 'latin1');
  bytes.writeUInt32LE(1, 8);
  bytes.writeBigUInt64LE(BigInt(planBytes - 24), 16);
  bytes.set(fault === 'other-header' ? [9, 9, 9, 9] : dialect.header, 24);
  return fault === 'partial-plan' ? bytes.subarray(0, 100) : bytes;
}

function build(lines) {
  const stop = lines.findIndex(
    (line) => line.includes('Skipped inference phase') || line.includes('createCaskKernelLibraryImpl'),
  );
  for (const line of lines.slice(1, stop)) replay(line);
  if (version === '11.1') {
    tell('I', `Created engine with size: ${Number((planBytes / MIB).toPrecision(6))} MiB`);
    tell('I', 'Engine built in 2.5 sec.');
  }
  if (given('timingCacheFile')) writeFileSync(said('timingCacheFile'), 'a timing cache');
  if (fault !== 'no-plan') writeFileSync(said('saveEngine'), wanted ?? plan());
  tell('I', 'Skipped inference phase since --skipInference is added.');
}

/** A GPU that one picture fills: so many batches less a second as they are larger. */
function slowed(line) {
  const batch = Number(/:(\d+)x/.exec(said('shapes', ':1x'))?.[1]);
  return line.replace(/(?<=Throughput: )[\d.]+/, (rate) => String(Number(rate) / batch));
}

function bench(lines) {
  const summary = isNew ? recorded('10.6-bench_r50_b64') : lines;
  const from = summary.findIndex((line) => line.includes('Starting inference'));
  const echoed = lines.slice(
    1,
    lines.findIndex((line) => /Start parsing network model|Starting inference|^Cuda failure/.test(line)),
  );
  for (const line of echoed) replay(line);
  if (streamable > 0) weightBudget();
  if (fault === 'refuses-graph' && (isNew || given('useCudaGraph')))
    tell(
      'W',
      'The built TensorRT engine contains operations that are not permitted under CUDA graph capture mode.',
    );
  for (const line of summary.slice(from))
    if (!line.startsWith('&&&&') && !/\] \[[WE]\] /.test(line)) say(isSaturated ? slowed(line) : line);
  const file = (name) => fixture(`trtexec-runs/${name}`);
  if (given('exportTimes')) {
    const times =
      version === '8.6' || fault === 'other-times'
        ? readFileSync(file('8.6-bench_b1.first300.times.json'))
        : gunzipSync(readFileSync(file('10.6-bench_r50_b64.times.json.gz')));
    writeFileSync(said('exportTimes'), times);
  }
  const old = version === '8.6';
  if (given('exportProfile'))
    copyFileSync(file(old ? '8.6-profile_b8.json' : '10.6-profile_b32.json'), said('exportProfile'));
  if (given('exportLayerInfo'))
    copyFileSync(
      fixture(`engine-layers/${old ? '8.6' : '10.6'}-resnet50-fp16.json`),
      said('exportLayerInfo'),
    );
  if (given('exportOutput')) copyFileSync(file('10.6-output_b1.json'), said('exportOutput'));
}

function hang() {
  if (fault === 'ignores-sigterm') process.on('SIGTERM', () => tell('W', 'not now'));
  // A helper of its own, to see that it does not stay behind.
  const helper = spawn('sleep', ['300'], { stdio: 'inherit' });
  if (pidFile !== undefined) writeFileSync(pidFile, JSON.stringify([process.pid, helper.pid]));
  setInterval(() => {}, 1000);
}

function fail(lines) {
  for (const line of lines) tell('E', line);
  mark('FAILED');
  end(1);
}

function main() {
  mark('RUNNING');
  if (given('help')) return say('  --help, -h                  Print this message');
  const unknown = options.filter(([key]) => !knownOptions().has(key));
  if (unknown.length > 0) {
    for (const [key, value] of unknown) tell('E', `Unknown option: --${key} ${value}`);
    return end(1);
  }
  if (given('weightStreamingBudget') && !given('allowWeightStreaming')) {
    tell('E', 'The weight streaming budget can only be set with --allowWeightStreaming specified.');
    return end(1);
  }
  const isBuild = given('saveEngine');
  const lines = recorded(isBuild ? dialect.build : dialect.bench);
  if (fault === 'hangs' || fault === 'ignores-sigterm') {
    for (const line of lines.slice(1, 90)) replay(line);
    return hang();
  }
  if (fault === 'fails')
    return fail([
      'Engine could not be created from network',
      'Building engine failed',
      'Engine set up failed',
    ]);
  if (fault === 'out-of-memory')
    return fail([
      'Error[2]: [virtualMemoryBuffer.cpp::resizePhysical::145] Error Code 2: OutOfMemory (Requested size was 34359738368 bytes.)',
      'Engine could not be created from network',
    ]);
  if (fault === 'leaves-tactics-out')
    return fail([
      'Error Code 2: OutOfMemory (Requested size was 34359738368 bytes.) Skipping tactic 0x0',
      'Engine could not be created from network',
    ]);
  if (fault === 'lacks-a-library')
    return fail([
      'Uncaught exception detected: Unable to open library: libnvinfer_plugin.so.8 due to libcublas.so.12: cannot open shared object file: No such file or directory',
    ]);
  if (fault === 'refuses-model')
    return fail([
      'ModelImporter.cpp:901: Failed to parse ONNX model',
      'Failed to parse onnx file',
      'Parsing model failed',
    ]);
  if (fault === 'killed') return process.kill(process.pid, 'SIGKILL');
  if (fault === 'aborts') {
    process.stderr.write('LLVM ERROR: out of memory\n');
    return process.abort();
  }
  if (isBuild) build(lines);
  else bench(lines);
  if (fault !== 'no-last-line') mark('PASSED');
}

main();
