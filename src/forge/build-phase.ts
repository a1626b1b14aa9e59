import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { formatBytes, formatMs } from '../base/text/quantity.js';
import { planBuilder } from '../engines/builder/plan-builders.js';
import { engineNameOf, formatEngineName } from '../engines/identity/engine-name.js';
import { identityDigest } from '../engines/identity/identity.js';
import { readPassport } from '../engines/identity/passport.js';
import { passportPath } from '../engines/identity/passport-file.js';
import type { LocalStore } from '../engines/store/local.js';
import { obtainEngine } from '../engines/store/obtain-engine.js';
import { openLocalStore, openStores } from '../engines/store/open-stores.js';
import { type Trust, verifyTrusted } from '../engines/store/trust.js';
import { TrtforgeError } from '../errors.js';
import type { ForgedEngine } from '../report/result.js';
import type { Forged, ForgePhase, Run } from './run-state.js';

/** Finds the engine in the store or builds it, and puts it into the run root under its readable name. */
export const buildPhase = (run: Run): ForgePhase => ({
  name: 'build',
  skip: ({ prepared }) => (prepared === undefined ? 'no engine was asked for' : null),
  expect: async ({ prepared }) => {
    const store = run.options.forceRebuild ? storeOf(run) : null;
    if (prepared === undefined || store === null) return undefined;
    const answer = await store.get(identityDigest(prepared.identity));
    return answer.found ? `last built in ${formatMs(answer.engine.passport.built.ms)}` : undefined;
  },
  run: async (soFar, { emit, signal }) => {
    const prepared = preparedOf(soFar);
    const { identity, model, extension } = prepared;
    const name = formatEngineName(engineNameOf(identity, model.name, model.version), extension);
    const { close, ...stores } = await openStores(run.options, run.environment);
    try {
      const kept = run.options.forceRebuild ? undefined : await keptEngine(run, prepared, stores.trust);
      if (kept !== undefined) return { found: { obtained: kept }, detail: howObtained(kept) };
      const obtained = await obtainEngine(
        {
          ...prepared,
          converted: soFar.conversion && { path: soFar.conversion.output, ms: soFar.conversion.ms },
          ...stores,
          forceRebuild: run.options.forceRebuild ?? false,
          output: run.engine ?? join(run.root.engines, name),
        },
        {
          emit,
          env: run.environment,
          verbose: run.options.verbose ?? false,
          ...(signal === undefined ? {} : { signal }),
          build: run.build ?? planBuilder(run.options.builder ?? 'native', dirname(run.root.log('build'))),
        },
      );
      return { found: { obtained }, detail: howObtained(obtained) };
    } finally {
      close();
    }
  },
  built: ({ obtained }) =>
    obtained === undefined || obtained.source === 'kept' ? null : obtained.passport.identity.document.target,
});

/** The engine that lies at the run's place already, when it is intact, of the same identity, and signed where signatures are required. */
async function keptEngine(
  { engine }: Run,
  prepared: Forged['prepared'],
  trust: Trust,
): Promise<ForgedEngine | undefined> {
  if (engine === undefined || !existsSync(engine)) return undefined;
  const identity = identityDigest(prepared.identity);
  try {
    if (readPassport(engine).identity.digest !== identity) return undefined;
    const { passport } = await verifyTrusted(trust, engine);
    return {
      engine,
      passportPath: passportPath(engine),
      passport,
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

function howObtained({ source, passport, timings }: ForgedEngine): string {
  const size = formatBytes(passport.plan.bytes);
  if (source === 'kept') return `was there already, ${size}`;
  return source === 'built'
    ? `built in ${formatMs(passport.built.ms)}, ${size}`
    : `found in the ${source} store in ${formatMs(timings.lookupMs + timings.waitMs + timings.remoteMs)}, ${size}`;
}
