import { dirname, join } from 'node:path';
import { throwIfCancelled } from '../../base/process/cancel.js';
import { planBuilder } from '../../engines/builder/plan-builders.js';
import { type PreparedBuild, prepareBuild } from '../../engines/builder/prepare.js';
import { whyNotRun } from '../../engines/identity/machine.js';
import { requireStreaming } from '../../engines/runtime/tensorrt/weight-budget.js';
import { openStores } from '../../engines/store/open-stores.js';
import { TrtforgeError } from '../../errors.js';
import { inPhase } from '../../events.js';
import type { GpuList } from '../../tensorrt/addon/addon.js';
import { onDevice, refuseAbsentGpu, visibleGpus } from '../../tensorrt/addon/chosen-gpu.js';
import { type Attempt, attempt } from './attempt.js';
import {
  keptEngine,
  obtainComponent,
  type PreparedComponent,
  trtexecLogFolder,
  typedWeightBytes,
} from './build-component.js';
import type { BundleContext, BundleRequest } from './bundle-request.js';
import { chainOf } from './chain-of-bundle.js';
import type { ChainCheck } from './chain-schema.js';
import { type BundleFindings, refuseMismatches } from './check-bundle.js';
import { usualComponents } from './component.js';
import { takeTrtexecLog } from './component-log.js';
import { type ComponentState, stateOf, temporaryFolder } from './component-state.js';
import { availableMemory, estimateBuildBytes, runWithin } from './memory-plan.js';
import { type BundleMeta, readMeta } from './meta.js';
import { digestFiles } from './model-files.js';
import { inspectBundle, locateBundle, modelFolder, profiledComponents } from './read-bundle.js';
import { builtEngine, type SmokeSubject, smokeRun } from './smoke.js';
import { stageComponent } from './stage.js';
import { StepClock } from './step-clock.js';
import { typedModel } from './typed-model.js';
import { forComponent, type WorkContext } from './work-context.js';

/** Builds of TensorRT on one GPU spoil each other's tactic timing. */
const ONE_AT_A_TIME = 1;

/** One run over a bundle: what it found stays readable after it failed. */
export class BundleRun {
  readonly request: BundleRequest;
  readonly components: ComponentState[] = [];
  readonly device: number;
  /** The GPU of the run; none where there is none. */
  readonly gpus: GpuList;
  readonly folder: string;
  readonly clock = new StepClock();
  readonly notChecked: string[] = [];
  /** Every component the bundle has, also those that were not asked for. */
  roster: readonly string[] = usualComponents;
  meta: BundleMeta | undefined;
  findings: BundleFindings | undefined;
  checks: readonly ChainCheck[] = [];
  /** Where staged and typed models lie while the run lasts. */
  readonly temporary: string;
  readonly #visible: GpuList;
  readonly #context: WorkContext;
  readonly #given: BundleContext;

