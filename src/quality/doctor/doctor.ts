import { z } from 'zod';
import { ExitCode } from '../../errors.js';
import { collectFacts, type DoctorFacts, type DoctorProbes } from './doctor-facts.js';
import { type Finding, findingSchema } from './finding.js';
import { judgeGpu } from './judge-gpu.js';
import { judgeMachine, judgeRemote, judgeStore } from './judge-machine.js';
import { judgeToolchains } from './judge-toolchains.js';
import { judgeVersions } from './judge-versions.js';
import { judgeOnnxRuntime, onnxRuntimeSchema } from './onnxruntime.js';
import { supportRowSchema, supportTable } from './support.js';
import { listedToolchainSchema } from './toolchain-list.js';

export const doctorSchema = z.object({
  schema: z.literal('trtforge.doctor/1'),
  exitCode: z.union([z.literal(ExitCode.pass), z.literal(ExitCode.machineCannot)]),
  findings: z.array(findingSchema),
  gpus: z.array(
    z.object({
      index: z.number(),
      name: z.string(),
      uuid: z.string(),
      computeCapability: z.number(),
      memoryBytes: z.number(),
      multiprocessors: z.number(),
    }),
  ),
  driverVersion: z.string().nullable(),
  cudaVersion: z.string().nullable(),
  toolchains: z.array(listedToolchainSchema),
  trtexecs: z.array(z.object({ path: z.string(), version: z.string().nullable() })),
  /** Builds of ONNX Runtime, in the order in which sessions look for them. */
  onnxRuntime: z.array(onnxRuntimeSchema),
  store: z
    .object({
      folder: z.string(),
      exists: z.boolean(),
      isWritable: z.boolean(),
      engines: z.number(),
      bytes: z.number(),
      freeBytes: z.number(),
      /** Absent in results of versions before. */
      unchecked: z.array(z.string()).optional(),
      /** Engines without a known answer, and the line that records one of their model. Absent as well. */
      unanswered: z
        .array(z.object({ name: z.string(), identity: z.string(), record: z.string() }))
        .optional(),
    })
    .nullable(),
  /** The remote store that the environment names, and why it cannot be used; null where it names none. */
  remote: z
    .object({ place: z.string(), failure: z.string().nullable(), remedy: z.string().nullable() })
    .nullable(),
  /** Where each GPU architecture stands with TensorRT. */
  support: z.array(supportRowSchema),
});
export type DoctorResult = z.infer<typeof doctorSchema>;

/** A trtexec of a full TensorRT on a cold disk needs most of it. */
const PROBE_TIMEOUT_MS = 30_000;

/** Looks at the machine through the probes and states what is there, what is missing and what to do. Rejects only when cancelled. */
export async function examine(
  probes: DoctorProbes,
  signal: AbortSignal,
  timeoutMs: number = PROBE_TIMEOUT_MS,
): Promise<DoctorResult> {
  const facts = await collectFacts(probes, timeoutMs, signal);
  const findings = judge(facts);
  const gpus = facts.gpus?.gpus ?? [];
  const { unchecked = [], unanswered = [] } = facts.store ?? {};
  const isUnusable = findings.some(({ severity }) => severity === 'problem');
  return {
    schema: 'trtforge.doctor/1',
    exitCode: isUnusable ? ExitCode.machineCannot : ExitCode.pass,
    findings: [...findings],
    gpus: gpus.map((gpu) => ({ ...gpu })),
    driverVersion: facts.gpus?.driverVersion ?? null,
    cudaVersion: facts.gpus?.cudaVersion ?? null,
    toolchains: facts.toolchains?.toolchains ?? [],
    trtexecs: (facts.trtexecs ?? []).map((each) => ({ ...each })),
    onnxRuntime: [...(facts.onnxRuntime ?? [])],
    store:
      facts.store === undefined
        ? null
        : { ...facts.store, unchecked: [...unchecked], unanswered: [...unanswered] },
    remote: facts.remote == null ? null : { ...facts.remote },
    support: [...supportTable(gpus.map(({ computeCapability }) => computeCapability))],
  };
}

/** Every finding that follows from the facts. */
export function judge(facts: DoctorFacts): readonly Finding[] {
  return [
    ...judgeMachine(facts),
    ...judgeGpu(facts),
    ...judgeToolchains(facts),
    ...judgeVersions(facts),
    ...judgeOnnxRuntime(facts.onnxRuntime),
    ...judgeStore(facts.store),
    ...judgeRemote(facts.remote),
    ...facts.failures,
  ];
}
