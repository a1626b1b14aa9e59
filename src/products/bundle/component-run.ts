import { dirname, join } from 'node:path';
import { planBuilder } from '../../engines/builder/plan-builders.js';
import type { ResolvedBuild } from '../../engines/builder/prepare.js';
import { whyNotRun } from '../../engines/identity/machine.js';
import { TrtforgeError } from '../../errors.js';
import type { EventListener } from '../../events.js';
import { buildPhase } from '../../forge/build-phase.js';
import { convertPhase } from '../../forge/convert-phase.js';
import type { Machine } from '../../forge/environment.js';
import { resultOf } from '../../forge/forge.js';
import { inspectPhase } from '../../forge/inspect-phase.js';
import { type Clock, notStarted, type Phase, type PhaseContext, runPhases } from '../../forge/phase.js';
import { resolvePhase } from '../../forge/resolve-phase.js';
import { runRootAt } from '../../forge/run-root.js';
import type { Forged, Run } from '../../forge/run-state.js';
import type { ExplainedIssue } from '../../quality/explain/explained-issue.js';
import { type ForgeResult, forgeResultSchema, type ReportPhase } from '../../report/result.js';
import type { GpuList } from '../../tensorrt/addon/addon.js';
import type { BundleContext, BundleRequest } from './bundle-request.js';
import { componentBuilder, type PreparedComponent } from './component-builder.js';
import { ComponentLog, takeTrtexecLog } from './component-log.js';
import { digestFiles, type ModelFiles } from './model-files.js';
import type { SmokeRun } from './report-schema.js';
import { builtEngine, type SmokeSubject, smokeRun } from './smoke.js';
import type { Staged } from './stage.js';

/** What the phases over one component find: those of forge, and one run of it. */
interface ComponentFound extends Forged {
  readonly smoke: SmokeRun;
}

type ComponentPhase = Phase<ComponentFound>;

/** What the runs over the components of a bundle share. */
export interface BundleSetting {
  readonly request: BundleRequest;
  readonly environment: NodeJS.ProcessEnv;
  readonly build: BundleContext['build'];
  readonly commandLine: string | null;
  /** With no other GPU than that of the run; `visible` are all. */
  readonly machine: Machine;
  readonly visible: GpuList;
  /** Where staged and typed models lie while the run lasts. */
  readonly temporary: string;
  readonly clock: Clock;
}

/** One component on its way through the phases of forge; the report is made of it, however far it came. */
export class ComponentRun {
  readonly name: string;
  readonly onnx: string;
  readonly enginePath: string;
  readonly buildLog: ComponentLog;
  readonly smokeLog: ComponentLog;
  part?: Pick<PreparedComponent, 'component' | 'profile'>;
  staged?: Staged;
  files?: ModelFiles;
  trtexecCommand: readonly string[] | undefined;
  found: Partial<ComponentFound> = {};
  error: ForgeResult['error'] = null;
  /** Why it was not run, where it was to be. */
  notRun: string | undefined;
  readonly #setting: BundleSetting;
  readonly #startedAt = new Date().toISOString();
  readonly #phases: ReportPhase[] = [];
  readonly #issues: ExplainedIssue[] = [];

  constructor(name: string, onnx: string, setting: BundleSetting) {
    const { outdir } = setting.request;
    this.name = name;
    this.onnx = onnx;
    this.#setting = setting;
    this.enginePath = join(outdir, `${name}.engine`);
    this.buildLog = new ComponentLog(join(outdir, 'build_logs', `${name}.log`));
    this.smokeLog = new ComponentLog(join(outdir, 'build_logs', `${name}_smoke.log`));
  }

  /** With everything decided, once it is. */
  get target(): PreparedComponent | undefined {
    const { part, enginePath } = this;
    const { prepared } = this.found;
    return part === undefined || prepared === undefined ? undefined : { ...part, prepared, enginePath };
  }

  /** The model as the builder gets it: converted where the recipe says so. */
  get typedModel(): string | undefined {
    return this.found.conversion?.output ?? this.found.prepared?.modelPath;
  }

  /** Known issues that the lines of its phases show although they ended well; notes are harmless. */
  get issues(): readonly ExplainedIssue[] {
    return this.#issues.filter(({ severity }) => severity !== 'note');
  }

