import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { visibleGpus } from '../../addon/chosen-gpu.js';
import { closing } from '../../base/files/byte-source.js';
import { removeIfThere } from '../../base/files/files.js';
import { makeScratch } from '../../base/files/scratch.js';
import type { CommandContext } from '../../cli/command.js';
import { resolveBuild } from '../../engines/builder/resolve-build.js';
import { parseTarget, type TargetRequest, targetText } from '../../engines/identity/target.js';
import { type ObtainedEngine, obtainEngine } from '../../engines/store/obtain-engine.js';
import { type EngineStores, openStores } from '../../engines/store/open-stores.js';
import { TrtforgeError } from '../../errors.js';
import { benchCompare } from '../../quality/bench/compare.js';
import { defaultRequest } from '../../quality/bench/request.js';
import { runGate } from '../../quality/gate/gate.js';
import { answerMaker } from '../../quality/known-answer/at-build.js';
import { observeEngine } from '../../quality/known-answer/check-engine.js';
import { proofOf, resultOf } from '../../quality/known-answer/proof.js';
import { verifyModel } from '../../quality/verify/verify.js';
import { packageVersion } from '../../version.js';
import { type EnginesFile, readEnginesFile } from './engines-file.js';
import { FleetStore } from './fleet-store.js';
import type { Rehearsal, Rehearsed } from './rehearsal-schema.js';
import { type FleetRequest, requestsOf } from './requests.js';

/** The rules where no policy is named. */
const PRESET = 'rehearsal';

/** How often both engines are measured. */
const ROUNDS = 6;

export interface RehearsalRequest {
  readonly engines: string;
  /** `tensorrt@8.6.1.6`, as targets have it. */
  readonly from: TargetRequest;
  readonly to: TargetRequest;
  /** A policy with waivers; undefined: the preset `rehearsal`. */
  readonly policy: string | undefined;
}

/** One engine to rehearse. */
interface Part extends FleetRequest {
  readonly on: string;
  readonly path: string;
  readonly target: TargetRequest;
}

/**
 * For each engine of one TensorRT the engine of another, on this machine's GPU: built and kept in the store, verified against the FP32 model and by what the old one
 * recorded, measured in turns where both load, judged together by one policy. What fails of one engine does not end the others. Throws TF_USAGE where no target of
 * the file has the old version, what reading the file and the policy throws, TF_CANCELLED.
 */
export async function rehearse(
  { engines, from, to, policy }: RehearsalRequest,
  context: CommandContext,
): Promise<Omit<Rehearsal, 'repeat'>> {
  const file = readEnginesFile(engines);
  const parts = await partsOf(file, from, context);
  const scratch = makeScratch('rehearsal');
  const store = await FleetStore.open(file.store, context.environment);
  try {
    return await closing(await openStores(store.options(scratch), context.environment), async (stores) => {
      const rehearsed: Rehearsed[] = [];
      const results: string[] = [];
      for (const [index, part] of parts.entries()) {
        const run = new PartRun(part, to, { stores, folder: join(scratch, `part-${index}`), context });
        rehearsed.push(await run.go());
        results.push(...run.results);
      }
      const path = policy ?? join(scratch, 'policy.yaml');
      if (policy === undefined) writeFileSync(path, `schema: trtforge.gate-policy/1\nextends: ${PRESET}\n`);
      const gate = runGate({ policy: path, results, day: new Date().toISOString().slice(0, 10) });
      return {
        schema: 'trtforge.fleet-rehearsal/1',
        version: packageVersion(),
        from: named(from),
        to: named(to),
        gpu: visibleGpus().gpus[0]?.name ?? null,
        at: new Date().toISOString(),
        outcome: gate.outcome === 'warn' ? 'pass' : gate.outcome,
        reasons: gate.reasons,
        engines: rehearsed,
        gate,
      };
    });
  } finally {
    store.close();
    removeIfThere(scratch);
  }
}

const named = (target: TargetRequest): string => `${target.product} ${target.named?.version ?? ''}`.trim();

async function partsOf(
  { folder, targets, entries }: EnginesFile,
  from: TargetRequest,
  context: CommandContext,
): Promise<readonly Part[]> {
  const old = new Map(
    Object.entries(targets)
      .map(([name, { target }]) => [name, parseTarget(target)] as const)
      .filter(
        ([, { product, named: own }]) => product === from.product && own?.version === from.named?.version,
      ),
  );
  const parts: Part[] = [];
  for (const { path, isBundle, options, targets: names } of entries) {
    if (!names.some((name) => old.has(name))) continue;
    const requests = await requestsOf({ path, isBundle, options }, folder, context);
    for (const on of names) {
      const target = old.get(on);
      if (target !== undefined) parts.push(...requests.map((each) => ({ ...each, on, path, target })));
    }
  }
  if (parts.length > 0) return parts;
  throw new TrtforgeError('TF_USAGE', `No model is for a target of ${named(from)}.`, {
    remedy: `Targets are ${Object.values(targets)
      .map(({ target }) => target)
      .join(', ')}.`,
  });
}

