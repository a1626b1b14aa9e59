import { z } from 'zod';
import { plural } from '../../base/text/quantity.js';
import { layerPrecisionsSchema, passportSchema } from '../identity/passport.js';
import { targetText } from '../identity/target.js';
import { missSchema } from '../store/result.js';

const timingsSchema = z.object({
  /** Asking the sources. */
  lookupMs: z.number(),
  /** Waiting for another process that built the same. */
  waitMs: z.number(),
  /** Asking the remote store, waiting for another machine that built the same, and downloading. */
  remoteMs: z.number(),
  /** Conversion, build and check, as a whole; 0 for a hit. */
  buildMs: z.number(),
  /** Putting the engine into the store and where the user requested it. */
  keepMs: z.number(),
  /** Uploading what was built to the remote store. */
  uploadMs: z.number(),
});

/** An engine and where it came from, as the stores and the builder returned it. */
export const obtainedEngineSchema = z.object({
  /** Path of the plan. */
  engine: z.string(),
  passportPath: z.string(),
  passport: passportSchema,
  /** Why it has no known answer; null where it has one. Absent in results of versions before. */
  unanswered: z.string().nullish(),
  /** Why it does not give its known answer here; null where it does, or was not run. Absent in results of versions before. */
  wrongAnswer: z.string().nullish(),
  identity: z.string(),
  /** The readable name of `engine` in the store; null without one, and for an engine that was put elsewhere. */
  readablePath: z.string().nullable(),
  source: z.enum(['built', 'local', 'remote']),
  /** `exact`, or the rule of `engines/store/compatibility.ts` by which an engine of another identity serves. */
  rule: z.string(),
  /** Why earlier sources did not serve; empty for a hit in the first. */
  why: z.array(missSchema),
  timings: timingsSchema,
  /** Warnings for the user: the store could not keep the engine, … */
  warnings: z.array(z.string()),
});
export interface ObtainedEngine extends z.infer<typeof obtainedEngineSchema> {}

/** A profile that `--profile-from` made. */
export const profileOriginSchema = z.object({
  from: z.string(),
  /** null where the file states the profile. */
  samples: z.int().nullable(),
  /** As --profile takes it; empty where no dimension is dynamic. */
  profile: z.string(),
});
export type ProfileOrigin = z.infer<typeof profileOriginSchema>;

/** The result of `trtforge build`. */
export const buildResultSchema = z.object({
  schema: z.literal('trtforge.build/1'),
  /** Path of the plan. */
  engine: z.string(),
  /** Path of its passport. */
  passport: z.string(),
  /** Why it has no known answer to prove itself by; null where it has one. */
  unanswered: z.string().nullable(),
  /** Why it does not give its known answer here: the exit code is 1 then, and what was built is in no store. null: it does, or was not run. */
  wrongAnswer: z.string().nullable(),
  identity: z.string(),
  source: z.enum(['built', 'local', 'remote']),
  /** `exact`, or the rule by which an engine of another identity serves: `version-compatible`, `hardware-compatible`, `several-gpus`, … */
  rule: z.string(),
  /** Identity of the engine whose weights were replaced; null for an engine that was built. */
  refittedFrom: z.string().nullable(),
  /** The library's time to build the plan, now or when it was built. */
  buildMs: z.number().nonnegative(),
  /** Size of the plan. */
  bytes: z.int().positive(),
  /** Layers of the network as the library parsed it, before it fuses them; null where the builder did not state it (trtexec). */
  layers: z.int().nonnegative().nullable(),
  sha256: z.string(),
  name: z.string(),
  /** The readable name in the store; null without one. */
  readablePath: z.string().nullable(),
  target: z.string(),
  /** `tensorrt-rtx 1.7.1.116` */
  library: z.string(),
  precision: z.string(),
  profiles: z.int().nonnegative(),
  /** Their sizes that ran on ONNX Runtime before the build; null for engines without profiles, or from before this was kept. */
  sizes: passportSchema.shape.built.shape.sizes.unwrap().nullable(),
  /** The types that a quantized model's layers compute in; null for other models, and where the plan does not state them. */
  precisions: layerPrecisionsSchema.nullable(),
  /** Why earlier sources did not serve. */
  why: z.array(missSchema),
  /** Of this run, in milliseconds. */
  timings: timingsSchema,
  warnings: z.array(z.string()),
});

/** The result of `trtforge engine refit`. */
export const refitResultSchema = buildResultSchema
  .pick({
    engine: true,
    passport: true,
    unanswered: true,
    identity: true,
    bytes: true,
    sha256: true,
    name: true,
  })
  .extend({
    schema: z.literal('trtforge.engine-refit/1'),
    ...buildResultSchema.pick({ target: true, library: true, precision: true }).shape,
    /** Identity of the engine whose weights were replaced. */
    refittedFrom: z.string(),
    /** Loading that engine, replacing its weights and writing the new one. */
    refitMs: z.number().nonnegative(),
    /** Of this run as a whole, but for writing the passport: conversion and known answer too. */
    ms: z.number().nonnegative(),
    warnings: z.array(z.string()),
  });

type BuildResult = z.infer<typeof buildResultSchema>;

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
