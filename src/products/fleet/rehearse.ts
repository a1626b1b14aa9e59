import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { chosenGpu, visibleGpus } from '../../addon/gpus.js';
import { closing } from '../../base/files/byte-source.js';
import { removeIfAllowed } from '../../base/files/files.js';
import { makeScratch } from '../../base/files/folders.js';
import * as is from '../../base/options/kinds.js';
import { needed, type OptionsOf, optional } from '../../base/options/option.js';
import { shellLine } from '../../base/text/shell-line.js';
import { obtainEngine } from '../../engines/builder/obtain-engine.js';
import { resolveBuild } from '../../engines/builder/resolve-build.js';
import { engineNameOf, formatEngineName } from '../../engines/identity/engine-name.js';
import type { Passport } from '../../engines/identity/passport.js';
import {
  parseTarget,
  parseToolchain,
  type TargetRequest,
  targetText,
} from '../../engines/identity/target.js';
import { type EngineStores, openStores } from '../../engines/store/open-stores.js';
import { TrtforgeError } from '../../errors.js';
import { type Work, type WorkContext, workOf } from '../../events.js';
import { runGate } from '../../quality/gate/gate.js';
import { loadPolicy } from '../../quality/gate/policy.js';
import { answerMaker } from '../../quality/known-answer/build-or-load.js';
import { worst } from '../../quality/verify/outcome.js';
import { isDeclared } from '../../tensorrt/toolchain/find.js';
import { packageVersion } from '../../version.js';
import { type EnginesFile, readEnginesFile } from './engines-file.js';
import { storeOptions } from './fleet-store.js';
import { buildsOf, type ModelBuild, type ModelReaders, readerOptions, targetHere } from './model-options.js';
import { ownBuild, resultsOf } from './prove.js';
import type { Rehearsal, Rehearsed } from './rehearsal-result.js';

/** The rules where no policy is named. */
const PRESET = 'rehearsal';

export const rehearsalOptions = {
  /** An engines file with targets of the old version. */
  engines: needed(is.text),
  /** Whose engines are replaced, as targets name it: `tensorrt@8.6.1.6`. */
  from: needed(is.either(is.text, is.object<TargetRequest>()), {
    flags: '--from <version>',
    describe: 'whose engines are replaced, as targets name it: tensorrt@8.6.1.6',
    parse: parseToolchain,
    required: '--from tensorrt@8.6.1.6',
  }),
  /** The version that replaces them, installed here. */
  to: needed(is.either(is.text, is.object<TargetRequest>()), {
    flags: '--to <version>',
    describe: 'what replaces them, installed here: tensorrt@10.6.0.26',
    parse: parseToolchain,
    required: '--to tensorrt@10.6.0.26',
  }),
  /** A policy with waivers (default: the preset `rehearsal`). */
  policy: optional(is.text, {
    flags: '--gate <policy>',
    describe: 'the policy that decides, with its waivers (default: the preset rehearsal)',
  }),
  /** The line that repeats it, for its page (default: that of `trtforge fleet rehearse`). */
  repeat: optional(is.text),
  ...readerOptions,
};

export interface RehearsalOptions extends OptionsOf<typeof rehearsalOptions> {}

const toolchainOf = (given: string | TargetRequest) =>
  typeof given === 'string' ? parseToolchain(given) : given;

/** One engine to rehearse. */
interface Part extends ModelBuild {
  readonly on: string;
  readonly path: string;
  readonly target: TargetRequest;
}

/**
 * For each engine of one TensorRT the engine of another, on this machine's GPU: built and kept in the store, verified against the FP32 model and by what the old one
 * recorded, measured in turns where both load, judged together by one policy. What fails of one engine does not end the others; without one of the three it is undecided. Throws TF_USAGE where no target of
 * the file has the old version, TF_GPU_UNAVAILABLE, what reading the file and the policy throws, TF_CANCELLED.
 *
 * ```ts
 * const rehearsed = await rehearse({ engines: 'engines.yaml', from: 'tensorrt@8.6.1.6', to: 'tensorrt@10.6.0.26' });
 * use([rehearsed.outcome, rehearsed.reasons]);
 * ```
 */
