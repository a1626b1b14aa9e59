import { existsSync, mkdirSync, mkdtempSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { conversionOptions, rangesFor } from '../engine/conversion.js';
import { planBuilder } from '../engine/plan-builders.js';
import { type PreparedBuild, prepareBuild } from '../engine/prepare.js';
import { TrtforgeError } from '../errors.js';
import { inPhase } from '../events.js';
import { convertModel } from '../precision/convert.js';
import { openStores } from '../store/open-stores.js';
import { throwIfCancelled } from '../system/cancel.js';
import { writeFailed } from '../system/publish.js';
import {
  type ComponentEngine,
  keptEngine,
  obtainComponent,
  type PreparedComponent,
  trtexecLogFolder,
  typedWeightBytes,
} from './build-component.js';
import type { BundleContext, BundleRequest } from './bundle-request.js';
import { chainOf } from './chain-of-bundle.js';
import type { ChainCheck } from './chain-schema.js';
import { type BundleFindings, checkBundle, refuseMismatches } from './check-bundle.js';
import { type ComponentPlace, locateComponents, readComponent, usualComponents } from './component.js';
import { ComponentLog, takeTrtexecLog } from './component-log.js';
import { profileOf } from './component-profile.js';
import { visibleGpus, whyNotRun } from './machine.js';
import { availableMemory, estimateBuildBytes, runWithin } from './memory-plan.js';
import { type BundleMeta, readMeta } from './meta.js';
import { digestFiles, type ModelFiles } from './model-files.js';
import { type ProfilesFile, readProfilesFile } from './profiles-file.js';
import type { SmokeRun } from './report-schema.js';
import { type SmokeSubject, smokeRun } from './smoke.js';
import { type Staged, stageComponent } from './stage.js';
import { forComponent, signalOf, type WorkContext } from './work-context.js';

/** What is known of one component so far; the report is made of it, however far the run came. */
export interface ComponentState {
  readonly name: string;
  readonly onnx: string;
  readonly enginePath: string;
  readonly buildLog: ComponentLog;
  readonly smokeLog: ComponentLog;
  target?: PreparedComponent;
  staged?: Staged;
  files?: ModelFiles;
  engine?: ComponentEngine;
  typed?: { readonly path: string; readonly ms: number };
  trtexecCommand?: readonly string[];
  smoke?: SmokeRun;
  failure?: TrtforgeError;
}

/** Builds of TensorRT on one GPU spoil each other's tactic timing. */
const ONE_AT_A_TIME = 1;

/** One run over a bundle: what it found stays readable after it failed. */
export class BundleRun {
  readonly request: BundleRequest;
  readonly components: ComponentState[] = [];
  readonly gpus = visibleGpus();
  readonly folder: string;
  readonly notChecked: string[] = [];
  /** Every component the bundle has, also those that were not asked for. */
  roster: readonly string[] = usualComponents;
  meta: BundleMeta | undefined;
  findings: BundleFindings | undefined;
  checks: readonly ChainCheck[] = [];
  /** Where staged and typed models lie while the run lasts. */
  readonly temporary: string;
  readonly #context: WorkContext;
  readonly #given: BundleContext;

  constructor(request: BundleRequest, given: BundleContext, context: WorkContext) {
    this.request = request;
    this.folder = request.onnxDir ?? dirname(request.meta);
    this.#given = given;
    this.#context = context;
    try {
      mkdirSync(request.outdir, { recursive: true });
      this.temporary = mkdtempSync(join(request.outdir, '.staging-'));
    } catch (cause) {
      throw writeFailed(request.outdir, cause);
    }
  }

  /** The toolchain of the builds, once it is chosen. */
  get toolchain(): PreparedBuild['toolchain'] | undefined {
    return this.components.find(({ target }) => target !== undefined)?.target?.prepared.toolchain;
  }

  async go(): Promise<void> {
    const { emit } = this.#context;
    await inPhase('bundle', emit, () => this.#read(), this.request.meta);
    await inPhase('resolve', emit, () => this.#prepare());
    await this.#build();
    for (const state of this.components) await this.#smoke(state);
    this.#noteUnrun();
    await this.#check();
  }

  /** Reads and checks everything that can be known without a builder. */
  async #read(): Promise<void> {
    const { request } = this;
    this.meta = readMeta(request.meta);
    const file = request.profilesFile === undefined ? undefined : readProfilesFile(request.profilesFile);
    const names =
      file?.components === null || file?.components === undefined
        ? usualComponents
        : [...file.components.keys()];
    this.roster = names;
    const asked = askedOf(names, request.only);
    const places = this.#locate(names, asked, file);
    for (const { name, onnx } of places)
      if (asked.includes(name)) this.components.push(this.#stateOf(name, onnx));
    const components = places.map(readComponent);
    this.findings = checkBundle(this.meta, components);
    refuseMismatches(this.meta, this.findings);
    for (const state of this.components) {
      const component = components.find(({ name }) => name === state.name)!;
      const profile = profileOf(component, this.meta, { ...request.ranges, file });
      if (request.stage === true) state.staged = stageComponent(component, this.temporary);
      const staged = state.staged === undefined ? component : { ...component, onnx: state.staged.onnx };
      this.#profiles.set(state.name, { component: staged, profile });
    }
  }

  readonly #profiles = new Map<string, Pick<PreparedComponent, 'component' | 'profile'>>();

  /** Components that were not asked for are read when they are there: the others are held against them. */
  #locate(
    names: readonly string[],
    asked: readonly string[],
    file: ProfilesFile | undefined,
  ): readonly ComponentPlace[] {
    const files = Object.fromEntries(
      names.map((name) => [name, file?.components?.get(name)?.onnx ?? undefined]),
    );
    const others = names
      .filter((name) => !asked.includes(name))
      .filter((name) => existsSync(join(this.folder, files[name] ?? `${name}.onnx`)));
    return locateComponents(
      this.folder,
      names.filter((name) => asked.includes(name) || others.includes(name)),
      files,
    );
  }

  #stateOf(name: string, onnx: string): ComponentState {
    const logs = join(this.request.outdir, 'build_logs');
    return {
      name,
      onnx,
      enginePath: join(this.request.outdir, `${name}.engine`),
      buildLog: new ComponentLog(join(logs, `${name}.log`)),
      smokeLog: new ComponentLog(join(logs, `${name}_smoke.log`)),
    };
  }

  /** Decides every build before the first begins: a profile that does not fit stops the run while nothing is lost. */
  async #prepare(): Promise<void> {
    const { environment } = this.#context;
    for (const state of this.components) {
      const found = this.#profiles.get(state.name)!;
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
          run: () => this.#attempt(state, (context) => this.#buildOne(state, stores, context)),
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
    const kept = this.request.forceRebuild === true ? undefined : await keptEngine(target);
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
    const { precision, conversion } = prepared.identity.recipe;
    if (conversion === null || (precision !== 'fp16' && precision !== 'bf16'))
      return { path: prepared.modelPath, ms: 0 };
    const path = join(this.temporary, 'typed', `${state.name}.${precision}.onnx`);
    const ranges = await rangesFor(prepared.modelPath, conversion, prepared.calibration, context);
    const { ms } = await inPhase('convert', context.emit, () =>
      convertModel(prepared.modelPath, path, conversionOptions(precision, conversion, ranges), {
        emit: context.emit,
        ...signalOf(context),
      }),
    );
    state.typed = { path, ms };
    return state.typed;
  }

  async #smoke(state: ComponentState): Promise<void> {
    const { component, profile, prepared } = state.target!;
    if (this.#smokeKind(prepared) === null) return;
    await this.#attempt(state, async (context) => {
      try {
        const subject = await this.#subjectOf(state, context);
        state.smoke = await inPhase('smoke run', context.emit, () =>
          smokeRun(component, profile, subject, state.smokeLog, context),
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
    const { prepared, enginePath } = state.target!;
    const instead = this.#whyNotRun(prepared);
    if (instead === null) return { kind: 'engine', path: enginePath, toolchain: prepared.toolchain };
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
    if (chain.run === undefined) return;
    try {
      this.checks = await inPhase('chained check', this.#context.emit, chain.run);
    } catch (error) {
      if (!(error instanceof TrtforgeError) || error.code !== 'TF_ONNXRUNTIME_MISSING') throw error;
      this.notChecked.push('The bundle was not decoded: ONNX Runtime is missing.');
    }
  }

  /** Work on one component; a failure is remembered there, with the known issues its lines show, and thrown on. */
  async #attempt<T>(state: ComponentState, work: (context: WorkContext) => Promise<T>): Promise<T> {
    const context = forComponent(this.#context, state.name);
    const { explain } = this.#given;
    try {
      if (explain === undefined) return await work(context);
      return (await explain((emit) => work({ ...context, emit }), { emit: context.emit, model: state.onnx }))
        .result;
    } catch (error) {
      if (error instanceof TrtforgeError) state.failure ??= error;
      throw error;
    }
  }
}

function askedOf(names: readonly string[], only: readonly string[] | undefined): readonly string[] {
  const strangers = (only ?? []).filter((name) => !names.includes(name));
  if (strangers.length > 0) {
    throw new TrtforgeError(
      'TF_USAGE',
      `The bundle has no component ${strangers.map((name) => `«${name}»`).join(', ')}.`,
      {
        remedy: `Its components are ${names.join(', ')}.`,
      },
    );
  }
  return only === undefined || only.length === 0 ? names : names.filter((name) => only.includes(name));
}
