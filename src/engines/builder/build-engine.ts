import { existsSync } from 'node:fs';
import { closing, openFile } from '../../base/files/byte-source.js';
import { sha256OfRange } from '../../base/files/digest.js';
import { TrtforgeError } from '../../errors.js';
import { inPhase, type WorkContext } from '../../events.js';
import { wrongQuantization } from '../../formats/onnx/inspect.js';
import { viewModel } from '../../formats/onnx/model.js';
import type { ValueFacts } from '../../formats/onnx/model-facts.js';
import { isPlaceholder } from '../../formats/onnx/open-dimensions.js';
import { convertModel } from '../../formats/precision/convert.js';
import { isDeclared } from '../../tensorrt/toolchain/find.js';
import { packageVersion } from '../../version.js';
import { engineNameOf, formatEngineName } from '../identity/engine-name.js';
import { type IdentityDocument, identityDigest } from '../identity/identity.js';
import { readModelGraph } from '../identity/model-graph.js';
import type { LayerPrecisions, Passport, PlanContents } from '../identity/passport.js';
import { isPlatform, machineFacts, onlyGpu, platformText, thisPlatform } from '../identity/target.js';
import { readPlanHeader } from '../plan/header.js';
import { contentsOf, type PlanProgram, readPlanProgram } from '../plan/program.js';
import { isRefittable, withoutPlaceholders } from '../plan/refit.js';
import { checkPlanHeader } from '../plan/verify-engine.js';
import { layerPrecisions } from './layer-precisions.js';
import type { BuildFiles, BuildOutcome, BuildSeams, PlanBuilder, ResolvedBuild } from './options.js';
import { runSizes, withPossibleSizes } from './runnable-sizes.js';

/** No plan is smaller than its header and one kernel. */
const SMALLEST_PLAN = 512;

/** The builder that a build names, loaded when it builds. */
export const namedBuilder: PlanBuilder = async (build, files, context) =>
  build.builder === 'native'
    ? (await import('./build-supervised.js')).buildPlan(build, files, context)
    : (await import('./trtexec-build.js')).buildWithTrtexec(build, files, context);

/**
 * Builds into `places.planPath` (after converting the model into `places.modelPath`, where the recipe requires it), checks the plan's size and header, and
 * returns its passport. Publishes nothing. Errors: those of `runSizes`, `convertModel` and of the builder, TF_PLAN_INVALID, TF_ENGINE_HEADER_MISMATCH, TF_BUILD_FAILED.
 */
export async function buildEngine(
  build: ResolvedBuild,
  places: BuildFiles,
  context: BuildSeams,
): Promise<Passport> {
  const { emit, environment = process.env } = context;
  assertHere(build);
  const sizes = await runSizes(build, context);
  const converted = await typedModel(build, places.modelPath, context);
  const modelPath =
    converted?.output ?? (await withoutPlaceholders(build.modelPath, places.modelPath, context));
  const files = { modelPath, planPath: places.planPath };
  const started = new Date();
  const outcome = await inPhase(context.phase ?? 'build', emit, () =>
    withPossibleSizes(build, () =>
      (context.build ?? namedBuilder)({ ...build, conversion: null, converted: undefined }, files, {
        ...context,
        environment: build.device === undefined ? environment : onlyGpu(environment, build.device),
      }),
    ),
  );
  const sha256 = await inPhase('check', emit, async () =>
    checkPlan(places.planPath, outcome, build.identity),
  );
  const { ms: conversionMs = null, warnings: conversionWarnings = [], quantization } = converted ?? {};
  const header = readPlanHeader(places.planPath);
  const program = readPlanProgram(header);
  const { precisions, wrong } = readQuantized(modelPath, program, quantization?.nodes);
  const warnings = [...conversionWarnings, ...wrong, ...outcome.warnings];
  const contents = contentsOf(header, program);
  const graph = isRefittable(build.identity.recipe) ? await readModelGraph(modelPath, context) : null;
  const read = { precisions, contents, graph };
  return passportOf(build, { outcome, sha256, started, conversionMs, warnings, ...read, sizes });
}

/** Throws TF_TOOLCHAIN_NOT_FOUND for a toolchain that was named for another machine. */
function assertHere({ toolchain, identity }: ResolvedBuild): void {
  if (!isDeclared(toolchain)) return;
  const { product, version } = toolchain;
  const { target } = identity;
  const what = `${product} ${version}${isPlatform(target, thisPlatform) ? '' : ` for ${platformText(target)}`}`;
  throw new TrtforgeError(
    'TF_TOOLCHAIN_NOT_FOUND',
    `${what} is not installed here, and no store that was asked has the engine.`,
    {
      remedy:
        'Run the same line where it is installed, with --remote or a shared --cache-dir; here the engine is found then.',
    },
  );
}

