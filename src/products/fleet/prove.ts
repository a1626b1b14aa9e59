import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onDevice, visibleGpus } from '../../addon/chosen-gpu.js';
import type { CommandContext } from '../../cli/command.js';
import type { ResolvedBuild } from '../../engines/builder/build.js';
import { whyNotRun } from '../../engines/identity/machine.js';
import { passportPath } from '../../engines/identity/passport-file.js';
import { buildResult } from '../../engines/store/build-result.js';
import type { StoredEngine } from '../../engines/store/store.js';
import { benchEngine } from '../../quality/bench/bench-engine.js';
import { defaultRequest } from '../../quality/bench/request.js';
import { runGate } from '../../quality/gate/gate.js';
import { matchesGlob } from '../../quality/gate/glob.js';
import { loadPolicy } from '../../quality/gate/policy.js';
import { observeEngine } from '../../quality/known-answer/check-engine.js';
import { proofOf, resultOf } from '../../quality/known-answer/proof.js';
import type { EngineCheck } from '../../quality/known-answer/result.js';
import { verifyModel } from '../../quality/verify/verify.js';
import { policyDigest } from './plan.js';
import type { WorkRecord } from './plan-schema.js';

export interface Proven {
  /** Of the known answer; inconclusive where this machine does not run the engine. */
  readonly check: EngineCheck;
  readonly gate: WorkRecord['gate'];
  /** What did not pass. */
  readonly reasons: readonly string[];
}

export type BuiltEngine = Pick<StoredEngine, 'planPath' | 'passport'>;

interface Proving {
  readonly policy: string | null;
  /** A folder for results that the policy reads. */
  readonly scratch: string;
  readonly context: CommandContext;
}

/**
 * Lets an engine show its known answer and, with a policy, judges that with what else the policy reads: `trtforge.build/1`, `trtforge.engine-check/1`, and where it
 * asks for them and the engine runs here, `trtforge.bench/1` and `trtforge.verify/1`. Throws what running the engine throws, TF_GATE_POLICY_INVALID.
 */
export async function proveEngine(
  { planPath, passport }: BuiltEngine,
  build: ResolvedBuild,
  { policy, scratch, context }: Proving,
): Promise<Proven> {
  const { emit, signal, environment } = context;
  const { device = 0, toolchain, pluginPaths: plugins } = build;
  const gpus = onDevice(visibleGpus(), device);
  const runs = whyNotRun(gpus, passport.identity.document.target.computeCapabilities) === null;
  const loading = { device, toolchain, plugins, allowHostCode: true };
  const proof = proofOf(planPath, passport.knownAnswer);
  const observed = runs ? await observeEngine(proof, { ...loading, emit, signal, environment }) : null;
  const check = resultOf(proof, observed);
  // The plan lies in a folder that goes with the task.
  const said = check.reasons.map((reason) => reason.replaceAll(planPath, passport.name));
  if (policy === null) return { check, gate: null, reasons: check.outcome === 'pass' ? [] : said };
  const results: Record<string, () => Promise<unknown>> = {
    'trtforge.build/1': async () => buildResult(asObtained({ planPath, passport })),
    'trtforge.engine-check/1': async () => check,
    ...(runs && {
      'trtforge.bench/1': () =>
        benchEngine({ ...defaultRequest(planPath), ...loading, wait: true }, { emit, signal, environment }),
      'trtforge.verify/1': () =>
        verifyModel(
          { reference: build.modelPath, candidate: planPath, ...loading },
          { emit, signal, environment },
        ),
    }),
  };
  const asked = loadPolicy(policy).checks.map(({ select }) => select.schema ?? '*');
  const files: string[] = [];
  for (const [schema, make] of Object.entries(results)) {
    if (!asked.some((pattern) => matchesGlob(schema, pattern))) continue;
    const [, name = ''] = /\.(.+)\//.exec(schema) ?? [];
    const path = join(scratch, `${name}.json`);
    writeFileSync(path, JSON.stringify(await make()));
    files.push(`${name}=${path}`);
  }
  const day = new Date().toISOString().slice(0, 10);
  const { outcome, reasons } = runGate({ policy, results: files, day });
  const passes = outcome === 'pass' || outcome === 'warn';
  return {
    check,
    gate: { policy: policyDigest(policy), outcome },
    reasons: [...(check.outcome === 'fail' ? said : []), ...(passes ? [] : reasons)],
  };
}

/** As `build` would give it; a policy may read its size and its time. */
const asObtained = ({ planPath, passport }: BuiltEngine) => ({
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
