import type { Command, Product, Verb } from './command.js';

type Room = () => Promise<Readonly<Record<string, unknown>>>;

/** A verb of a group. Its module exports `command`, or a module of several verbs each under `name`: by default the verb's second word. */
const verbOf =
  (group: Verb['group']) =>
  (path: string, summary: string, load: Room, name = path.split(' ')[1] ?? ''): Verb => ({
    path,
    group,
    summary,
    load: async () => {
      const room = await load();
      return (room.command ?? room[name]) as Command;
    },
  });

const engines = verbOf('Engines');
const quality = verbOf('Quality');
const store = verbOf('Store');
const machine = verbOf('Machine');

const engine = () => import('./commands/engine.js');
const cache = () => import('./commands/cache.js');
const transfer = () => import('./commands/cache-transfer.js');
const trust = () => import('./commands/cache-trust.js');
const toolchain = () => import('./commands/toolchain.js');

/** The verbs of every TensorRT engine, in the order of its life. */
export const core: Product = {
  name: 'core',
  families: {
    engine: 'what is in an engine: facts, layers, differences',
    cache: 'what is in the engine store, and why it missed',
    toolchain: 'find, install and remove TensorRT',
  },
  verbs: [
    engines(
      'forge',
      'from an ONNX file to a named, checked engine and its report',
      () => import('./commands/forge.js'),
    ),
    engines('inspect', 'what is in an ONNX model', () => import('./commands/inspect.js')),
    engines(
      'convert',
      'FP32 ONNX to FP16, BF16, or Q/DQ codes: INT8, FP8, INT4, NVFP4',
      () => import('./commands/convert.js'),
    ),
    engines('build', 'build an engine, or find it in the store', () => import('./commands/build.js')),
    engines('engine inspect', 'version, size, passport and header of a plan, without loading it', engine),
    engines(
      'engine check',
      'let an engine prove itself on this GPU: its known answer, repeats, rows, profiles, graph, contexts',
      () => import('./commands/engine-check.js'),
    ),
    engines(
      'engine layers',
      'tactics, types, layouts, memory and ONNX nodes of the layers (needs the GPU of the engine)',
      engine,
    ),
    engines('engine diff', 'compare the layers of two engines', engine),
    engines(
      'engine strip-header',
      'write a plan without the header that an exporter put in front of it',
      engine,
      'stripHeader',
    ),
    engines(
      'run',
      'run an engine, or a model on ONNX Runtime, and keep its outputs',
      () => import('./commands/run.js'),
    ),
    quality(
      'verify',
      'compare a converted model or an engine with its FP32 original on the same inputs',
      () => import('./commands/verify.js'),
    ),
    quality('compare', 'compare recorded outputs with others', () => import('./commands/compare.js')),
    quality(
      'compare models',
      'what differs between two ONNX models: interface, opset, metadata, weights, nodes',
      () => import('./commands/compare-models.js'),
    ),
    quality(
      'compare layers',
      'compare the tensors inside a model with those of its original: where it diverges first',
      () => import('./commands/compare-layers.js'),
    ),
    quality(
      'bisect',
      'find what makes a typed model or an engine fail: nodes in 16 bits, a fusion, TF32',
      () => import('./commands/bisect.js'),
    ),
    quality('bench', 'measure an engine on the GPU', () => import('./commands/bench.js')),
    quality(
      'bench compare',
      'measure two sides in turns: two engines, or one engine in two modes',
      () => import('./commands/bench-compare.js'),
    ),
    quality(
      'bench model',
      'measure an ONNX model on ONNX Runtime',
      () => import('./commands/bench-model.js'),
    ),
    quality(
      'gate',
      'judge results by a policy with limits, baselines and waivers',
      () => import('./commands/gate.js'),
    ),
    quality(
      'gate init',
      'write a policy to begin with: what results measured becomes its limits',
      () => import('./commands/gate-init.js'),
    ),
    quality(
      'report',
      'render the report of a result again, or of two side by side',
      () => import('./commands/report.js'),
    ),
    quality(
      'explain',
      'what a TensorRT log means, and what to do about it; 1 where it shows errors',
      () => import('./commands/explain.js'),
    ),
    store('cache ls', 'the engines in the store, the newest first', cache),
    store(
      'cache why',
      'whether build would find an engine, and if not, what differs from the nearest one',
      () => import('./commands/cache-why.js'),
    ),
    store(
      'cache check',
      'let the engines of the store prove themselves on this GPU',
      () => import('./commands/cache-check.js'),
    ),
    store('cache verify', 'check every engine against its passport and what is trusted', cache),
    store('cache gc', 'remove the engines used least recently until the store fits its limit', cache),
    store('cache clear', 'remove every engine from the store', cache),
    store(
      'cache import',
      'bring engines from elsewhere into the store: files, folders, buckets',
      transfer,
      'importCommand',
    ),
    store(
      'cache export',
      'copy engines out of the store, with passports and signatures: into a folder or a bucket',
      transfer,
      'exportCommand',
    ),
    store('cache keygen', 'make a pair of Ed25519 keys that sign and check engines', trust),
    store('cache sign', 'sign engines of the store', trust),
    machine(
      'doctor',
      'check the installation of TensorRT, and what to do about what is missing',
      () => import('./commands/doctor.js'),
    ),
    machine(
      'report-bug',
      'run a failing command again, and pack what others need to repeat it',
      () => import('./commands/report-bug.js'),
    ),
    machine('toolchain list', 'every TensorRT found, and what it can do here', toolchain),
    machine('toolchain install', 'install tensorrt-rtx, which builds engines without a GPU', toolchain),
    machine('toolchain remove', 'remove a toolchain that trtforge installed', toolchain),
    machine('toolchain env', 'the exports that make a toolchain visible to other programs', toolchain),
    machine(
      'completion',
      'the script with which bash, zsh or fish completes verbs, options and values',
      () => import('./commands/completion.js'),
    ),
    machine(
      'migrate',
      'the trtforge line for a line of trtexec or Polygraphy',
      () => import('./commands/migrate.js'),
    ),
  ],
  files: {
    'gate-baseline': async () => (await import('../quality/gate/baseline.js')).baselineSchema,
    'compare-quantized': async () =>
      (await import('../quality/study/layers/quantized-result.js')).quantizedComparisonSchema,
    'io-contract': async () => (await import('../quality/study/layers/quantized-result.js')).ioContractSchema,
    'precision-scheme': async () =>
      (await import('../quality/study/layers/quantized-result.js')).precisionSchemeSchema,
    'known-answer': async () =>
      (await import('../engines/identity/known-answer-schema.js')).knownAnswerSchema,
    passport: async () => (await import('../engines/identity/passport.js')).passportSchema,
    'run-comparison': async () => (await import('../report/comparison/result.js')).runComparisonSchema,
    toolchain: async () => (await import('../tensorrt/toolchain/manifest.js')).toolchainManifestSchema,
  },
  printed: {
    plan: async () => (await import('./printed-schemas.js')).planSchema,
    error: async () => (await import('./printed-schemas.js')).errorSchema,
    config: async () => (await import('./printed-schemas.js')).configSchema,
    version: async () => (await import('./printed-schemas.js')).versionSchema,
  },
  foreignFlags: async () => (await import('./migrate/tables.js')).coreRows,
  reports: async () => [
    (await import('../report/pages/forge.js')).forgeReport,
    (await import('../report/pages/bisect.js')).bisectReport,
    (await import('../report/pages/layers.js')).layersReport,
    (await import('../report/pages/verify.js')).verifyReport,
    (await import('../report/pages/verify.js')).compareReport,
    (await import('../report/pages/bench.js')).benchReport,
  ],
  exporters: async () => {
    const { folderExporter, flatExporter } = await import('../engines/exports/layouts.js');
    const { contextModelExporter } = await import('../engines/exports/context-model.js');
    return [folderExporter, flatExporter, contextModelExporter];
  },
};
