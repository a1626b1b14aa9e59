import { accessSync, constants, existsSync, readdirSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { arch, availableParallelism, freemem, platform, release, totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { addonPath } from '../../addon/addon.js';
import { statIfThere } from '../../base/files/files.js';
import type { OptionsOf } from '../../base/options/option.js';
import {
  openLocalStore,
  openRemoteStore,
  storeFolder,
  type storeOptions,
} from '../../engines/store/open-stores.js';
import { unusedEndpoint } from '../../engines/store/remote/address.js';
import { ExitCode, TrtforgeError } from '../../errors.js';
import { pythonEnvironment, pythonOf } from '../../tensorrt/toolchain/download-wheel.js';
import { debianPackages, pythonPackages } from '../../tensorrt/toolchain/installed-packages.js';
import type { Host } from '../../tensorrt/toolchain/places.js';
import { programPlaces, trtexecVersion } from '../../tensorrt/toolchain/trtexec.js';
import {
  collectFacts,
  type DoctorFacts,
  type DoctorProbes,
  type MachineFacts,
  type RemoteFacts,
  type StoreFacts,
  type ToolFacts,
} from './doctor-facts.js';
import { type Finding, findingSchema } from './finding.js';
import { driverInChild, lookForGpus } from './gpu.js';
import { judgeGpu } from './judge-gpu.js';
import { judgeMachine, judgeRemote, judgeStore } from './judge-machine.js';
import { judgeToolchains, judgeVersions } from './judge-versions.js';
import { judgeOnnxRuntime, lookForOnnxRuntimes, onnxRuntimeSchema } from './onnxruntime.js';
import { supportRowSchema, supportTable } from './support.js';
import { listedToolchainSchema, listToolchains } from './toolchain-list.js';

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

/** Of `g++ --version` and its like. */
const COMMAND_TIMEOUT_MS = 10_000;

/** The probes that look at the real machine, and at these stores in place of those of the environment. */
export function machineProbes(
  host: Host,
  { store, remote }: OptionsOf<typeof storeOptions> = {},
): DoctorProbes {
  const { run, environment } = host;
  return {
    machine: async () => lookAtMachine(host),
    tools: () => lookAtTools(host),
    gpus: () => lookForGpus(host, driverInChild),
    toolchains: ({ gpus }) => listToolchains(host, gpus),
    trtexecs: () =>
      Promise.all(
        programPlaces('trtexec', host).map(async (path) => ({
          path,
          version: await trtexecVersion(path, run, environment),
        })),
      ),
    debianPackages: () => debianPackages(run),
    pythonPackages: async () => pythonPackages(host),
    onnxRuntime: () => lookForOnnxRuntimes(host),
    store: async (gpus) => {
      const facts = lookAtStore(storeFolder(store || undefined, environment));
      const { unprovenEngines } = await import('../known-answer/check-store.js');
      const own = openLocalStore(facts.folder, environment);
      return { ...facts, ...(await unprovenEngines(own, environment, gpus)) };
    },
    remote: (signal) => lookAtRemote(environment, signal, remote),
  };
}

function lookAtMachine({ root }: Host): MachineFacts {
  return {
    os: `${platform()} ${release()} ${arch()}`,
    platform: platform(),
    architecture: arch(),
    node: process.versions.node,
    processors: availableParallelism(),
    memoryBytes: totalmem(),
    memoryAvailableBytes: availableMemory(root) ?? freemem(),
    isContainer: ['/.dockerenv', '/run/.containerenv'].some((path) => existsSync(root + path)),
  };
}

/** Memory that Linux can allocate without swapping; `freemem` counts the file cache as used. */
function availableMemory(root: string): number | undefined {
  try {
    const kibibytes = /^MemAvailable:\s+(\d+) kB$/m.exec(readFileSync(`${root}/proc/meminfo`, 'utf8'))?.[1];
    return kibibytes === undefined ? undefined : Number(kibibytes) * 1024;
  } catch {
    return undefined;
  }
}

async function lookAtTools({ run, environment }: Host): Promise<ToolFacts> {
  const firstLine = async (command: string, args: readonly string[], env = environment) => {
    const { exitCode, stdout } = await run(command, args, {
      timeoutMs: COMMAND_TIMEOUT_MS,
      environment: env,
    });
    return exitCode === 0 ? (stdout.split('\n')[0] ?? '').trim() : null;
  };
  const [compiler, pip] = await Promise.all([
    firstLine(environment.CXX || 'g++', ['--version']),
    firstLine(pythonOf(environment), ['-m', 'pip', '--version'], pythonEnvironment(environment)),
  ]);
  return { addon: { path: addonPath, isBuilt: existsSync(addonPath) }, compiler, pip };
}

/** The store as it lies on the disk: what it contains, whether it may be written, how much space is left. */
export function lookAtStore(folder: string): Omit<StoreFacts, 'unchecked' | 'unanswered'> {
  const nearest = nearestExisting(folder);
  const { bavail, bsize } = statfsSync(nearest);
  const stored = measured(folder);
  return {
    folder,
    exists: nearest === folder,
    isWritable: isWritable(nearest),
    engines: stored.plans,
    bytes: stored.bytes,
    freeBytes: bavail * bsize,
  };
}

/** An identity that no engine has. */
const NO_IDENTITY = '0'.repeat(64);

/** The remote store of an address, or of the environment, and whether it answers a request for an engine. */
export async function lookAtRemote(
  environment: NodeJS.ProcessEnv,
  signal: AbortSignal,
  address?: string | false,
): Promise<RemoteFacts | null> {
  const unused = address === undefined ? unusedEndpoint(environment) : null;
  if (unused !== null) return { place: environment.ARTIFACTS_ENDPOINT ?? '', failure: unused, remedy: null };
  let place = address || (environment.ARTIFACTS_BUCKET ?? '');
  try {
    const store = await openRemoteStore(address, environment);
    if (store === null) return null;
    place = store.place;
    await store.get(NO_IDENTITY, signal).finally(() => store.close());
    return { place, failure: null, remedy: null };
  } catch (error) {
    if (!(error instanceof TrtforgeError)) throw error;
    return { place, failure: error.message, remedy: error.remedy ?? null };
  }
}

function nearestExisting(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : nearestExisting(dirname(folder));
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK | constants.X_OK);
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

function measured(folder: string): { readonly plans: number; readonly bytes: number } {
  let plans = 0;
  let bytes = 0;
  for (const item of listed(folder)) {
    const path = join(folder, item.name);
    if (item.isDirectory()) {
      const inner = measured(path);
      plans += inner.plans;
      bytes += inner.bytes;
    } else if (item.isFile()) {
      // Links are other names of the same plans.
      plans += item.name.endsWith('.plan') ? 1 : 0;
      bytes += statIfThere(path)?.size ?? 0;
    }
  }
  return { plans, bytes };
}

function listed(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}
