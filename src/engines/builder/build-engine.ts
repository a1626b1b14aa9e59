import { existsSync } from 'node:fs';
import { openFile } from '../../base/files/byte-source.js';
import { sha256OfRange } from '../../base/files/digest.js';
import { TrtforgeError } from '../../errors.js';
import { inPhase } from '../../events.js';
import { convertModel } from '../../formats/precision/convert.js';
import { formatNamed } from '../../formats/precision/formats/index.js';
import type { Calibration } from '../../formats/precision/options.js';
import type { Toolchain } from '../../tensorrt/toolchain/toolchain.js';
import { packageVersion } from '../../version.js';
import { convertOptions } from '../identity/conversion.js';
import { type EngineExtension, engineNameOf, formatEngineName } from '../identity/engine-name.js';
import { type IdentityDocument, identityDigest } from '../identity/identity.js';
import { type MachineFacts, machineFacts, onlyGpu } from '../identity/machine.js';
import type { Passport } from '../identity/passport-file.js';
import { checkPlanHeader } from '../plan/verify-engine.js';
import { buildPlan, type PlanBuildContext } from './build-plan.js';
import type { BuildOutcome, BuildRequest } from './build-request.js';
import { timingCachePath } from './timing-cache.js';

/** Builds plans; the default is the library through the addon, in a child process. */
export type PlanBuilder = (request: BuildRequest, options: PlanBuildContext) => Promise<BuildOutcome>;

/** A build with everything decided. */
export interface EngineRequest {
  readonly modelPath: string;
  readonly model: Passport['model'];
  readonly identity: IdentityDocument;
  readonly toolchain: Toolchain;
  readonly pluginPaths: readonly string[];
  readonly extension: EngineExtension;
  /** The calibration whose digest the recipe's conversion holds. */
  readonly calibration?: Calibration;
  /** Which of the visible GPUs builds, and is the only one its builder sees; default: the first. */
  readonly device?: number;
  /** The model as the recipe converts it, where the caller has it already. */
  readonly converted?: { readonly path: string; readonly ms: number } | undefined;
  /** A file, `auto` for the one of this target under the cache folder, null for none. */
  readonly timingCache: string | null;
  readonly cacheFolder: string;
}

export interface EnginePlaces {
  /** Where the plan is written; unpublished. */
  readonly planPath: string;
  /** Where a converted model is written before the build; unpublished. */
  readonly modelPath: string;
}

export interface EngineBuildOptions extends PlanBuildContext {
  readonly build?: PlanBuilder;
}

/** No plan is smaller than its header and one kernel. */
const SMALLEST_PLAN = 512;

/**
 * Builds the plan of a request into `places.planPath` (after converting the model, where the recipe says so), checks its size and header, and
 * gives its passport. Publishes nothing. Errors: those of `convertModel` and `buildPlan`, TF_PLAN_INVALID, TF_ENGINE_HEADER_MISMATCH, TF_BUILD_FAILED.
 */
export async function buildEngine(
  request: EngineRequest,
  places: EnginePlaces,
  options: EngineBuildOptions,
): Promise<Passport> {
  const { emit } = options;
  const { recipe, target } = request.identity;
  const converted = await typedModel(request, places, options);
  const machine = machineFacts(request.device);
  const started = new Date();
  const outcome = await inPhase('build', emit, () =>
    (options.build ?? buildPlan)(
      {
        toolchain: request.toolchain,
        modelPath: converted?.path ?? request.modelPath,
        ...(converted === undefined ? {} : { givenModel: request.modelPath }),
        planPath: places.planPath,
        recipe,
        computeCapabilities: target.product === 'tensorrt-rtx' ? target.computeCapabilities : [],
        timingCachePath:
          request.timingCache === 'auto'
            ? timingCachePath(request.cacheFolder, target, machine)
            : request.timingCache,
        pluginPaths: request.pluginPaths,
      },
      request.device === undefined
        ? options
        : { ...options, env: onlyGpu(options.env ?? process.env, request.device) },
    ),
  );
  const sha256 = await inPhase('check', emit, async () =>
    checkPlan(places.planPath, outcome, request.identity),
  );
  return passportOf(request, { outcome, sha256, started, conversionMs: converted?.ms ?? null, machine });
}

async function typedModel(
  { modelPath, identity: { recipe }, calibration, converted }: EngineRequest,
  places: EnginePlaces,
  { emit, signal }: EngineBuildOptions,
): Promise<{ readonly path: string; readonly ms: number } | undefined> {
  const { conversion } = recipe;
  const precision = formatNamed(recipe.precision)?.id;
  if (conversion === null || precision === undefined) return undefined;
  if (converted !== undefined) return converted;
  const { ms } = await inPhase('convert', emit, () =>
    convertModel(modelPath, places.modelPath, convertOptions(precision, conversion, calibration), {
      emit,
      ...(signal === undefined ? {} : { signal }),
    }),
  );
  return { path: places.modelPath, ms };
}

/** What a builder gave is believed when it is there, large enough, of the right product and version, and as long as it said. Gives its SHA-256. */
function checkPlan(planPath: string, outcome: BuildOutcome, { target }: IdentityDocument): string {
  if (!existsSync(planPath)) {
    throw new TrtforgeError(
      'TF_BUILD_FAILED',
      `The builder reported success and wrote no plan to ${planPath}.`,
    );
  }
  const source = openFile(planPath);
  try {
    if (source.size < SMALLEST_PLAN || source.size !== outcome.bytes) {
      throw new TrtforgeError(
        'TF_BUILD_FAILED',
        `The builder reported a plan of ${outcome.bytes} bytes and left ${source.size} bytes in ${planPath}.`,
      );
    }
    checkPlanHeader(source, target);
    return sha256OfRange(source);
  } finally {
    source.close();
  }
}

interface BuildRecord {
  readonly outcome: BuildOutcome;
  readonly sha256: string;
  readonly started: Date;
  readonly conversionMs: number | null;
  readonly machine: MachineFacts;
}

function passportOf(request: EngineRequest, record: BuildRecord): Passport {
  const { outcome, machine } = record;
  const { identity, model } = request;
  return {
    schema: 'trtforge.passport/1',
    identity: { digest: identityDigest(identity), document: identity },
    name: formatEngineName(engineNameOf(identity, model.name, model.version), request.extension),
    model,
    plan: {
      sha256: record.sha256,
      bytes: outcome.bytes,
      layers: outcome.layers,
      inputs: outcome.inputs,
      outputs: outcome.outputs,
    },
    built: {
      by: `trtforge ${packageVersion()}`,
      ...(outcome.builder === undefined ? {} : { builder: outcome.builder }),
      libraryVersion: outcome.libraryVersion,
      toolchain: request.toolchain.foundBy,
      at: record.started.toISOString(),
      ms: outcome.buildMs,
      conversionMs: record.conversionMs,
      peakMemoryBytes: outcome.peakMemoryBytes,
      timingCache: outcome.timingCache,
      os: `${process.platform} ${process.arch}`,
      node: process.version,
      gpu: machine.gpu,
      driver: machine.driver,
    },
    warnings: outcome.warnings,
  };
}