interface Setting {
  readonly stores: EngineStores;
  /** For what this engine leaves until the policy has read it. */
  readonly folder: string;
  readonly context: CommandContext;
}

class PartRun {
  /** `NAME=FILE`, as the gate takes them. */
  readonly results: string[] = [];
  readonly #part: Part;
  readonly #to: TargetRequest;
  readonly #setting: Setting;
  #row: Rehearsed;

  constructor(part: Part, to: TargetRequest, setting: Setting) {
    const { request, component, path, on } = part;
    this.#part = part;
    this.#to = to;
    this.#setting = setting;
    this.#row = {
      name: request.modelName ?? component ?? path,
      identity: '',
      model: component === null ? path : `${path}: ${component}`,
      on,
      before: null,
      after: null,
      verify: null,
      answer: null,
      ratio: null,
      notDone: [],
    };
  }

  async go(): Promise<Rehearsed> {
    const { environment, emit, signal } = this.#setting.context;
    const { target, request } = this.#part;
    try {
      const after = await this.#obtain(
        { ...this.#to, computeCapabilities: target.computeCapabilities },
        'new',
      );
      const { bytes } = after.passport.plan;
      this.#note({
        name: after.passport.name,
        identity: after.identity,
        after: { bytes, buildMs: after.passport.built.ms },
      });
      const loading = { allowHostCode: true, plugins: request.plugins ?? [], emit, signal, environment };
      const verified = await verifyModel(
        { reference: request.model, candidate: after.engine, ...loading },
        loading,
      );
      this.#note({ verify: this.#keep('verify', verified).outcome });
      const before = await this.#obtainOld();
      if (before === null) return this.#row;
      const { knownAnswer, name, plan, built } = before.passport;
      this.#note({ before: { name, bytes: plan.bytes, buildMs: built.ms } });
      if (knownAnswer === undefined) this.#lacks(`${name} recorded no answer when it was built`);
      else {
        const proof = proofOf(after.engine, knownAnswer);
        const checked = resultOf(proof, await observeEngine(proof, loading));
        this.#note({ answer: this.#keep('answer', checked).outcome });
      }
      await this.#measure(after, before);
    } catch (error) {
      if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED') throw error;
      const { code, message, remedy, exitCode } = error;
      this.#keep('error', { schema: 'trtforge.error/1', error: { code, message, remedy }, exitCode });
      this.#lacks(`${code}: ${message}`);
    }
    return this.#row;
  }

  /** From the store, or built here where its library is. */
  async #obtain(target: TargetRequest, use: string): Promise<ObtainedEngine> {
    const { stores, folder, context } = this.#setting;
    const output = join(folder, `${use}.engine`);
    const build = await resolveBuild({ ...this.#part.request, target, output }, context);
    return obtainEngine(build, stores, { ...context, answer: answerMaker(true) });
  }

  async #obtainOld(): Promise<ObtainedEngine | null> {
    try {
      return await this.#obtain(this.#part.target, 'old');
    } catch (error) {
      if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED') throw error;
      this.#lacks(`there is no engine of ${targetText(this.#part.target)} to compare with: ${error.message}`);
      return null;
    }
  }

  async #measure(after: ObtainedEngine, before: ObtainedEngine): Promise<void> {
    const { environment, emit, signal } = this.#setting.context;
    const side = ({ engine }: ObtainedEngine) => ({
      ...defaultRequest(engine),
      plugins: this.#part.request.plugins ?? [],
      allowHostCode: true,
      wait: true,
    });
    try {
      const compared = await benchCompare(
        { candidate: side(after), reference: side(before), rounds: ROUNDS, failAbove: undefined },
        { emit, signal, environment },
      );
      this.#note({ ratio: this.#keep('bench', compared).ratios.gpuMs });
    } catch (error) {
      if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED') throw error;
      this.#lacks(`not measured in turns: ${error.message}`);
    }
  }

  #keep<T>(kind: string, result: T): T {
    const path = join(this.#setting.folder, `${kind}.json`);
    writeFileSync(path, JSON.stringify(result));
    this.results.push(`${this.#row.name.replaceAll(/[^\w.-]/g, '-')}.${kind}=${path}`);
    return result;
  }

  #note(facts: Partial<Rehearsed>): void {
    this.#row = { ...this.#row, ...facts };
  }

  #lacks(what: string): void {
    this.#note({ notDone: [...this.#row.notDone, what] });
  }
}