export async function rehearse(options: RehearsalOptions, context?: WorkContext): Promise<Rehearsal> {
  const work = workOf(context);
  const { policy } = options;
  const [from, to] = [toolchainOf(options.from), toolchainOf(options.to)];
  const { file, parts } = await decided(options, from, work);
  chosenGpu(visibleGpus(), 0, 'Rehearsing an upgrade needs an NVIDIA GPU');
  const scratch = makeScratch('rehearsal');
  try {
    return await closing(
      await openStores(storeOptions(file.store, scratch), work.environment),
      async (stores) => {
        const rehearsed: Rehearsed[] = [];
        const results: string[] = [];
        for (const [index, part] of parts.entries()) {
          const folder = join(scratch, String(index));
          mkdirSync(folder);
          const { afterFailure } = options;
          const found = await rehearsePart(part, to, { stores, folder, work, afterFailure });
          // Two targets may be of one GPU.
          if (rehearsed.some(({ identity }) => identity !== '' && identity === found.row.identity)) continue;
          rehearsed.push(found.row);
          results.push(...found.results);
        }
        const path = policy ?? join(scratch, 'policy.yaml');
        if (policy === undefined) writeFileSync(path, `schema: trtforge.gate-policy/1\nextends: ${PRESET}\n`);
        const gate = runGate({ policy: path, results, day: new Date().toISOString().slice(0, 10) });
        const undone = rehearsed.flatMap(undoneIn);
        return {
          schema: 'trtforge.fleet-rehearse/1',
          version: packageVersion(),
          from: named(from),
          to: named(to),
          gpu: visibleGpus().gpus[0]?.name ?? null,
          at: new Date().toISOString(),
          outcome: worst([
            gate.outcome === 'warn' ? 'pass' : gate.outcome,
            ...(undone.length > 0 ? ['inconclusive' as const] : []),
          ]),
          reasons: [...undone, ...gate.reasons],
          engines: rehearsed,
          gate,
          repeat: options.repeat ?? lineOf(options.engines, from, to, policy),
        };
      },
    );
  } finally {
    removeIfAllowed(scratch);
  }
}

function lineOf(engines: string, from: TargetRequest, to: TargetRequest, policy: string | undefined): string {
  const versions = ['--from', targetText(from), '--to', targetText(to)];
  const gate = policy === undefined ? [] : ['--gate', policy];
  return shellLine(['trtforge', 'fleet', 'rehearse', engines, ...versions, ...gate]);
}

/** Reads the parts that need no GPU: the file, its targets of the old version, the policy. */
async function decided(
  { engines, policy, ...readers }: RehearsalOptions,
  from: TargetRequest,
  work: Work,
): Promise<{ readonly file: EnginesFile; readonly parts: readonly Part[] }> {
  const file = readEnginesFile(engines);
  if (policy !== undefined) loadPolicy(policy);
  return { file, parts: await partsOf(file, from, readers, work) };
}

/** The plan of a rehearsal. */
export interface RehearsalPlan {
  readonly from: string;
  readonly to: string;
  readonly policy: string;
  /** Names of the new engines, as far as the new version can build them; `isMissing`: it is not installed here. */
  readonly engines: readonly { readonly name: string; readonly isMissing: boolean }[];
}

/** Decides what `rehearse` would do; builds nothing. Throws what `rehearse` throws before it needs a GPU. */
export async function planRehearsal(
  options: RehearsalOptions,
  context?: WorkContext,
): Promise<RehearsalPlan> {
  const work = workOf(context);
  const [from, to] = [toolchainOf(options.from), toolchainOf(options.to)];
  const { parts } = await decided(options, from, work);
  const engines: RehearsalPlan['engines'][number][] = [];
  for (const { request: build, target } of parts) {
    const wanted = { ...target, ...to, computeCapabilities: target.computeCapabilities };
    const { identity, model, toolchain } = await resolveBuild(
      { ...build, ...(await targetHere(wanted, work)) },
      work,
    );
    const name = formatEngineName(engineNameOf(identity, model.name, model.version));
    engines.push({ name, isMissing: isDeclared(toolchain) });
  }
  return { from: named(from), to: named(to), policy: options.policy ?? PRESET, engines };
}

/** The steps not done for one engine: nobody knows then whether it may go. */
function undoneIn({ name, verify, answer, ratio, notDone }: Rehearsed): readonly string[] {
  const steps = [
    [verify, 'verified against its model'],
    [answer, 'compared with the answer of the old engine'],
    [ratio, 'measured beside the old engine'],
  ] as const;
  const undone = steps.flatMap(([done, what]) => (done === null ? [what] : []));
  if (undone.length === 0) return [];
  const why = notDone.length === 0 ? 'The old engine recorded no answer.' : notDone.join(' ');
  return [`${name} was not ${undone.join(', not ')}. ${why}`];
}

