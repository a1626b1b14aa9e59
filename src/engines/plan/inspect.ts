import { existsSync } from 'node:fs';
import { z } from 'zod';
import { TrtforgeError } from '../../errors.js';
import type { WorkContext } from '../../events.js';
import { findingSchema } from '../../formats/onnx/model-facts.js';
import type { Flavour } from '../../tensorrt/toolchain/toolchain.js';
import { passportPath } from '../identity/engine-name.js';
import { type Passport, passportSchema, planContentsSchema, readPassport } from '../identity/passport.js';
import { type Platform, platformFaults, thisPlatform } from '../identity/target.js';
import { changedModel, wrappersOf } from './context-model.js';
import { foreignName, type PlanHeader, planDigest, readPlanHeader } from './header.js';
import { loadsIn, platformOfEngine } from './loads.js';
import { contentsOf, multiplications, type PlanProgram, readPlanProgram } from './program.js';

/** The known facts of a plan file, from its bytes and the files beside it; nothing is loaded. */
export const planFactsSchema = z.strictObject({
  kind: z.literal('plan'),
  file: z.string(),
  product: z.enum(['tensorrt', 'tensorrt-rtx']),
  /** `major.minor.patch.build` of the library that built it, the build number modulo 256; null before TensorRT 8.6. */
  version: z.string().nullable(),
  fileBytes: z.int().nonnegative(),
  /** Without a foreign header. */
  planBytes: z.int().nonnegative(),
  /** SHA-256 of the plan without a foreign header. */
  sha256: z.string(),
  /** The header that an exporter put in front of the plan, with its content; `onnxruntime`: an ONNX file around it. */
  foreignHeader: z
    .strictObject({
      kind: z.enum(['ultralytics', 'json', 'onnxruntime']),
      bytes: z.int().positive(),
      content: z.record(z.string(), z.unknown()),
    })
    .nullable(),
  /** The plan's program, where the plan contains it as text (TensorRT-RTX). */
  program: z
    .strictObject({
      /** Equal for plans that compute by the same kernels; the values of weights are not in it. */
      digest: z.string(),
      /** `sm_89` */
      architectures: z.array(z.string()),
      /** Of all optimization profiles. */
      kernels: z.int().nonnegative(),
      /** `convolution`, `matrix product`, `attention`, …, and how many multiply which type. */
      operators: z.array(z.strictObject({ operator: z.string(), types: z.record(z.string(), z.int()) })),
    })
    .nullable(),
  /** What its bytes are; null where the plan does not state it: plans of TensorRT. */
  contents: planContentsSchema.nullable(),
  /** The passport beside the plan, as it stands there; null when there is none that can be read. */
  passport: z.strictObject({ path: z.string(), content: passportSchema }).nullable(),
  /** For each TensorRT of the plan's product on this machine, whether it can load the plan. */
  toolchains: z.array(
    z.strictObject({
      name: z.string(),
      loads: z.enum(['yes', 'if-allowed', 'if-version-compatible', 'unproven', 'no']),
      why: z.string(),
    }),
  ),
  findings: z.array(findingSchema),
});
export type PlanFacts = z.infer<typeof planFactsSchema>;

/** The output of `engine inspect`. */
export const enginesInspectedSchema = z.strictObject({
  schema: z.literal('trtforge.engine-inspect/2'),
  /** In the order of the command line. */
  engines: z.array(planFactsSchema),
  /** With `--memory`: what each engine needs on this GPU for the activations of one context, its largest profile. */
  memory: z
    .strictObject({
      gpu: z.string(),
      activationBytes: z.array(z.int().nonnegative()),
      /** With memory of its own for each. */
      separateBytes: z.int().nonnegative(),
      /** With one activation pool. */
      sharedBytes: z.int().nonnegative(),
    })
    .optional(),
  /** 1 where a finding of an engine is an error: its passport is of another plan, or cannot be read. */
  exitCode: z.literal([0, 1]),
});
export type EnginesInspected = z.infer<typeof enginesInspectedSchema>;

/** The result of `engine strip-header`: the plan without the header that an exporter put in front of it. */
export const strippedPlanSchema = z.strictObject({
  schema: z.literal('trtforge.engine-strip-header/1'),
  file: z.string(),
  path: z.string(),
  bytes: z.int().nonnegative(),
});
export type StrippedPlan = z.infer<typeof strippedPlanSchema>;

/** The files and toolchains around a plan, read by the caller. */
export interface PlanEnvironment {
  readonly passport: {
    readonly path: string;
    /** The passport, null when there is none; may throw when it cannot be trusted. */
    read(): Passport | null;
  };
  /** Of this process's platform, where they state none. */
  readonly toolchains: readonly ({
    readonly name: string;
    readonly product: string;
    readonly version: string;
    readonly flavour?: Flavour;
  } & Partial<Platform>)[];
}

