import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { assertGpuPresent, onDevice } from '../../addon/gpus.js';
import { cacheFolder, makeFolder } from '../../base/files/folders.js';
import { writeFailed } from '../../base/files/publish.js';
import { createPending, sweepPending } from '../../engines/store/pending.js';
import { TrtforgeError } from '../../errors.js';
import { workOf } from '../../events.js';
import { lookAtMachine } from '../../forge/environment.js';
import { type Phase, PhaseRun } from '../../forge/phase-run.js';
import { type BundleMeta, readMeta } from '../../formats/contract/model-meta.js';
import type { ForgeResult } from '../../report/forge-result.js';
import { type Chain, chainOf } from './chain-of-bundle.js';
import type { ChainCheck } from './chain-schema.js';
import { type BundleFindings, rejectMismatches } from './check-bundle.js';
import { type ComponentPlace, usualComponents } from './component.js';
import { typedWeightBytes } from './component-builder.js';
import { componentConversions } from './component-conversion.js';
import { type BundleSetting, ComponentRun } from './component-run.js';
import { digestFiles } from './model-files.js';
import { type BundleContext, type BundleRequest, chainCheckOf } from './options.js';
import { inspectBundle, locateBundle, profiledComponents } from './read-bundle.js';
import { buildWithin, estimateBuildBytes } from './side-by-side.js';

/** The error that stopped a run, and its component; null for the bundle as a whole. */
export interface BundleStop {
  readonly component: string | null;
  readonly error: NonNullable<ForgeResult['error']>;
}

interface BundleFound {
  readonly checks: readonly ChainCheck[];
}

/** A run of forge for each component, then one check of the chain: what it found stays readable after it failed. */
export class BundleRun {
  readonly setting: BundleSetting;
  /** The phases of the bundle as a whole. */
  readonly whole: PhaseRun<BundleFound>;
  readonly notChecked: string[] = [];
  /** Every component the bundle has, also those that were not requested. */
  roster: readonly string[] = usualComponents;
  /** Those that were requested, once they are found. */
  places: readonly ComponentPlace[] = [];
  /** Their runs, once everything is read. */
  components: readonly ComponentRun[] = [];
  meta: BundleMeta | undefined;
  findings: BundleFindings | undefined;
  #temporary: string | undefined;