/** The plan's precisions of a quantized model, and the nodes that it computes wrongly without a message of the library. */
function readQuantized(
  modelPath: string,
  program: PlanProgram | null,
  decisions: Parameters<typeof layerPrecisions>[2],
) {
  return viewModel(modelPath, (model) => {
    return {
      precisions: program && layerPrecisions(program, model.proto, decisions),
      wrong: wrongQuantization(model).map(({ code, where, message }) => `${where}: ${message} (${code})`),
    };
  });
}

async function typedModel(
  { modelPath, conversion, converted }: ResolvedBuild,
  output: string,
  work: WorkContext,
): Promise<ResolvedBuild['converted']> {
  if (conversion === null || converted !== undefined) return converted;
  const convert = () => convertModel(modelPath, output, conversion, work);
  return inPhase('convert', work.emit, convert);
}

/** A plan counts when it is there, large enough, of the right product and version, and as long as the builder reports. Returns its SHA-256. */
function checkPlan(planPath: string, outcome: BuildOutcome, { target }: IdentityDocument): string {
  if (!existsSync(planPath)) {
    throw new TrtforgeError(
      'TF_BUILD_FAILED',
      `The builder reported success and wrote no plan to ${planPath}.`,
    );
  }
  return closing(openFile(planPath), (source) => {
    if (source.size < SMALLEST_PLAN || source.size !== outcome.bytes) {
      throw new TrtforgeError(
        'TF_BUILD_FAILED',
        `The builder reported a plan of ${outcome.bytes} bytes and left ${source.size} bytes in ${planPath}.`,
      );
    }
    checkPlanHeader(source, target);
    return sha256OfRange(source);
  });
}

/** The tensors of an engine with the names that its model has for their open axes. */
const withSymbols = (
  tensors: BuildOutcome['inputs'],
  declared: readonly Pick<ValueFacts, 'name' | 'shape'>[],
): BuildOutcome['inputs'] =>
  tensors.map((tensor) => {
    const stated = declared.find(({ name }) => name === tensor.name)?.shape ?? [];
    const symbols = (tensor.shape ?? []).map((size, axis) => {
      const symbol = stated[axis];
      return size === null && typeof symbol === 'string' && !isPlaceholder(symbol) ? symbol : null;
    });
    return symbols.some((symbol) => symbol !== null) ? { ...tensor, symbols } : tensor;
  });

interface BuildRecord {
  readonly outcome: BuildOutcome;
  readonly sha256: string;
  readonly started: Date;
  readonly conversionMs: number | null;
  readonly warnings: readonly string[];
  readonly precisions: LayerPrecisions | null;
  readonly contents: PlanContents | null;
  readonly graph: Passport['plan']['graph'] | null;
  readonly sizes: Passport['built']['sizes'];
}

function passportOf(build: ResolvedBuild, record: BuildRecord): Passport {
  const { outcome, precisions, contents, graph } = record;
  const { identity } = build;
  const typed = build.conversion === null ? build.content.precisions : [];
  const machine = machineFacts(build.device);
  const preprocess = build.conversion?.calibration?.preprocess;
  return {
    schema: 'trtforge.passport/1',
    identity: { digest: identityDigest(identity), document: identity },
    name: formatEngineName(engineNameOf(identity, build.model.name, build.model.version), build.extension),
    model: {
      ...build.model,
      ...(typed.length > 0 && { precisions: [...typed] }),
      ...(preprocess !== undefined && { preprocess }),
    },
    plan: {
      sha256: record.sha256,
      bytes: outcome.bytes,
      layers: outcome.layers,
      inputs: withSymbols(outcome.inputs, build.content.inputs),
      outputs: withSymbols(outcome.outputs, build.content.outputs),
      // Left out rather than undefined: a passport equals the one read from its file.
      ...(precisions === null ? {} : { precisions }),
      ...(contents === null ? {} : { contents }),
      ...(graph && { graph }),
    },
    built: {
      by: `trtforge ${packageVersion()}`,
      ...(outcome.builder === undefined ? {} : { builder: outcome.builder }),
      libraryVersion: outcome.libraryVersion,
      toolchain: build.toolchain.foundBy,
      at: record.started.toISOString(),
      ms: outcome.buildMs,
      conversionMs: record.conversionMs,
      peakMemoryBytes: outcome.peakMemoryBytes,
      timingCache: outcome.timingCache,
      os: `${process.platform} ${process.arch}`,
      node: process.version,
      gpu: machine.gpu,
      driver: machine.driver,
      ...(record.sizes && { sizes: record.sizes }),
      ...(outcome.refitted && { refitted: outcome.refitted }),
    },
    warnings: [...record.warnings],
  };
}
