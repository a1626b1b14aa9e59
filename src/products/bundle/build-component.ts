import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { PlanBuilder } from '../../engines/builder/build-engine.js';
import type { PreparedBuild } from '../../engines/builder/prepare.js';
import { identityDigest } from '../../engines/identity/identity.js';
import { readPassport } from '../../engines/identity/passport.js';
import { type Passport, passportPath } from '../../engines/identity/passport-file.js';
import type { ProfileRequest } from '../../engines/identity/profile.js';
import { obtainEngine } from '../../engines/store/obtain-engine.js';
import type { EngineStores } from '../../engines/store/open-stores.js';
import { type Trust, verifyTrusted } from '../../engines/store/trust.js';
import { TrtforgeError } from '../../errors.js';
import { formatNamed } from '../../formats/precision/formats/index.js';
import { dtypes } from '../../formats/tensor/dtype.js';
import type { Component } from './component.js';
import type { ComponentLog } from './component-log.js';
import { explainImpossibleProfile, impossibleLine } from './impossible-profile.js';
import { signalOf, type WorkContext } from './work-context.js';

/** A component with everything decided. */
export interface PreparedComponent {
  readonly component: Component;
  readonly profile: ProfileRequest;
  readonly prepared: PreparedBuild;
  readonly enginePath: string;
}

export interface ComponentEngine {
  readonly status: 'built' | 'kept' | 'local' | 'remote';
  readonly passport: Passport;
  readonly passportPath: string;
  readonly buildMs: number;
  readonly warnings: readonly string[];
}

/** The engine that lies in the folder already, when it is sound, of the same identity, and signed where signatures are required. */
export async function keptEngine(
  { prepared, enginePath }: PreparedComponent,
  trust: Trust,
): Promise<ComponentEngine | undefined> {
  if (!existsSync(enginePath)) return undefined;
  try {
    if (readPassport(enginePath).identity.digest !== identityDigest(prepared.identity)) return undefined;
    const { passport } = await verifyTrusted(trust, enginePath);
    return { status: 'kept', passport, passportPath: passportPath(enginePath), buildMs: 0, warnings: [] };
  } catch (error) {
    if (error instanceof TrtforgeError) return undefined;
    throw error;
  }
}

export interface ComponentBuild {
  readonly stores: EngineStores;
  readonly forceRebuild: boolean;
  readonly verbose: boolean;
  readonly converted: { readonly path: string; readonly ms: number } | undefined;
  readonly build: PlanBuilder;
  readonly log: ComponentLog;
}

/**
 * The engine of a component, from a store or built, at its place in the folder. What lay there before stays until the new one is whole.
 * Errors: those of `obtainEngine`; TF_ENGINE_TOO_SMALL and TF_PROFILE_INVALID for plans that a builder passed and nobody can use, which are kept nowhere.
 */
export async function obtainComponent(
  target: PreparedComponent,
  { stores, forceRebuild, verbose, converted, build, log }: ComponentBuild,
  context: WorkContext,
): Promise<ComponentEngine> {
  const { component, profile, prepared, enginePath } = target;
  const emit = log.listen(context.emit);
  const checked: PlanBuilder = async (request, options) => {
    try {
      const outcome = await build(request, options);
      const line = impossibleLine(outcome.warnings);
      if (line !== undefined)
        throw await explainImpossibleProfile(component, profile, line, { ...context, emit });
      refuseSmall(target, outcome.bytes, log);
      return outcome;
    } catch (error) {
      const said =
        error instanceof TrtforgeError && error.code === 'TF_BUILD_FAILED'
          ? impossibleLine([error.message])
          : undefined;
      throw said === undefined
        ? error
        : await explainImpossibleProfile(component, profile, said, { ...context, emit });
    }
  };
  const obtained = await obtainEngine(
    { ...prepared, ...stores, converted, forceRebuild, output: enginePath },
    { emit, env: context.environment, verbose, build: checked, ...signalOf(context) },
  );
  return {
    status: obtained.source,
    passport: obtained.passport,
    passportPath: obtained.passportPath,
    buildMs: obtained.source === 'built' ? obtained.passport.built.ms : 0,
    warnings: [...obtained.warnings, ...(obtained.source === 'built' ? obtained.passport.warnings : [])],
  };
}

/** Models with less weights than this say nothing about the size of their engines. */
const TELLING_BYTES = 1 << 20;

/** An engine holds its weights in their type, though builders drop what leads to no output and fold what is constant; a quarter is beyond that. */
const SMALLEST_SHARE = 0.25;

/** Plans that leave weights out on purpose. */
const LEAN_FLAGS = new Set(['strip-plan', 'refit-identical', 'refit-individual']);

function refuseSmall(
  { component, prepared, enginePath }: PreparedComponent,
  bytes: number,
  log: ComponentLog,
): void {
  const expected = typedWeightBytes(prepared);
  const isLean = prepared.identity.recipe.flags.some((flag) => LEAN_FLAGS.has(flag));
  if (isLean || expected < TELLING_BYTES || bytes >= expected * SMALLEST_SHARE) return;
  throw new TrtforgeError(
    'TF_ENGINE_TOO_SMALL',
    `The engine of the ${component.name} has ${bytes} bytes, though the model's weights alone are ${expected} bytes in its precision; ${enginePath} is left as it was. The log is ${log.path}.`,
    { details: { component: component.name, bytes, weightBytes: expected, log: log.path } },
  );
}

/** Bytes of the weights in the precision that the builder is given; an upper bound, since some stay FP32. */
export const typedWeightBytes = ({ identity, content }: PreparedBuild): number => {
  const { dtype } = formatNamed(identity.recipe.precision) ?? { dtype: 'float32' };
  return (content.weightBytes * dtypes[dtype].bits) / dtypes.float32.bits;
};

export const trtexecLogFolder = (logs: string, component: string): string =>
  join(logs, `.trtexec-${component}`);
