import { mkdtempSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { removeIfAllowed } from '../../base/files/files.js';
import { makeFolder } from '../../base/files/folders.js';
import { publishFile, writeFailed } from '../../base/files/publish.js';
import type { BuildOptions, PlanBuilder } from '../../engines/builder/options.js';
import { chooseTarget, resolveBuild } from '../../engines/builder/resolve-build.js';
import { measuresKernels } from '../../engines/builder/shared-timing-caches.js';
import { identityDigest } from '../../engines/identity/identity.js';
import type { Passport } from '../../engines/identity/passport.js';
import type { ProfileRange } from '../../engines/identity/recipe.js';
import type { ProfileRequest } from '../../engines/profiles/profile.js';
import { openTrust, type Trust, verifyTrusted } from '../../engines/store/trust.js';
import { TrtforgeError } from '../../errors.js';
import type { EventListener, LogSeverity, Work } from '../../events.js';
import { buildOrLoad } from '../../quality/known-answer/build-or-load.js';
import { severityLetters } from '../../tensorrt/trtexec/log/lines.js';
import { packageVersion } from '../../version.js';
import type { StreamsBuilder, StreamsEngine } from './effects.js';
import { type StreamsInputs, shapesAt } from './input.js';
import type { StreamsPaths } from './names.js';
import { logTime, plain } from './trtexec-form-log.js';

interface EngineBuilderOptions {
  readonly requested: BuildOptions;
  readonly inputs: StreamsInputs;
  readonly paths: StreamsPaths;
  readonly firstMaxBatch: number;
  readonly work: Work;
  /** The writer of plans; default: the builder that is requested. */
  readonly build?: PlanBuilder;
}

/** Builds through the library or trtexec, by way of the engine store, into DeepStream's layout. */
export class EngineBuilder implements StreamsBuilder {
  readonly #options: EngineBuilderOptions;

  constructor(options: EngineBuilderOptions) {
    this.#options = options;
  }

  async find(maxBatch: number): Promise<StreamsEngine | null> {
    const { paths, requested, work } = this.#options;
    const path = paths.engine(maxBatch);
    const passport = await soundPassport(path, openTrust(requested, work.environment));
    if (passport === null) return null;
    const request = await engineRequest(this.#options, maxBatch);
    const prepared = await resolveBuild(request, work);
    return identityDigest(prepared.identity) === passport.identity.digest
      ? streamsEngine(path, maxBatch, passport, [])
      : null;
  }

  async build(maxBatch: number): Promise<StreamsEngine> {
    const { paths, work, build } = this.#options;
    const path = paths.engine(maxBatch);
    const log = new BuildLog(paths, maxBatch, maxBatch === this.#options.firstMaxBatch);
    const listen: EventListener = (event) => {
      if (event.type === 'log') log.take(event.severity, event.message);
      work.emit(event);
    };
    try {
      const { passport, warnings, source } = await buildOrLoad(
        { ...(await engineRequest(this.#options, maxBatch)), logFolder: log.folder },
        { ...work, emit: listen, build },
      );
      const engine = streamsEngine(path, maxBatch, passport, warnings);
      // An engine from the store was built another time, and its log is not here.
      if (source === 'built') log.finish(engine.buildSeconds);
      else log.clear();
      return engine;
    } finally {
      log.publish();
    }
  }
}

/** The build of the engine for batches up to this one, into its place. */
export async function engineRequest(
  { requested, inputs, paths, work }: Pick<EngineBuilderOptions, 'requested' | 'inputs' | 'paths' | 'work'>,
  maxBatch: number,
): Promise<BuildOptions> {
  const { request } = await chooseTarget(requested, work.environment);
  return {
    ...requested,
    profiles: [profileOf(inputs, maxBatch)],
    output: paths.engine(maxBatch),
    timingCache: measuresKernels(request) ? paths.timingCache : null,
  };
}

/** min = 1, opt = max: the kernels are chosen for the batch that is measured and deployed. */
function profileOf(inputs: StreamsInputs, maxBatch: number): ProfileRequest {
  const lowest = shapesAt(inputs, 1);
  const highest = shapesAt(inputs, maxBatch);
  const open = inputs.inputs.flatMap(({ name, shape }, index): [string, ProfileRange][] => {
    const [min, max] = [lowest[index], highest[index]];
    if (min === undefined || max === undefined || !shape.includes('batch')) return [];
    return [[name, { min: [...min.dims], opt: [...max.dims], max: [...max.dims], values: false }]];
  });
  return new Map(open);
}

/** The passport of an engine that passes every check; null for one that is missing or does not. */
async function soundPassport(path: string, trust: Trust): Promise<Passport | null> {
  try {
    return (await verifyTrusted(trust, path)).passport;
  } catch (error) {
    if (error instanceof TrtforgeError) return null;
    throw error;
  }
}

const streamsEngine = (
  path: string,
  maxBatch: number,
  { plan, identity, built, warnings }: Passport,
  more: readonly string[],
): StreamsEngine => ({
  maxBatch,
  path,
  bytes: plan.bytes,
  sha256: plan.sha256,
  identity: identity.digest,
  buildSeconds: (built.ms + (built.conversionMs ?? 0)) / 1000,
  library: `${identity.document.target.product} ${built.libraryVersion}`,
  warnings: [...more, ...warnings],
});

/** trtexec's own log where it built, else the library's lines, under the name that DeepStream's scripts give a build log. Nothing when nothing was said. */
class BuildLog {
  readonly #path: string;
  readonly #lines: string[] = [];
  /** trtexec names its log itself, so it gets a folder to do it in. */
  readonly folder: string;

  constructor(paths: StreamsPaths, maxBatch: number, isFirst: boolean) {
    this.#path = paths.buildLog(maxBatch, isFirst, new Date());
    try {
      makeFolder(paths.engines);
      this.folder = mkdtempSync(join(paths.engines, '.build-log-'));
    } catch (cause) {
      throw writeFailed(paths.engines, cause);
    }
  }

  take(severity: LogSeverity, message: string): void {
    for (const line of message.split('\n'))
      this.#lines.push(`[${logTime(new Date())}] [${severityLetters[severity]}] [TRT] ${line}`);
  }

  /** In trtexec's words, so that the time is found again. */
  finish(seconds: number): void {
    this.#lines.push(`[${logTime(new Date())}] [I] Engine built in ${plain(seconds)} sec.`);
  }

  clear(): void {
    this.#lines.length = 0;
  }

  publish(): void {
    const [own] = readdirSync(this.folder);
    if (own !== undefined) renameSync(join(this.folder, own), this.#path);
    else if (this.#lines.length > 0) {
      const mark = `Built by trtforge ${packageVersion()}, not by trtexec; these are the library's own lines.`;
      publishFile(this.#path, `${[mark, ...this.#lines].join('\n')}\n`);
    }
    removeIfAllowed(this.folder);
  }
}