/** Everything that is known of a plan file without loading it. Throws TF_PLAN_INVALID. */
export function inspectPlan(path: string, environment: PlanEnvironment): PlanFacts {
  const header = readPlanHeader(path);
  const program = readPlanProgram(header);
  const sha256 = planDigest(header);
  const findings = headerFindings(header);
  const passport = passportFacts(header, sha256, environment.passport, findings);
  const document =
    passport !== null && isOf(passport.content, header, sha256)
      ? passport.content.identity.document
      : undefined;
  const plan = { ...header, ...(document && platformOfEngine(document)) };
  const doubts = document === undefined ? [] : platformFaults(document.target, platformOfEngine(document));
  for (const { message, remedy } of doubts)
    findings.push({
      code: 'target-platform',
      severity: 'warning',
      message: `${message} ${remedy}`,
      where: path,
    });
  return {
    kind: 'plan',
    file: path,
    product: header.product,
    version: header.version,
    fileBytes: header.fileBytes,
    planBytes: header.planBytes,
    sha256,
    foreignHeader:
      header.foreignHeader === null
        ? null
        : { ...header.foreignHeader, content: { ...header.foreignHeader.content } },
    program: programFacts(program),
    contents: contentsOf(header, program),
    passport,
    toolchains: environment.toolchains
      .filter(({ product }) => product === header.product)
      .map((toolchain) => ({
        name: toolchain.name,
        ...loadsIn(plan, { ...thisPlatform, ...toolchain }, document?.recipe.flags),
      })),
    findings,
  };
}

/** The same of an engine file, or the ONNX file around one, with the passport and the models beside it. Throws TF_PLAN_INVALID, TF_CANCELLED. */
export async function inspectEngine(
  file: string,
  toolchains: PlanEnvironment['toolchains'],
  context: WorkContext,
): Promise<PlanFacts> {
  const { path } = readPlanHeader(file);
  const passport = passportPath(path);
  const read = () => (existsSync(passport) ? readPassport(path) : null);
  const facts = inspectPlan(path, { passport: { path: passport, read }, toolchains });
  const warn = (code: string, message: string) =>
    facts.findings.push({ code, severity: 'warning', message, where: file });
  const isOwn = facts.passport !== null && facts.findings.every(({ severity }) => severity !== 'error');
  const changed = isOwn ? await changedModel(file, facts.passport!.content, context) : null;
  if (changed !== null) warn('model-changed', `${changed} Build it again, unless that is meant.`);
  const wrappers = wrappersOf(path);
  if (wrappers.length > 1)
    warn(
      'plan-shared',
      `${wrappers.join(' and ')} name this one plan: models whose caches share a folder run the engine of one of them. Give each model a folder.`,
    );
  return facts;
}

function programFacts(program: PlanProgram | null): PlanFacts['program'] {
  if (program === null) return null;
  const kernels = program.graphs.flatMap((graph) => graph.kernels);
  const operators = new Map<string, Record<string, number>>();
  for (const { operator, type } of kernels.flatMap(multiplications)) {
    const types = operators.get(operator) ?? {};
    types[type] = (types[type] ?? 0) + 1;
    operators.set(operator, types);
  }
  return {
    digest: program.digest,
    architectures: [...new Set(program.graphs.flatMap(({ architectures }) => architectures))],
    kernels: kernels.length,
    operators: [...operators].map(([operator, types]) => ({ operator, types })),
  };
}

const isOf = ({ plan }: Passport, header: PlanHeader, sha256: string): boolean =>
  plan.sha256 === sha256 && plan.bytes === header.planBytes;

function headerFindings(header: PlanHeader): PlanFacts['findings'] {
  const findings: PlanFacts['findings'] = [];
  const { foreignHeader, announcedBytes, planBytes, path } = header;
  if (foreignHeader !== null) {
    findings.push({
      code: 'plan-foreign-header',
      severity: 'warning',
      message: `${foreignHeader.bytes} bytes of ${foreignName(foreignHeader)} stand before the plan; trtexec and TensorRT's own runtimes reject the file with a "magic tag" error. \`trtforge engine strip-header\` writes the plan alone.`,
      where: path,
    });
  }
  if (announcedBytes !== null && announcedBytes < planBytes) {
    findings.push({
      code: 'plan-trailing-bytes',
      severity: 'warning',
      message: `The plan's header announces ${announcedBytes} bytes; ${planBytes - announcedBytes} more follow.`,
      where: path,
    });
  }
  return findings;
}

function passportFacts(
  header: PlanHeader,
  sha256: string,
  { path, read }: PlanEnvironment['passport'],
  findings: PlanFacts['findings'],
): { readonly path: string; readonly content: Passport } | null {
  try {
    const passport = read();
    if (passport === null) {
      const message =
        'There is no passport: model, recipe, profiles and known answer of this engine are not known. Build it with `trtforge build`, or copy its passport beside it.';
      findings.push({ code: 'passport-missing', severity: 'info', message, where: path });
      return null;
    }
    if (!isOf(passport, header, sha256)) {
      const message = 'The passport is of another plan: its digest or size is not that of this file.';
      findings.push({ code: 'passport-mismatch', severity: 'error', message, where: path });
    }
    return { path, content: passport };
  } catch (error) {
    if (!(error instanceof TrtforgeError)) throw error;
    findings.push({ code: 'passport-invalid', severity: 'error', message: error.message, where: path });
    return null;
  }
}
