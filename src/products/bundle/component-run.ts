import { existsSync, readdirSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import type { GpuList } from '../../addon/addon.js';
import { removeIfAllowed } from '../../base/files/files.js';
import { publishFile } from '../../base/files/publish.js';
import { assertNotInput } from '../../base/files/user-files.js';
import { valuesOf } from '../../base/options/option.js';
import { namedBuilder } from '../../engines/builder/build-engine.js';
import type { PlanBuilder, ResolvedBuild } from '../../engines/builder/options.js';
import { measuresKernels } from '../../engines/builder/shared-timing-caches.js';
import { whyNotRun } from '../../engines/identity/target.js';
import type { ProfileRequest } from '../../engines/profiles/profile.js';
import { TrtforgeError } from '../../errors.js';
import type { EventListener, Work, WorkEvent } from '../../events.js';
import type { Machine } from '../../forge/environment.js';
import { type EnginePlan, forgePhases, planEngine, resultOf } from '../../forge/forge.js';
import { type Clock, type Forged, type Phase, PhaseRun, type Run } from '../../forge/phase-run.js';
import { openRunLog, type RunLog } from '../../forge/run-log.js';
import { runRootAt } from '../../forge/run-root.js';
import { type ForgeResult, forgeResultSchema } from '../../report/forge-result.js';
import { severityLetters } from '../../tensorrt/trtexec/log/lines.js';
import { onlyLoadOptions } from '../../tensorrt/trtexec/options.js';
import type { Component } from './component.js';
import { buildChecked } from './component-builder.js';
import { type ComponentConversion, lowerConversion } from './component-conversion.js';
import type { ModelFiles } from './model-files.js';
import type { BundleContext, BundleRequest } from './options.js';
import { componentBuild } from './read-bundle.js';
import type { SmokeRun } from './result.js';
import { type SmokeSubject, smokeRun } from './smoke.js';
import { type Staged, stageComponent } from './staged-model.js';

/** The results of the phases over one component: those of forge, and one run of it. */
interface ComponentFound extends Forged {
  readonly smoke: SmokeRun;
  /** Why it was not run, where it was to be. */
  readonly notRun: string;
}

/** A component with its profile, and what is known of its files. */
export interface ComponentPart {
  /** As the builder gets it. */
  readonly component: Component;
  readonly profile: ProfileRequest;
  readonly files: ModelFiles;
  readonly staged: Staged | null;
  readonly conversion: ComponentConversion;
}

/** The shared setting of the runs over the components of a bundle. */
export interface BundleSetting {
  readonly request: BundleRequest;
  readonly work: Work;
  readonly build: BundleContext['build'];
  readonly commandLine: string | null;
  /** With no other GPU than that of the run; `visible` are all. */
  readonly machine: Machine;
  readonly visible: GpuList;
  /** Makes the folder of staged and typed models at the first call, and returns it. */
  readonly temporary: () => string;
  readonly clock: Clock;
}

export const enginePath = ({ outdir }: BundleRequest, component: string): string =>
  join(outdir, `${component}.engine`);

/** The logs of a component, by the phase. */
export const logPaths = ({ outdir }: BundleRequest, component: string) => ({
  build: join(outdir, 'build_logs', `${component}.log`),
  'smoke run': join(outdir, 'build_logs', `${component}_smoke.log`),
});

/** The run of forge over one component, and one run of what it made. */
export class ComponentRun {
  part: ComponentPart;
  forge: PhaseRun<ComponentFound>;
  /** trtexec as it was called, where it built. */
  trtexecCommand: readonly string[] = [];
  readonly #setting: BundleSetting;
  readonly #phases: () => PhaseRun<ComponentFound>;
  #run: Run;
  readonly #log: RunLog;
  readonly #startedAt = new Date().toISOString();

  constructor(part: ComponentPart, setting: BundleSetting) {
    const { request, temporary, clock, work, ...shared } = setting;
    const { name, onnx } = part.component;
    const logs: Partial<Record<string, string>> = logPaths(request, name);
    const root = {
      ...runRootAt(request.outdir),
      logs: join(request.outdir, 'build_logs'),
      typedModel: (_: string, precision: string) => join(temporary(), 'typed', `${name}.${precision}.onnx`),
    };
    this.part = part;
    this.#setting = setting;
    this.#run = {
      ...shared,
      environment: work.environment,
      options: {
        ...componentBuild(request, part.component, part.profile),
        ...part.conversion.options,
        // A file that is named is the bundle's own to pass on.
        timingCache: (request.timingCache ?? 'auto') === 'auto' ? 'auto' : null,
        logFolder: join(root.logs, `.trtexec-${name}`),
      },
      root,
      engine: enginePath(request, name),
      // The chained check and a smoke run without a GPU run it on ONNX Runtime.
      needsTypedModel: () =>
        request.check !== false || ((request.smoke ?? 'always') === 'always' && this.whyNotRun() !== null),
      build: (...build) => this.#buildPlan(...build),
    };
    this.#log = openRunLog({ logs: root.logs, log: (phase) => logs[phase] ?? null }, trtexecLines, work.emit);
    this.#phases = () =>
      new PhaseRun(
        { ...work, emit: forComponent(work.emit, name), model: onnx },
        this.#log.write,
        clock,
        this.#log.begin,
      );
    this.forge = this.#phases();
  }

  get name(): string {
    return this.part.component.name;
  }

  /** Decides everything; nothing is written. */
  decide(): Promise<void> {
    return this.forge.advance(forgePhases(this.#run).decide);
  }

  /** Links the model into the bundle's folder; what was decided about it is of its content and stays. Throws TF_WRITE_FAILED. */
  stage(): void {
    const { component } = this.part;
    const staged = stageComponent(component, this.#setting.temporary());
    const { onnx } = staged;
    this.part = { ...this.part, component: { ...component, onnx }, staged };
    this.#run = { ...this.#run, options: { ...this.#run.options, model: onnx } };
    this.forge.found = { ...this.forge.found, prepared: { ...this.prepared, modelPath: onnx } };
  }

  /** Where no node of it can have the precision, it is decided again and made in a lower one, whose name its engine bears. */
  async make(): Promise<void> {
    const decided = this.forge;
    const attempt = decided.fork();
    await attempt.advance(forgePhases(this.#run).make);
    const lower = lowerConversion(this.name, this.part.conversion, attempt.error);
    if (decided.error !== null || lower === undefined) {
      this.forge = attempt;
      return;
    }
    this.part = { ...this.part, conversion: lower };
    this.#run = { ...this.#run, options: { ...this.#run.options, ...lower.options } };
    this.forge = this.#phases();
    await this.decide();
    await this.make();
  }

  async smoke(): Promise<void> {
    await this.forge.advance([this.#smokePhase()]);
    this.#log.close();
  }

  /** The plan for obtaining the engine; only after everything was decided. */
  plan(): Promise<EnginePlan> {
    return planEngine(this.#run, this.prepared, this.#setting.work.signal);
  }

  /** The smoke run and why it would be skipped; only after everything was decided. */
  get smokePlan(): { readonly runs: string; readonly skipped: string | null } {
    const onEngine = this.whyNotRun() === null;
    const isTyped = this.prepared.identity.recipe.conversion !== null;
    return {
      runs: onEngine ? 'the engine' : `the ${isTyped ? 'typed model' : 'model'} on ONNX Runtime`,
      skipped: this.#smokePhase().skip({}),
    };
  }

  /** The result of forge over the component, as it is read again. */
  result(): ForgeResult {
    const totalMs = this.forge.phases.reduce((sum, { ms }) => sum + (ms ?? 0), 0);
    const times = { startedAt: this.#startedAt, totalMs, isReported: false, heal: null };
    return forgeResultSchema.parse(resultOf(this.#run, this.forge, times));
  }

  /** The resolved build; only after it was decided. */
  get prepared(): ResolvedBuild {
    const { prepared } = this.forge.found;
    if (prepared === undefined) throw new Error(`Nothing is decided yet about the ${this.name}.`);
    return prepared;
  }

  /** The model as the builder gets it: converted where the recipe says so. */
  get typedModel(): string {
    return this.forge.found.conversion?.output ?? this.prepared.modelPath;
  }

  /** Why the engine cannot run on the GPU of this run, or null. */
  whyNotRun(): string | null {
    return whyNotRun(this.#setting.machine.gpus, this.prepared.identity);
  }

  /** The engine, loaded with the libraries that it was built with. */
  get engine(): SmokeSubject {
    const { device = 0, ...request } = this.#setting.request;
    const { toolchain, pluginPaths: plugins } = this.prepared;
    const options = { ...valuesOf(onlyLoadOptions, request), device, toolchain, plugins };
    return { ran: 'engine', path: enginePath(this.#setting.request, this.name), options, instead: null };
  }

  #smokePhase(): Phase<ComponentFound> {
    const { request } = this.#setting;
    return {
      name: 'smoke run',
      skip: () => {
        if (request.smoke === 'never') return 'smoke: never';
        return request.smoke === 'engine' ? this.whyNotRun() : null;
      },
      run: async ({ conversion }, context) => {
        const instead = this.whyNotRun();
        const ran = conversion === undefined ? 'model' : 'typed model';
        const subject =
          instead === null ? this.engine : ({ ran, path: this.typedModel, options: {}, instead } as const);
        try {
          const smoke = await smokeRun(this.part, subject, context);
          return { found: { smoke }, detail: `the ${smoke.ran} on ${smoke.backend}` };
        } catch (error) {
          if (!(error instanceof TrtforgeError) || error.code !== 'TF_ONNXRUNTIME_MISSING') throw error;
          const notRun = `The ${this.name} did not run: ${instead}, and ONNX Runtime is missing.`;
          return { found: { notRun }, detail: notRun };
        }
      },
    };
  }

  /** Builds with the timing cache that is named, or those of the store and leaves a copy, and moves what trtexec's builder logs to the component's log. */
  async #buildPlan(...[build, files, context]: Parameters<PlanBuilder>): ReturnType<PlanBuilder> {
    const { request, build: builder = namedBuilder } = this.#setting;
    const log = logPaths(request, this.name).build;
    const timingCache = timingCacheFor(build, request);
    if (timingCache !== null) assertNotInput(timingCache);
    try {
      const own = build.timingScope === null ? { ...build, timingCache } : build;
      const outcome = await buildChecked(builder, [own, files, context], { ...this.part, log });
      const left = own === build ? own.timingCache : null;
      if (left !== null && timingCache !== null && existsSync(left))
        publishFile(timingCache, readFileSync(left));
      return outcome;
    } finally {
      this.trtexecCommand = takeTrtexecLog(build.logFolder, log);
    }
  }
}

/** Events with the component's name before every phase, so that components built side by side stay distinct. */
const forComponent =
  (emit: EventListener, component: string): EventListener =>
  (event) =>
    emit('phase' in event ? { ...event, phase: `${component}: ${event.phase}` } : event);

/** The timing cache of a bundle: one that was named, else a copy in its folder of what its last build left; null for none, or where it has no effect. */
export function timingCacheFor(
  { identity }: Pick<ResolvedBuild, 'identity'>,
  { timingCache = 'auto', outdir }: BundleRequest,
): string | null {
  if (!measuresKernels(identity.target)) return null;
  return timingCache === 'auto' ? join(outdir, 'timing.cache') : timingCache;
}

/** The lines of a library in trtexec's form (`[11/21/2026-06:00:00] [I] text`, local time), so that what reads trtexec's logs reads these. */
function trtexecLines(event: WorkEvent): string | null {
  if (event.type !== 'log') return null;
  const at = new Date();
  const two = (part: number) => String(part).padStart(2, '0');
  const stamp = `${two(at.getMonth() + 1)}/${two(at.getDate())}/${at.getFullYear()}-${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  const lines = event.message.split('\n');
  return lines.map((text) => `[${stamp}] [${severityLetters[event.severity]}] ${text}`).join('\n');
}

/** Moves the log that trtexec's builder left alone in `folder` to its name; returns the command line that trtexec echoes in it, word by word. */
function takeTrtexecLog(folder: string, path: string): readonly string[] {
  const [name] = existsSync(folder) ? readdirSync(folder) : [];
  if (name === undefined) return [];
  renameSync(join(folder, name), path);
  removeIfAllowed(folder);
  const [, command = ''] =
    /^&&&& RUNNING TensorRT\.trtexec[^#\n]*# (.*)$/m.exec(readFileSync(path, 'latin1')) ?? [];
  return command.split(/\s+/).filter((word) => word !== '');
}