  constructor(request: BundleRequest, given: BundleContext, context: WorkContext) {
    this.request = request;
    this.device = request.device ?? 0;
    this.#visible = visibleGpus();
    this.gpus = onDevice(this.#visible, this.device);
    this.folder = modelFolder(request);
    this.#given = given;
    this.#context = context;
    this.temporary = temporaryFolder(request);
  }

  get commandLine(): string | null {
    return this.#given.commandLine ?? null;
  }

  get environment(): NodeJS.ProcessEnv {
    return this.#context.environment;
  }

  /** The toolchain of the builds, once it is chosen. */
  get toolchain(): PreparedBuild['toolchain'] | undefined {
    return this.components.find(({ target }) => target !== undefined)?.target?.prepared.toolchain;
  }

  async go(): Promise<void> {
    const { emit } = this.#context;
    refuseAbsentGpu(this.#visible, this.request.device, 'Building and running a bundle needs an NVIDIA GPU');
    await this.clock.time('read', null, () => inPhase('bundle', emit, () => this.#read(), this.request.meta));
    await this.clock.time('prepare', null, () => inPhase('resolve', emit, () => this.#prepare()));
    await this.#build();
    for (const state of this.components) await this.#smoke(state);
    this.#noteUnrun();
    await this.#check();
  }

  /** Reads and checks everything that can be known without a builder. */
  async #read(): Promise<void> {
    const { request } = this;
    this.meta = readMeta(request.meta);
    const bundle = await locateBundle(request, this.meta);
    this.roster = bundle.roster;
    for (const { name, onnx } of bundle.places)
      if (bundle.asked.includes(name)) this.components.push(stateOf(name, onnx, request.outdir));
    const { components, findings } = inspectBundle(bundle);
    this.findings = findings;
    refuseMismatches(bundle.meta, findings);
    for (const part of profiledComponents(bundle, components, request.ranges)) {
      const state = this.components.find(({ name }) => name === part.component.name)!;
      if (request.stage === true) state.staged = stageComponent(part.component, this.temporary);
      const onnx = state.staged?.onnx ?? part.component.onnx;
      state.part = { ...part, component: { ...part.component, onnx } };
    }
  }

  /** Decides every build before the first begins: a profile that does not fit stops the run while nothing is lost. */
  async #prepare(): Promise<void> {
    const { environment } = this.#context;
    for (const state of this.components) {
      const found = state.part!;
      await this.#attempt(state, async (context) => {
        const prepared = await prepareBuild(
          {
            ...this.request,
            model: found.component.onnx,
            modelName: state.name,
            profiles: found.profile.size === 0 ? [] : [found.profile],
            timingCache: null,
          },
          { emit: context.emit, signal: context.signal, environment },
        );
        requireStreaming(found.component.onnx, prepared.identity.recipe.flags, this.request.weightBudget);
        const target = {
          ...found,
          prepared: { ...prepared, timingCache: this.timingCacheFor(prepared) },
          enginePath: state.enginePath,
        };
        state.target = target;
        state.files = await digestFiles(found.component, prepared.cacheFolder);
      });
    }
  }

  /** tensorrt-rtx measures nothing ahead of time. */
  timingCacheFor({ identity }: Pick<PreparedBuild, 'identity'>): string | null {
    const { timingCache = 'auto', outdir } = this.request;
    if (timingCache === null || identity.target.product === 'tensorrt-rtx') return null;
    return timingCache === 'auto' ? join(outdir, 'timing.cache') : timingCache;
  }

  async #build(): Promise<void> {
    const { close, ...stores } = await openStores(this.request, this.#context.environment);
    try {
      const tasks = this.components.map((state) => {
        const { prepared } = state.target!;
        return {
          bytes: estimateBuildBytes(typedWeightBytes(prepared)),
          run: () =>
            this.clock.time('build', state.name, () =>
              this.#attempt(
                state,
                (context) => this.#buildOne(state, stores, context),
                () => (state.engine?.status === 'built' ? prepared.identity.target : null),
              ),
            ),
        };
      });
      const isRtx = this.toolchain?.product === 'tensorrt-rtx';
      const budget = this.request.memoryBudget ?? availableMemory() / 2;
      await runWithin(tasks, budget, isRtx ? tasks.length : ONE_AT_A_TIME);
    } finally {
      close();
    }
  }

  async #buildOne(
    state: ComponentState,
    stores: Parameters<typeof obtainComponent>[1]['stores'],
    context: WorkContext,
  ): Promise<void> {
    throwIfCancelled(context.signal, `building ${state.onnx}`);
    const target = state.target!;
    const kept = this.request.forceRebuild === true ? undefined : await keptEngine(target, stores.trust);
    if (kept !== undefined) {
      state.engine = kept;
      return;
    }
    const trtexecLogs = trtexecLogFolder(dirname(state.buildLog.path), state.name);
    try {
      state.engine = await obtainComponent(
        target,
        {
          stores,
          forceRebuild: this.request.forceRebuild ?? false,
          verbose: this.request.verbose ?? false,
          converted: this.#runsTyped(target) ? await this.#typedModel(state, context) : undefined,
          build: this.#given.build ?? planBuilder(this.request.builder ?? 'native', trtexecLogs),
          log: state.buildLog,
        },
        context,
      );
    } finally {
      state.buildLog.close();
      const command = takeTrtexecLog(trtexecLogs, state.buildLog.path);
      if (command !== undefined) state.trtexecCommand = command;
    }
  }

