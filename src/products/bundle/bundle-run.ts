import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../../base/files/folders.js';
import { writeFailed } from '../../base/files/publish.js';
import type { ResolvedBuild } from '../../engines/builder/prepare.js';
import type { OpenContext } from '../../engines/runtime/back-end.js';
import { createPending, sweepPending } from '../../engines/store/pending.js';
import { TrtforgeError } from '../../errors.js';
import { ignoreEvents } from '../../events.js';
import { lookAtMachine } from '../../forge/environment.js';
import { type Phase, type PhaseContext, runPhases } from '../../forge/phase.js';
import type { ForgeResult, ReportPhase } from '../../report/result.js';
import { assertGpuPresent, onDevice } from '../../tensorrt/addon/chosen-gpu.js';
import type { BundleContext, BundleRequest } from './bundle-request.js';
import { type Chain, chainOf } from './chain-of-bundle.js';
import type { ChainCheck } from './chain-schema.js';
import { type BundleFindings, refuseMismatches } from './check-bundle.js';
import { usualComponents } from './component.js';
import { typedWeightBytes } from './component-builder.js';
import { type BundleSetting, ComponentRun } from './component-run.js';
import { availableMemory, estimateBuildBytes, runWithin } from './memory-plan.js';
import { type BundleMeta, readMeta } from './meta.js';
import { inspectBundle, locateBundle, modelFolder, profiledComponents } from './read-bundle.js';
import { stageComponent } from './stage.js';

/** Builds of TensorRT on one GPU spoil each other's tactic timing. */
const ONE_AT_A_TIME = 1;

/** What stopped a run, and at which component; null for the bundle as a whole. */
export interface BundleStop {
  readonly component: string | null;
  readonly error: NonNullable<ForgeResult['error']>;
}

interface BundleFound {
  readonly checks: readonly ChainCheck[];
}

/** A run of forge for each component, then one check of the chain: what it found stays readable after it failed. */
export class BundleRun {
  readonly request: BundleRequest;
  readonly components: ComponentRun[] = [];
  readonly folder: string;
  readonly setting: BundleSetting;
  readonly notChecked: string[] = [];
  /** Phases of the bundle as a whole. */
  readonly phases: ReportPhase[] = [];
  /** Every component the bundle has, also those that were not asked for. */
  roster: readonly string[] = usualComponents;
  meta: BundleMeta | undefined;
  findings: BundleFindings | undefined;
  checks: readonly ChainCheck[] = [];
  stop: BundleStop | undefined;
  readonly #context: PhaseContext & OpenContext;

  constructor(
    request: BundleRequest,
    { emit = ignoreEvents, environment = process.env, signal, build, commandLine }: BundleContext,
  ) {
    const machine = lookAtMachine();
    const started = performance.now();
    this.request = request;
    this.folder = modelFolder(request);
    this.#context = { emit, environment, ...(signal === undefined ? {} : { signal }) };
    this.setting = {
      request,
      environment,
      build,
      commandLine: commandLine ?? null,
      machine: { ...machine, gpus: onDevice(machine.gpus, request.device ?? 0) },
      visible: machine.gpus,
      temporary: temporaryFolder(request),
      clock: () => performance.now() - started,
    };
  }

  /** The toolchain of the builds, once it is chosen. */
  get toolchain(): ResolvedBuild['toolchain'] | undefined {
    return this.components.find(({ target }) => target !== undefined)?.target?.prepared.toolchain;
  }