  /** The result of its phases, as forge gives it for one model; null before the first. */
  result(): ForgeResult | null {
    if (this.part === undefined) return null;
    const phases = [...this.#phases];
    const outcome = { found: this.found, phases, error: this.error, issues: this.#issues };
    const totalMs = phases.reduce((sum, { ms }) => sum + (ms ?? 0), 0);
    const times = { startedAt: this.#startedAt, totalMs, isReported: false };
    return forgeResultSchema.parse(resultOf(this.#run(), outcome, times));
  }

  /** Decides everything; nothing is written. */
  prepare(context: PhaseContext): Promise<void> {
    const run = this.#run();
    return this.#advance([inspectPhase(run), this.#resolvePhase(run)], context);
  }

  async build(context: PhaseContext): Promise<void> {
    const logs = trtexecLogs(this.buildLog, this.name);
    const { request, build, environment } = this.#setting;
    const builder = componentBuilder(
      build ?? planBuilder(request.builder ?? 'native', logs),
      this.target!,
      this.buildLog.path,
      environment,
    );
    const run = { ...this.#run(), build: builder };
    await this.#advance([this.#convertPhase(run), buildPhase(run)], context);
    this.buildLog.close();
    this.trtexecCommand = takeTrtexecLog(logs, this.buildLog.path);
  }

  async smoke(context: PhaseContext): Promise<void> {
    await this.#advance([this.#smokePhase()], context);
    this.smokeLog.close();
  }

  /** Records the phases that the run stopped before. */
  leaveOut(reason: string): void {
    for (const name of ['build', 'smoke run'])
      if (this.part !== undefined && !this.#phases.some((phase) => phase.name === name))
        this.#phases.push(notStarted(name, 'not-reached', reason));
  }

  /** Whether a phase that writes has begun. */
  get hasBegun(): boolean {
    return this.#phases.some(({ name, startMs }) => name === 'build' && startMs !== null);
  }

  async #advance(phases: readonly ComponentPhase[], context: PhaseContext): Promise<void> {
    const outcome = await runPhases(
      phases,
      { ...context, emit: forComponent(context.emit, this.name), model: this.onnx },
      (phase, event) => {
        if (phase === 'build') this.buildLog.take(event);
        if (phase === 'smoke run') this.smokeLog.take(event);
      },
      this.#setting.clock,
      undefined,
      this.found,
    );
    this.found = outcome.found;
    this.error = outcome.error;
    this.#phases.push(...outcome.phases.filter(({ status }) => status !== 'not-reached'));
    this.#issues.push(...outcome.issues);
  }

  #run(): Run {
    const { request, environment, build, commandLine, machine, visible, temporary } = this.#setting;
    const profile = this.part?.profile ?? new Map();
    const base = join(temporary, this.name);
    const options = {
      ...request,
      model: this.part?.component.onnx ?? this.onnx,
      modelName: this.name,
      profiles: profile.size === 0 ? [] : [profile],
      timingCache: null,
    };
    const root = {
      ...runRootAt(request.outdir),
      typedModel: (_: string, precision: string) =>
        join(temporary, 'typed', `${this.name}.${precision}.onnx`),
      stepResult: runRootAt(base).stepResult,
    };
    return { options, root, commandLine, machine, visible, environment, build, engine: this.enginePath };
  }

  #resolvePhase(run: Run): ComponentPhase {
    const phase = resolvePhase(run);
    return {
      ...phase,
      run: async (soFar, context) => {
        const outcome = await phase.run(soFar, context);
        const prepared = outcome.found.prepared!;
        this.files = await digestFiles(this.part!.component, prepared.cacheFolder);
        const timingCache = timingCacheFor(prepared, this.#setting.request);
        return { ...outcome, found: { prepared: { ...prepared, timingCache } } };
      },
    };
  }

  /** Converts before the build what is run on ONNX Runtime later too; else the build converts, where it must. */
  #convertPhase(run: Run): ComponentPhase {
    const phase = convertPhase(run);
    const isRun = (prepared: ResolvedBuild) =>
      this.#setting.request.check !== undefined || this.#smokeKind(prepared) === 'model';
    return {
      ...phase,
      skip: (soFar) =>
        phase.skip(soFar) ??
        (isRun(soFar.prepared!) ? null : 'nothing runs the typed model; the build converts where it must'),
    };
  }

  #smokePhase(): ComponentPhase {
    return {
      name: 'smoke run',
      skip: ({ prepared }) => {
        if (this.#setting.request.smoke === 'never') return 'it was to be left out';
        return this.#smokeKind(prepared!) === null ? this.whyNotRun() : null;
      },
      run: async (_, context) => {
        const { component, profile } = this.target!;
        const work = { ...context, environment: this.#setting.environment };
        try {
          const smoke = await smokeRun(component, profile, this.#subject(), this.smokeLog, work);
          return { found: { smoke }, detail: `the ${smoke.ran} on ${smoke.backend}` };
        } catch (error) {
          if (!(error instanceof TrtforgeError) || error.code !== 'TF_ONNXRUNTIME_MISSING') throw error;
          this.notRun = `The ${this.name} did not run: ${this.whyNotRun()}, and ONNX Runtime is missing.`;
          return { found: {}, detail: this.notRun };
        }
      },
    };
  }

  /** What the smoke run would run; null for no smoke run. */
  #smokeKind(prepared: ResolvedBuild): 'engine' | 'model' | null {
    const { smoke = 'always' } = this.#setting.request;
    if (smoke === 'never') return null;
    if (this.whyNotRun(prepared) === null) return 'engine';
    return smoke === 'always' ? 'model' : null;
  }

  /** Why the engine cannot run on the GPU of this run, or null. */
  whyNotRun(prepared: ResolvedBuild | undefined = this.found.prepared): string | null {
    return whyNotRun(this.#setting.machine.gpus, prepared?.identity.target.computeCapabilities ?? []);
  }

  #subject(): SmokeSubject {
    const instead = this.whyNotRun();
    if (instead === null) return builtEngine(this.target!, this.#setting.request);
    const path = this.typedModel!;
    return { kind: this.found.conversion === undefined ? 'model' : 'typed model', path, instead };
  }
}

/** Events with the component's name before every phase, so that components built side by side can be told apart. */
const forComponent =
  (emit: EventListener, component: string): EventListener =>
  (event) =>
    emit('phase' in event ? { ...event, phase: `${component}: ${event.phase}` } : event);

/** tensorrt-rtx measures nothing ahead of time. */
export function timingCacheFor(
  { identity }: Pick<ResolvedBuild, 'identity'>,
  { timingCache = 'auto', outdir }: BundleRequest,
): string | null {
  if (timingCache === null || identity.target.product === 'tensorrt-rtx') return null;
  return timingCache === 'auto' ? join(outdir, 'timing.cache') : timingCache;
}

const trtexecLogs = ({ path }: ComponentLog, component: string): string =>
  join(dirname(path), `.trtexec-${component}`);