const named = (target: TargetRequest): string => `${target.product} ${target.named?.version ?? ''}`.trim();

async function partsOf(
  { folder, targets, entries }: EnginesFile,
  from: TargetRequest,
  readers: ModelReaders,
  work: Work,
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
    const requests = await buildsOf({ path, isBundle, options }, folder, readers, work);
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

interface Setting extends Pick<ModelReaders, 'afterFailure'> {
  readonly stores: EngineStores;
  /** For what this engine leaves until the policy has read it. */
  readonly folder: string;
  readonly work: Work;
}

/** What is known of one engine: its row, and its results as the gate takes them, `NAME=FILE`. */
class PartRecord {
  row: Rehearsed;
  readonly results: string[] = [];
  readonly #folder: string;

  constructor({ component, path, on }: Part, folder: string) {
    const model = component === null ? path : `${path}: ${component}`;
    this.row = {
      name: model,
      identity: '',
      model,
      on,
      before: null,
      after: null,
      verify: null,
      answer: null,
      ratio: null,
      notDone: [],
    };
    this.#folder = folder;
  }

  note(known: Partial<Rehearsed>): void {
    this.row = { ...this.row, ...known };
  }

  /** Writes a result into a file, which the gate reads. */
  keep<T>(kind: string, result: T): T {
    const file = join(this.#folder, `${kind}.json`);
    writeFileSync(file, JSON.stringify(result));
    // A name begins with a letter or a digit; a path may not.
    this.results.push(`${this.row.name.replaceAll(/[^\w.-]/g, '-').replace(/^\W+/, '')}.${kind}=${file}`);
    return result;
  }

  /** Undefined for what failed, which the row then states; with a `kind` it is an error for the policy too. */
  async tried<T>(kind: string | null, step: () => Promise<T>): Promise<T | undefined> {
    try {
      return await step();
    } catch (error) {
      if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED') throw error;
      const { code, message, remedy, exitCode } = error;
      this.note({ notDone: [...this.row.notDone, `${code}: ${message}`] });
      if (kind !== null)
        this.keep(kind, { schema: 'trtforge.error/1', error: { code, message, remedy }, exitCode });
      return undefined;
    }
  }
}

/** Rehearses one engine. What fails is a row's affair; throws TF_CANCELLED. */
async function rehearsePart(part: Part, to: TargetRequest, setting: Setting): Promise<PartRecord> {
  const { samples, target } = part;
  const { folder, work, afterFailure } = setting;
  const record = new PartRecord(part, folder);
  const replacing = { ...target, ...to, computeCapabilities: target.computeCapabilities };
  const after = await record.tried('build', () => obtain(part, replacing, 'new.engine', setting));
  if (after === undefined) return record;
  const { name, identity, ...own } = after.passport;
  record.note({ name, identity: identity.digest, after: sizeOf(own) });
  const before = await record.tried(null, () => obtain(part, target, 'old.engine', setting));
  if (before !== undefined)
    record.note({ before: { name: before.passport.name, ...sizeOf(before.passport) } });
  const proven = { engine: after, build: after.build, samples, afterFailure, ...(before && { before }) };
  const all = resultsOf(proven, work);
  const { verify, answer, 'bench-compare': bench } = { verify: notHere, ...all };
  const verified = await record.tried('verify', async () => record.keep('verify', await verify()));
  const answered =
    answer && (await record.tried('answer', async () => record.keep('answer', await answer())));
  const compared = bench && (await record.tried(null, async () => record.keep('bench', await bench())));
  record.note({
    verify: verified?.outcome ?? null,
    answer: answered?.outcome ?? null,
    ratio: compared?.ratios.gpuMs ?? null,
  });
  return record;
}

/** The engine of a target, from the store, or built here where its library is. */
async function obtain(
  { request }: Part,
  target: TargetRequest,
  fileName: string,
  { stores, folder, work }: Setting,
) {
  const here = await targetHere(target, work);
  const build = await resolveBuild({ ...request, ...here, output: join(folder, fileName) }, work);
  const seams = { ...work, answer: answerMaker(true), takesWrong: true };
  const { engine, passport, source } = await obtainEngine(ownBuild(build), stores, seams);
  return { build, planPath: engine, passport, isOwn: source === 'built' };
}

const notHere = () => {
  throw new TrtforgeError('TF_GPU_UNAVAILABLE', 'The new engine does not run on this machine.');
};

const sizeOf = ({ plan, built }: Pick<Passport, 'plan' | 'built'>) => ({
  bytes: plan.bytes,
  buildMs: built.ms,
});