  async go(): Promise<void> {
    for (const part of [this.#read, this.#prepare, this.#build, this.#smoke, this.#check]) {
      await part.call(this);
      if (this.stop === undefined) continue;
      const { component, error } = this.stop;
      const where = component === null ? error.phase : `${component}: ${error.phase}`;
      for (const each of this.components) each.leaveOut(`the run stopped in ${where}`);
      return;
    }
  }

  /** Reads and checks everything that can be known without a builder. */
  async #read(): Promise<void> {
    await this.#phase({
      name: 'read',
      skip: () => null,
      run: async () => {
        assertGpuPresent(
          this.setting.visible,
          this.request.device,
          'Building and running a bundle needs an NVIDIA GPU',
        );
        await this.#readModels();
        const { warnings } = this.findings!;
        return {
          found: {},
          detail:
            warnings.length === 0
              ? 'the models agree with the meta file and with each other'
              : `no contradiction; warnings: ${warnings.length}`,
        };
      },
    });
  }

  async #readModels(): Promise<void> {
    const { request } = this;
    this.meta = readMeta(request.meta);
    const bundle = await locateBundle(request, this.meta);
    this.roster = bundle.roster;
    for (const { name, onnx } of bundle.places)
      if (bundle.asked.includes(name)) this.components.push(new ComponentRun(name, onnx, this.setting));
    const { components, findings } = inspectBundle(bundle);
    this.findings = findings;
    refuseMismatches(bundle.meta, findings);
    for (const part of profiledComponents(bundle, components, request.batch)) {
      const run = this.components.find(({ name }) => name === part.component.name)!;
      if (request.stage === true) run.staged = stageComponent(part.component, this.setting.temporary);
      const onnx = run.staged?.onnx ?? part.component.onnx;
      run.part = { ...part, component: { ...part.component, onnx } };
    }
  }

  /** Decides every build before the first begins: a profile that does not fit stops the run while nothing is lost. */
  async #prepare(): Promise<void> {
    await this.#each((component) => component.prepare(this.#context));
  }

  async #build(): Promise<void> {
    const tasks = this.components.map((component) => ({
      bytes: estimateBuildBytes(typedWeightBytes(component.target!.prepared)),
      run: async () => {
        if (this.stop === undefined) await this.#over(component, () => component.build(this.#context));
      },
    }));
    const isRtx = this.toolchain?.product === 'tensorrt-rtx';
    const budget = this.request.memoryBudget ?? availableMemory() / 2;
    await runWithin(tasks, budget, isRtx ? tasks.length : ONE_AT_A_TIME);
  }

  async #smoke(): Promise<void> {
    await this.#each((component) => component.smoke(this.#context));
    this.notChecked.push(...this.components.flatMap(({ notRun }) => notRun ?? []));
    const [first] = this.components;
    const why = this.request.smoke === 'engine' ? first?.whyNotRun() : null;
    if (why !== null && why !== undefined) this.notChecked.push(`No component was run: ${why}.`);
  }

  async #check(): Promise<void> {
    const { check } = this.request;
    if (check === undefined) return;
    const chain = chainOf(this, check, this.#context);
    this.notChecked.push(...chain.notChecked);
    await this.#phase(this.#chainPhase(chain));
  }

  #chainPhase({ run, notChecked }: Chain): Phase<BundleFound> {
    return {
      name: 'chained check',
      skip: () => (run === undefined ? notChecked.join(' ') : null),
      run: async (_, { emit }) => {
        try {
          const checks = await run!(emit);
          const detail = checks.map(({ candidate, outcome }) => `${candidate}: ${outcome}`).join(', ');
          return { found: { checks }, detail };
        } catch (error) {
          if (!(error instanceof TrtforgeError) || error.code !== 'TF_ONNXRUNTIME_MISSING') throw error;
          const detail = 'The bundle was not decoded: ONNX Runtime is missing.';
          this.notChecked.push(detail);
          return { found: {}, detail };
        }
      },
    };
  }

  /** Runs a phase of the bundle as a whole. */
  async #phase(phase: Phase<BundleFound>): Promise<void> {
    const { found, phases, error } = await runPhases([phase], this.#context, () => {}, this.setting.clock);
    this.phases.push(...phases);
    this.checks = found.checks ?? [];
    if (error !== null) this.stop = { component: null, error };
  }

  /** One component after the other, up to the first that fails. */
  async #each(work: (component: ComponentRun) => Promise<void>): Promise<void> {
    for (const component of this.components)
      if (this.stop === undefined) await this.#over(component, () => work(component));
  }

  async #over(component: ComponentRun, work: () => Promise<void>): Promise<void> {
    await work();
    const { name, error } = component;
    if (error !== null) this.stop ??= { component: name, error };
  }
}

/** A folder for models while the run lasts; leftovers of killed runs go first. Kept ones have a name of their own and are nobody's leftovers. */
function temporaryFolder({ outdir, keepTemp }: BundleRequest): string {
  sweepPending(outdir);
  if (keepTemp !== true) return createPending(outdir).folder;
  try {
    makeFolder(outdir);
    return mkdtempSync(join(outdir, 'staging-'));
  } catch (cause) {
    throw writeFailed(outdir, cause);
  }
}
