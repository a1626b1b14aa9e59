import { type Product, verbOf } from '../command.js';

const engines = verbOf('Engines');
const quality = verbOf('Quality');
const store = verbOf('Store');
const machine = verbOf('Machine');

const engine = () => import('./engine.js');
const cache = () => import('./cache.js');
const transfer = () => import('./cache-transfer.js');
const trust = () => import('./cache-sign.js');
const toolchain = () => import('./toolchain.js');

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
      () => import('./forge.js'),
    ),
    engines('inspect', 'what is in an ONNX model', () => import('./inspect.js')),
    engines(
      'convert',
      'FP32 ONNX to FP16, BF16, or Q/DQ codes: INT8, FP8, INT4, NVFP4',
      () => import('./convert.js'),
    ),
    engines('build', 'build an engine, or find it in the store', () => import('./build.js')),
    engines('engine inspect', 'version, size, passport and header of a plan, without loading it', engine),
    engines(
      'engine check',
      'let an engine prove itself on this GPU: its known answer, repeats, rows, profiles, graph, contexts',
      () => import('./engine-check.js'),
    ),
    engines(
      'engine layers',
      'tactics, types, layouts, memory and ONNX nodes of the layers (needs the GPU of the engine)',
      engine,
    ),
    engines(
      'engine refit',
      'put the weights of another model with the same graph into an engine, without a new build',
      () => import('./engine-refit.js'),
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
      () => import('./run.js'),
    ),
    quality(
      'verify',
      'compare a converted model or an engine with its FP32 original on the same inputs',
      () => import('./verify.js'),
    ),
    quality('compare', 'compare recorded outputs with others', () => import('./compare.js')),
    quality('bench', 'measure an engine on the GPU', () => import('./bench.js')),
    quality(
      'bench compare',
      'measure two sides in turns: two engines, or one engine in two modes',
      () => import('./bench-compare.js'),
    ),
    quality('bench model', 'measure an ONNX model on ONNX Runtime', () => import('./bench-model.js')),
    quality(
      'gate',
      'judge results by a policy with limits, baselines and waivers',
      () => import('./gate.js'),
    ),
    quality(
      'gate init',
      'write a policy to begin with: what results measured becomes its limits',
      () => import('./gate-init.js'),
    ),
    quality(
      'report',
      'render the report of a result again, or of two side by side',
      () => import('./report.js'),
    ),
    quality(
      'explain',
      'what a TensorRT log means, and what to do about it; 1 where it shows errors',
      () => import('./explain.js'),
    ),
    store('cache ls', 'the engines in the store, the newest first', cache),
    store(
      'cache why',
      'whether build would find an engine, and if not, what differs from the nearest one',
      () => import('./cache-why.js'),
    ),
    store(
      'cache check',
      'let the engines of the store prove themselves on this GPU',
      () => import('./cache-check.js'),
    ),
    store('cache verify', 'check every engine against its passport and what is trusted', cache),
    store(
      'cache gc',
      'remove the engines and timing caches used least recently until the store fits its limit',
      cache,
    ),
    store('cache clear', 'remove every engine and timing cache from the store', cache),
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
      () => import('./doctor.js'),
    ),
    machine(
      'report-bug',
      'run a failing command again, and pack what others need to repeat it',
      () => import('./report-bug.js'),
    ),
    machine('toolchain list', 'every TensorRT found, and what it can do here', toolchain),
    machine('toolchain install', 'install tensorrt-rtx, which builds engines without a GPU', toolchain),
    machine('toolchain remove', 'remove a toolchain that trtforge installed', toolchain),
    machine('toolchain env', 'the exports that make a toolchain visible to other programs', toolchain),
    machine(
      'completion',
      'the script with which bash, zsh or fish completes verbs, options and values',
      () => import('./completion.js'),
    ),
    machine('migrate', 'the trtforge line for a line of trtexec or Polygraphy', () => import('./migrate.js')),
  ],
  files: {
    'gate-baseline': async () => (await import('../../quality/gate/baseline.js')).baselineSchema,
    'known-answer': async () => (await import('../../engines/identity/passport.js')).knownAnswerSchema,
    passport: async () => (await import('../../engines/identity/passport.js')).passportSchema,
    'run-comparison': async () => (await import('../../report/comparison/result.js')).runComparisonSchema,
    toolchain: async () => (await import('../../tensorrt/toolchain/manifest.js')).toolchainManifestSchema,
  },
  printed: {
    plan: async () => (await import('../printed-schemas.js')).planSchema,
    error: async () => (await import('../printed-schemas.js')).errorSchema,
    config: async () => (await import('../printed-schemas.js')).configSchema,
    version: async () => (await import('../printed-schemas.js')).versionSchema,
  },
  foreignFlags: async () => (await import('../migrate/tables.js')).coreRows,
  reports: async () => [
    (await import('../../report/pages/forge.js')).forgeReport,
    (await import('../../report/pages/verify.js')).verifyReport,
    (await import('../../report/pages/verify.js')).compareReport,
    (await import('../../report/pages/bench.js')).benchReport,
  ],
  exporters: async () => {
    const { folderExporter, flatExporter } = await import('../../engines/exports/exporter.js');
    const { contextModelExporter } = await import('../../engines/exports/context-model.js');
    return [folderExporter, flatExporter, contextModelExporter];
  },
};
