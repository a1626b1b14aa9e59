import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onDevice, visibleGpus } from '../../addon/gpus.js';
import type { ResolvedBuild } from '../../engines/builder/options.js';
import { buildResult } from '../../engines/builder/result.js';
import { passportPath } from '../../engines/identity/engine-name.js';
import { whyNotRun } from '../../engines/identity/target.js';
import { carriesHostCode } from '../../engines/plan/loads.js';
import type { StoredEngine } from '../../engines/store/store.js';
import type { Work } from '../../events.js';
import { benchEngine } from '../../quality/bench/bench-engine.js';
import { benchCompare } from '../../quality/bench/compare.js';
import { defaultRequest } from '../../quality/bench/options.js';
import { runGate } from '../../quality/gate/gate.js';
import { loadPolicy, reads } from '../../quality/gate/policy.js';
import { observeEngine, proofOf, resultOf } from '../../quality/known-answer/proof.js';
import type { EngineCheck } from '../../quality/known-answer/result.js';
import { verifyModel } from '../../quality/verify/verify.js';
import { isDeclared } from '../../tensorrt/toolchain/find.js';
import type { ModelBuild, ModelReaders } from './model-options.js';
import type { FleetJob, WorkRecord } from './plan-schema.js';

/** Number of times that two engines are measured in turns. */
const ROUNDS = 6;

export interface Proven {
  /** Of the known answer; inconclusive where this machine does not run the engine. */
  readonly check: EngineCheck;
  readonly gate: WorkRecord['gate'];
  /** The reasons why it did not pass. */
  readonly reasons: readonly string[];
}

export interface BuiltEngine extends Pick<StoredEngine, 'planPath' | 'passport'> {
  /** Whether this process built it: code that an engine of a store carries does not run. */
  readonly isOwn: boolean;
}

interface Proving {
  readonly policy: FleetJob['gate'];
  /** A folder for results that the policy reads. */
  readonly scratch: string;
  readonly work: Work;
}

/** An engine, how it was built, and what it replaces. */
interface Subject extends Pick<ModelBuild, 'samples'>, Pick<ModelReaders, 'afterFailure'> {
  readonly engine: BuiltEngine;
  readonly build: ResolvedBuild;
  readonly before?: BuiltEngine;
}

/**
 * Results that a policy may read of an engine, by name; each runs when it is called. Where this machine does not run the engine, its known answer is inconclusive and
 * what else would run is absent. `answer` is the known answer of the engine before it, `bench-compare` both in turns.
 */
export function resultsOf({ engine, build, samples, before, afterFailure }: Subject, work: Work) {
  const { planPath, passport, isOwn } = engine;
  const { device = 0, toolchain, pluginPaths: plugins } = build;
  const gpus = onDevice(visibleGpus(), device);
  const runs = whyNotRun(gpus, passport.identity.document) === null;
  const placeOf = (isOwn: boolean) => ({ device, plugins, allowHostCode: isOwn });
  const place = placeOf(isOwn);
  const answered = async (answer: BuiltEngine['passport']['knownAnswer']) => {
    const proof = proofOf(planPath, work.environment, answer);
    const observed = runs ? await observeEngine(proof, { ...place, toolchain, ...work }) : null;
    return resultOf(proof, observed);
  };
  const bench = (of: BuiltEngine) => ({ ...defaultRequest(of.planPath), ...placeOf(of.isOwn), wait: true });
  return {
    build: async () => buildResult(asObtained(engine)),
    'engine-check': () => answered(passport.knownAnswer),
    ...(runs && {
      bench: () => benchEngine({ ...bench(engine), toolchain }, work),
      verify: () =>
        verifyModel(
          {
            reference: build.modelPath,
            candidate: planPath,
            // Drawn inputs have the sizes that the engine is tuned for.
            ...(samples === undefined ? { shapes: optima(passport) } : { data: samples }),
            ...place,
            toolchain,
          },
          { ...work, afterFailure },
        ),
      ...(before?.passport.knownAnswer && { answer: () => answered(before.passport.knownAnswer) }),
      ...(before && {
        'bench-compare': () =>
          benchCompare(
            {
              candidate: { ...bench(engine), toolchain },
              reference: bench(before),
              rounds: ROUNDS,
              failAbove: undefined,
            },
            work,
          ),
      }),
    }),
  };
}

/** Lets an engine show its known answer and, with a policy, judges that with what else the policy reads. Throws what running the engine throws, TF_GATE_POLICY_INVALID. */
export async function proveEngine(subject: Subject, { policy, scratch, work }: Proving): Promise<Proven> {
  const { planPath, passport } = subject.engine;
  // One that is not kept yet has none beside it, which is what others read.
  if (!existsSync(passportPath(planPath))) writeFileSync(passportPath(planPath), JSON.stringify(passport));
  const results = resultsOf(subject, work);
  const check = await results['engine-check']();
  // The plan lies in a folder that goes with the task.
  const said = check.reasons.map((reason) => reason.replaceAll(planPath, passport.name));
  if (policy === null) return { check, gate: null, reasons: check.outcome === 'pass' ? [] : said };
  const rules = loadPolicy(policy.path);
  const files: string[] = [];
  for (const [name, make] of Object.entries({ ...results, 'engine-check': async () => check })) {
    if (!reads(rules, `trtforge.${name}/1`)) continue;
    const path = join(scratch, `${name}.json`);
    writeFileSync(path, JSON.stringify(await make()));
    files.push(`${name}=${path}`);
  }
  const day = new Date().toISOString().slice(0, 10);
  const judged = runGate({ policy: policy.path, results: files, day });
  // A measurement that a machine without the GPU cannot make is not a verdict on the engine.
  const isBlind =
    !('bench' in results) &&
    judged.findings.every((each) => each.outcome !== 'fail' || each.rule === 'missing-result');
  const outcome = judged.outcome === 'fail' && isBlind ? 'inconclusive' : judged.outcome;
  const passes = outcome === 'pass' || outcome === 'warn';
  return {
    check,
    gate: { policy: policy.digest, outcome },
    reasons: [...(check.outcome === 'fail' ? said : []), ...(passes ? [] : judged.reasons)],
  };
}

const optima = ({ identity: { document } }: BuiltEngine['passport']) =>
  new Map(Object.entries(document.recipe.profiles[0] ?? {}).map(([name, { opt }]) => [name, opt]));

/** A build that is run here: an engine of a store that carries code is built again where that is possible. */
export const ownBuild = (build: ResolvedBuild): ResolvedBuild =>
  carriesHostCode(build.identity.recipe) && !isDeclared(build.toolchain)
    ? { ...build, forceRebuild: true }
    : build;

/** As `build` would give it; a policy may read its size and its time. */
const asObtained = ({ planPath, passport }: Pick<BuiltEngine, 'planPath' | 'passport'>) => ({
  engine: planPath,
  passportPath: passportPath(planPath),
  passport,
  identity: passport.identity.digest,
  readablePath: null,
  source: 'built' as const,
  rule: 'exact',
  why: [],
  timings: { lookupMs: 0, waitMs: 0, remoteMs: 0, buildMs: passport.built.ms, keepMs: 0, uploadMs: 0 },
  warnings: [],
});
