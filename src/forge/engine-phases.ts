import { existsSync } from 'node:fs';
import { closing } from '../base/files/byte-source.js';
import { valuesOf } from '../base/options/option.js';
import { formatBytes, formatMs } from '../base/text/quantity.js';
import { obtainEngine } from '../engines/builder/obtain-engine.js';
import { flatExporter } from '../engines/exports/exporter.js';
import { passportPath } from '../engines/identity/engine-name.js';
import { identityDigest } from '../engines/identity/identity.js';
import { readPassport } from '../engines/identity/passport.js';
import { whyNotRun } from '../engines/identity/target.js';
import type { LocalStore } from '../engines/store/local.js';
import { openLocalStore, openStores } from '../engines/store/open-stores.js';
import { type Trust, verifyTrusted } from '../engines/store/trust.js';
import { TrtforgeError } from '../errors.js';
import { workOf } from '../events.js';
import { benchEngine } from '../quality/bench/bench-engine.js';
import { defaultMode, defaultRequest } from '../quality/bench/options.js';
import { answerMaker } from '../quality/known-answer/build-or-load.js';
import type { VerifyRequest } from '../quality/verify/options.js';
import { verifyModel } from '../quality/verify/verify.js';
import type { ForgedEngine } from '../report/forge-result.js';
import { onlyLoadOptions } from '../tensorrt/trtexec/options.js';
import { builtShapes, judgingData, outcomeText } from './model-phases.js';
import type { SkippablePhase } from './options.js';
import type { Forged, ForgePhase, PhaseOutcome, Run } from './phase-run.js';

/** The phases over the engine: it is found or built, compared with the model, measured. */

/** Long enough for steady clocks, short beside a build. */
const BENCH_MS = 3000;
const WARM_UP_MS = 1000;

/** Finds the engine in the store or builds it, and puts it into the run root under its readable name. */
export const buildPhase = (run: Run): ForgePhase => ({
  name: 'build',
  skip: ({ prepared }) => (prepared === undefined ? '--skip build' : null),
  expect: async ({ prepared }) => {
    const store = run.options.forceRebuild ? storeOf(run) : null;
    if (prepared === undefined || store === null) return undefined;
    const answer = await store.get(identityDigest(prepared.identity));
    return answer.found ? `last built in ${formatMs(answer.engine.passport.built.ms)}` : undefined;
  },
  run: async (soFar, context) => {
    const prepared = preparedOf(soFar);
    return closing(await openStores(run.options, run.environment), async (stores) => {
      const kept = await keptEngine(run, prepared, stores.trust);
      if (kept !== undefined) return obtainedBy(kept);
      const obtained = await obtainEngine(
        {
          ...prepared,
          converted: soFar.conversion,
          output: run.engine ?? run.root.engines,
        },
        stores,
        {
          ...context,
          build: run.build,
          // The reference runs anyway where the engine is compared with it.
          answer: answerMaker(
            run.options.knownAnswer ?? (run.options.skip?.includes('verify') === true ? undefined : true),
            run.options,
          ),
          takesWrong: true,
          exporter: run.engine === undefined ? flatExporter : undefined,
        },
      );
      return obtainedBy(obtained);
    });
  },
  built: ({ obtained }) =>
    obtained === undefined || obtained.source === 'kept' ? null : obtained.passport.identity.document.target,
});

/** The engine that stays in the run's place: it is intact, of the same identity, signed where signatures are required, and not to be rebuilt. */
export async function keptEngine(
  { engine, options }: Run,
  prepared: Forged['prepared'],
  trust: Trust,
): Promise<ForgedEngine | undefined> {
  if (options.forceRebuild || engine === undefined || !existsSync(engine)) return undefined;
  const identity = identityDigest(prepared.identity);
  try {
    if (readPassport(engine).identity.digest !== identity) return undefined;
    const { passport } = await verifyTrusted(trust, engine);
    const isAnswered = passport.knownAnswer !== undefined;
    if (options.knownAnswer === true && !isAnswered) return undefined;
    return {
      engine,
      passportPath: passportPath(engine),
      passport,
      unanswered: isAnswered ? null : 'it was there without one',
      identity,
      readablePath: null,
      source: 'kept',
      rule: 'exact',
      why: [],
      timings: { lookupMs: 0, waitMs: 0, remoteMs: 0, buildMs: 0, keepMs: 0, uploadMs: 0 },
      warnings: [],
    };
  } catch (error) {
    if (error instanceof TrtforgeError) return undefined;
    throw error;
  }
}