  constructor(request: BundleRequest, { build, commandLine, ...context }: BundleContext) {
    const work = workOf(context);
    const machine = lookAtMachine();
    const started = performance.now();
    const clock = () => performance.now() - started;
    this.whole = new PhaseRun(work, () => {}, clock);
    this.setting = {
      request,
      work,
      build,
      commandLine: commandLine ?? null,
      machine: { ...machine, gpus: onDevice(machine.gpus, request.device ?? 0) },
      visible: machine.gpus,
      temporary: () => (this.#temporary ??= temporaryFolder(request)),
      clock,
    };
  }

  get stop(): BundleStop | undefined {
    const runs = [
      { component: null, run: this.whole },
      ...this.components.map(({ name, forge }) => ({ component: name, run: forge })),
    ];
    return runs.flatMap(({ component, run: { error } }) => (error === null ? [] : [{ component, error }]))[0];
  }

  /** The folder of staged and typed models, once there is one. */
  get temporary(): string | null {
    return this.#temporary ?? null;
  }

  /** Reads everything and decides every build before the first begins: a profile that does not fit stops the run while nothing is lost. Writes nothing. */
  async decide(): Promise<void> {
    await this.whole.advance([this.#readPhase()]);
    await this.#each((component) => component.decide());
  }

  /** Builds, runs and checks what is decided. */
  async make(): Promise<void> {
    const { request } = this.setting;
    sweepPending(request.outdir);
    if (request.stage === true && this.stop === undefined) await this.whole.advance([this.#stagePhase()]);
    await this.#build();
    await this.#each((component) => component.smoke());
    this.notChecked.push(...this.#notRun());
    await this.#check();
  }

  #notRun(): readonly string[] {
    const [first] = this.components;
    const skipped = first?.forge.phases.find(
      ({ name, status }) => name === 'smoke run' && status === 'skipped',
    );
    const why =
      this.setting.request.smoke === 'engine' && skipped ? [`No component was run: ${skipped.detail}.`] : [];
    return [...this.components.flatMap(({ forge }) => forge.found.notRun ?? []), ...why];
  }

  /** Reads and checks everything that can be known without a builder. */
  #readPhase(): Phase<BundleFound> {
    const { request, visible } = this.setting;
    return {
      name: 'read',
      skip: () => null,
      run: async () => {
        assertGpuPresent(visible, request.device, 'Building and running a bundle needs an NVIDIA GPU');
        const warnings = await this.#readModels();
        return {
          found: {},
          detail:
            warnings.length === 0
              ? 'the models agree with the meta file and with each other'
              : `no contradiction; warnings: ${warnings.length}`,
        };
      },
    };
  }

  async #readModels(): Promise<readonly string[]> {
    const { request, work } = this.setting;
    this.meta = readMeta(request.meta);
    const bundle = await locateBundle(request, this.meta);
    this.roster = bundle.roster;
    this.places = bundle.places.filter(({ name }) => bundle.requested.includes(name));
    const { components, findings } = inspectBundle(bundle);
    this.findings = findings;
    rejectMismatches(bundle.meta, findings);
    const conversions = componentConversions(
      request,
      components.filter(({ name }) => bundle.requested.includes(name)),
    );
    const runs: ComponentRun[] = [];
    for (const { component, profile } of profiledComponents(bundle, components, request)) {
      const files = await digestFiles(component, cacheFolder(work.environment));
      const conversion = conversions.get(component.name)!;
      runs.push(new ComponentRun({ component, profile, files, staged: null, conversion }, this.setting));
    }
    this.components = runs;
    return findings.warnings;
  }

  #stagePhase(): Phase<BundleFound> {
    return {
      name: 'stage',
      skip: () => null,
      run: async () => {
        for (const component of this.components) component.stage();
        return { found: {}, detail: `the models are linked into ${this.setting.temporary()}` };
      },
    };
  }

  async #build(): Promise<void> {
    const { request } = this.setting;
    if (this.stop !== undefined) return this.#each((component) => component.make());
    const tasks = this.components.map((component) => ({
      bytes: estimateBuildBytes(typedWeightBytes(component.prepared)),
      run: () => this.#over(component, () => component.make()),
    }));
    const [first] = this.components;
    if (first !== undefined) await buildWithin(tasks, first.prepared.toolchain.product, request.memoryBudget);
  }

  /** The chained check as it is decided; undefined where none is requested. */
  chain(): Chain | undefined {
    const { request, work } = this.setting;
    const check = chainCheckOf(request);
    return check && chainOf(this, check, work);
  }

  async #check(): Promise<void> {
    const chain = this.stop === undefined ? this.chain() : undefined;
    if (chain === undefined) return;
    this.notChecked.push(...chain.notChecked);
    await this.whole.advance([
      {
        name: 'chained check',
        skip: () => (chain.run === undefined ? chain.notChecked.join(' ') : null),
        run: async (_, context) => {
          try {
            const checks = await chain.run!(context);
            const detail = checks.map(({ candidate, outcome }) => `${candidate}: ${outcome}`).join(', ');
            return { found: { checks }, detail };
          } catch (error) {
            if (!(error instanceof TrtforgeError) || error.code !== 'TF_ONNXRUNTIME_MISSING') throw error;
            const detail = 'The bundle was not decoded: ONNX Runtime is missing.';
            this.notChecked.push(detail);
            return { found: {}, detail };
          }
        },
      },
    ]);
  }

  /** One component after the other; after the first that fails they are recorded as not reached. */
  async #each(work: (component: ComponentRun) => Promise<void>): Promise<void> {
    for (const component of this.components) await this.#over(component, () => work(component));
  }

  async #over({ forge }: ComponentRun, work: () => Promise<void>): Promise<void> {
    const { stop } = this;
    if (stop !== undefined)
      forge.stop(
        `the run stopped in ${stop.component === null ? '' : `${stop.component}: `}${stop.error.phase}`,
      );
    await work();
  }
}

/** A folder for models while the run lasts. Kept ones have a name of their own and are nobody's leftovers. */
function temporaryFolder({ outdir, keepTemp }: BundleRequest): string {
  if (keepTemp !== true) return createPending(outdir).folder;
  try {
    makeFolder(outdir);
    return mkdtempSync(join(outdir, 'staging-'));
  } catch (cause) {
    throw writeFailed(outdir, cause);
  }
}