  /** Whether anything after the build runs the typed model on ONNX Runtime; then it is converted once, for the builder too. */
  #runsTyped({ prepared }: PreparedComponent): boolean {
    if (prepared.identity.recipe.conversion === null) return false;
    return this.request.check !== undefined || this.#smokeKind(prepared) === 'model';
  }

  /** What the smoke run of a component would run; null for no smoke run. */
  #smokeKind(prepared: PreparedBuild): 'engine' | 'model' | null {
    const { smoke = 'always' } = this.request;
    if (smoke === 'never') return null;
    if (this.#whyNotRun(prepared) === null) return 'engine';
    return smoke === 'always' ? 'model' : null;
  }

  #whyNotRun({ identity }: PreparedBuild): string | null {
    return whyNotRun(this.gpus, identity.target.computeCapabilities);
  }

  /** The model as the builder gets it: converted where the recipe says so, once. */
  async #typedModel(
    state: ComponentState,
    context: WorkContext,
  ): Promise<{ readonly path: string; readonly ms: number }> {
    if (state.typed !== undefined) return state.typed;
    const { prepared } = state.target!;
    if (prepared.identity.recipe.conversion === null) return { path: prepared.modelPath, ms: 0 };
    state.typed = await this.clock.time('convert', state.name, () =>
      typedModel(prepared, join(this.temporary, 'typed', state.name), context),
    );
    return state.typed;
  }

  async #smoke(state: ComponentState): Promise<void> {
    const { component, profile, prepared } = state.target!;
    if (this.#smokeKind(prepared) === null) return;
    await this.#attempt(state, async (context) => {
      try {
        const subject = await this.#subjectOf(state, context);
        state.smoke = await inPhase('smoke run', context.emit, () =>
          this.clock.time('smoke run', state.name, () =>
            smokeRun(component, profile, subject, state.smokeLog, context),
          ),
        );
      } catch (error) {
        if (!(error instanceof TrtforgeError) || error.code !== 'TF_ONNXRUNTIME_MISSING') throw error;
        this.notChecked.push(
          `The ${state.name} did not run: ${this.#whyNotRun(prepared)}, and ONNX Runtime is missing.`,
        );
      } finally {
        state.smokeLog.close();
      }
    });
  }

  #noteUnrun(): void {
    const [first] = this.components;
    if (this.request.smoke !== 'engine' || first?.target === undefined) return;
    const why = this.#whyNotRun(first.target.prepared);
    if (why !== null) this.notChecked.push(`No component was run: ${why}.`);
  }

  async #subjectOf(state: ComponentState, context: WorkContext): Promise<SmokeSubject> {
    const { prepared } = state.target!;
    const instead = this.#whyNotRun(prepared);
    if (instead === null) return builtEngine(state.target!, this.request);
    const { path } = await this.#typedModel(state, context);
    return { kind: path === prepared.modelPath ? 'model' : 'typed model', path, instead };
  }

  async #check(): Promise<void> {
    const { check } = this.request;
    if (check === undefined) return;
    const chain = chainOf(this, check, {
      typed: (state) => this.#typedModel(state, forComponent(this.#context, state.name)),
      whyNotRun: (prepared) => this.#whyNotRun(prepared),
      context: this.#context,
    });
    this.notChecked.push(...chain.notChecked);
    const { run } = chain;
    if (run === undefined) return;
    try {
      this.checks = await this.clock.time('chained check', null, () =>
        inPhase('chained check', this.#context.emit, run),
      );
    } catch (error) {
      if (!(error instanceof TrtforgeError) || error.code !== 'TF_ONNXRUNTIME_MISSING') throw error;
      this.notChecked.push('The bundle was not decoded: ONNX Runtime is missing.');
    }
  }

  #attempt(state: ComponentState, work: Attempt['work'], built?: Attempt['built']): Promise<void> {
    return attempt(state, { work, built }, this.#context, this.#given.explain);
  }
}