const storeOf = ({ options, environment }: Run): LocalStore | null =>
  options.store === false ? null : openLocalStore(options.store, environment);

function preparedOf({ prepared }: Partial<Forged>): Forged['prepared'] {
  if (prepared === undefined) throw new Error('The build phase runs only after the resolve phase.');
  return prepared;
}

function obtainedBy(obtained: ForgedEngine): PhaseOutcome<Forged> {
  const { source, passport, timings } = obtained;
  const how = {
    built: `built in ${formatMs(passport.built.ms)}`,
    kept: 'was there already',
    local: `found in the local store in ${formatMs(timings.lookupMs + timings.waitMs)}`,
    remote: `found in the remote store in ${formatMs(timings.remoteMs)}`,
  }[source];
  return { found: { obtained }, detail: `${how}, ${formatBytes(passport.plan.bytes)}` };
}

/** Compares the engine itself, on its GPU, with the original model. An output outside tolerance ends no phase: it is a finding. */
export const verifyEnginePhase = (run: Run): ForgePhase => ({
  name: 'verify engine',
  skip: (soFar) => whyNoRun(run, soFar, 'verify'),
  run: async (soFar, context) => {
    const { afterFailure } = run;
    const engineVerification = await verifyModel(engineRequest(run, soFar), { ...context, afterFailure });
    return { found: { engineVerification }, detail: outcomeText(engineVerification) };
  },
});

/** The comparison of the engine. */
export function engineRequest(run: Run, { prepared, obtained, conversion }: Partial<Forged>): VerifyRequest {
  if (obtained === undefined) throw new Error('The engine is verified only after the build phase.');
  const data = judgingData(run.options);
  return {
    shapes: builtShapes(prepared),
    profiles: prepared?.identity.recipe.profiles,
    ...run.options.verify,
    data: data && { ...data, profiles: prepared?.identity.recipe.profiles },
    reference: run.options.model,
    candidate: obtained.engine,
    device: run.options.device,
    ...loadingOf(run, prepared),
    precision: conversion?.precision,
    conversion: run.options.conversion,
    errorMap: true,
  };
}

/** Measures the engine at the optimum of its first profile, GPU time only, as a CUDA graph: the speed of the hardware. */
export const benchPhase = (run: Run): ForgePhase => ({
  name: 'bench',
  skip: (soFar) => whyNoRun(run, soFar, 'bench'),
  run: async ({ prepared, obtained }, context) => {
    if (obtained === undefined) throw new Error('The engine is measured only after the build phase.');
    const bench = await benchEngine(
      {
        ...defaultRequest(obtained.engine),
        device: run.options.device ?? 0,
        ...loadingOf(run, prepared),
        wait: true,
        mode: {
          ...defaultMode,
          transfers: false,
          graph: true,
          spinWait: true,
          warmUpMs: WARM_UP_MS,
          durationMs: BENCH_MS,
        },
      },
      workOf(context),
    );
    const { gpuMs, itemsPerSecond } = bench;
    return {
      found: { bench },
      detail: `${gpuMs === null ? '' : `${formatMs(gpuMs.median)} on the GPU, `}${Math.round(itemsPerSecond)} items a second`,
    };
  },
});

/** An engine is loaded with what it was built with. A toolchain that the user named keeps its name. */
const loadingOf = ({ options }: Run, prepared: Forged['prepared'] | undefined) => ({
  ...valuesOf(onlyLoadOptions, options),
  toolchain: options.toolchain ?? prepared?.toolchain,
  plugins: options.plugins,
});

const whyNoRun = (run: Run, { prepared, obtained }: Partial<Forged>, phase: SkippablePhase) =>
  obtained === undefined ? NO_ENGINE : whyEngineIdle(run, prepared, phase);

const NO_ENGINE = 'there is no engine';

/** Why the engine of a build would not run in a phase here; null where it would. */
export function whyEngineIdle(
  { machine, options }: Pick<Run, 'machine' | 'options'>,
  prepared: Forged['prepared'] | undefined,
  phase: SkippablePhase,
): string | null {
  if (prepared === undefined) return NO_ENGINE;
  const why = whyNotRun(machine.gpus, prepared.identity);
  return why ?? (options.skip?.includes(phase) ? `--skip ${phase}` : null);
}
