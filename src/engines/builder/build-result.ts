import type { z } from 'zod';
import { plural } from '../../base/text/quantity.js';
import { targetText } from '../identity/target.js';
import type { buildResultSchema, ProfileOrigin, refitResultSchema } from './build-result-schema.js';
import type { ObtainedEngine } from './obtain-engine.js';

export type BuildResult = z.infer<typeof buildResultSchema>;

export function buildResult(obtained: ObtainedEngine): BuildResult {
  const { passport, timings } = obtained;
  const { recipe, target } = passport.identity.document;
  return {
    schema: 'trtforge.build/1',
    engine: obtained.engine,
    passport: obtained.passportPath,
    unanswered: obtained.unanswered ?? null,
    wrongAnswer: obtained.wrongAnswer ?? null,
    identity: obtained.identity,
    source: obtained.source,
    rule: obtained.rule,
    refittedFrom: passport.built.refitted?.identity ?? null,
    buildMs: passport.built.ms,
    bytes: passport.plan.bytes,
    layers: passport.plan.layers,
    sha256: passport.plan.sha256,
    name: passport.name,
    readablePath: obtained.readablePath,
    target: targetText(target),
    library: `${target.product} ${target.version}`,
    precision: recipe.precision,
    profiles: recipe.profiles.length,
    sizes: passport.built.sizes ?? null,
    precisions: passport.plan.precisions ?? null,
    why: obtained.why,
    timings,
    warnings: [...passport.warnings, ...obtained.warnings],
  };
}

export type RefitResult = z.infer<typeof refitResultSchema>;

export function refitResult(obtained: ObtainedEngine): RefitResult {
  const { engine, passport, unanswered, identity, bytes, sha256, name, ...built } = buildResult(obtained);
  const { target, library, precision, buildMs, timings, warnings, refittedFrom } = built;
  return {
    schema: 'trtforge.engine-refit/1',
    ...{ engine, passport, unanswered, identity, bytes, sha256, name, target, library, precision },
    refittedFrom: refittedFrom ?? '',
    refitMs: buildMs,
    ms: timings.buildMs,
    warnings,
  };
}

/** `x:1x3/8x3/32x3, from 12 samples of clips/` */
export const originText = ({ from, samples, profile }: ProfileOrigin): string =>
  `${profile === '' ? 'no dynamic dimension' : profile}, from ${samples === null ? from : `${plural(samples, 'sample')} of ${from}`}`;
