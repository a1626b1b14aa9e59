import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GpuList } from '../../addon/addon.js';
import { runSupervised } from '../../base/process/supervise.js';
import { type ErrorCode, TrtforgeError } from '../../errors.js';
import type { Host } from '../../tensorrt/toolchain/places.js';

/** Known facts of the GPUs and their driver, and the source of these. */
export interface GpuView extends GpuList {
  readonly source: 'driver' | 'nvidia-smi' | 'none';
  /** The code of the error that kept the driver from being asked; null when it answered, be it with no GPU. */
  readonly failure: ErrorCode | null;
}

/** Asks the CUDA driver (in a child: a broken driver can hang or kill who asks). */
export type DriverProbe = () => Promise<GpuList>;

const DRIVER_TIMEOUT_MS = 20_000;
const SMI_TIMEOUT_MS = 10_000;

export const driverInChild: DriverProbe = async () => {
  const module = new URL('../../../dist/quality/doctor/gpu-child.js', import.meta.url);
  const signal = AbortSignal.timeout(DRIVER_TIMEOUT_MS);
  const answer = await runSupervised(module, null, {
    emit: () => {},
    signal,
    graceMs: 500,
    doing: 'asking the CUDA driver for its GPUs',
  });
  return answer as GpuList;
};

/** GPUs by the CUDA driver; where that does not answer, by nvidia-smi. Never throws. */
export async function lookForGpus(host: Host, askDriver: DriverProbe): Promise<GpuView> {
  const { list, failure } = await askDriver().then(
    (answer) => ({ list: answer, failure: null }),
    (error: unknown) => ({ list: noGpus(error), failure: codeOf(error) }),
  );
  const driverVersion = list.driverVersion ?? kernelDriverVersion(host.root);
  if (list.gpus.length > 0) return { ...list, driverVersion, source: 'driver', failure };
  const listed = await askSmi(host);
  if (listed !== null) return { ...listed, reason: list.reason, source: 'nvidia-smi', failure };
  return { ...list, driverVersion, source: 'none', failure };
}

const codeOf = (error: unknown): ErrorCode => (error instanceof TrtforgeError ? error.code : 'TF_INTERNAL');

const noGpus = (error: unknown): GpuList => ({
  gpus: [],
  cudaVersion: null,
  driverVersion: null,
  reason: error instanceof Error ? error.message : String(error),
});

/** `/proc/driver/nvidia/version` names the loaded kernel module: `NVRM version: NVIDIA UNIX … 580.65.06 …`. */
function kernelDriverVersion(root: string): string | null {
  const path = join(root, '/proc/driver/nvidia/version');
  if (!existsSync(path)) return null;
  try {
    return /Kernel Module.*?\s(\d+\.\d+(?:\.\d+)?)\s/.exec(readFileSync(path, 'utf8'))?.[1] ?? null;
  } catch {
    return null;
  }
}

const SMI_FIELDS = 'index,name,uuid,compute_cap,memory.total,driver_version';

async function askSmi({ run, environment }: Host): Promise<Omit<GpuList, 'reason'> | null> {
  const args = [`--query-gpu=${SMI_FIELDS}`, '--format=csv,noheader,nounits'];
  const { exitCode, stdout } = await run('nvidia-smi', args, { timeoutMs: SMI_TIMEOUT_MS, environment });
  if (exitCode !== 0) return null;
  const rows = stdout.split('\n').map((line) => line.split(',').map((cell) => cell.trim()));
  const gpus = rows.flatMap(([index, name, uuid, capability, mebibytes]) => {
    if (index === undefined || name === undefined || uuid === undefined) return [];
    const computeCapability = Math.round(Number(capability) * 10);
    if (!(computeCapability > 0)) return [];
    const memoryBytes = (Number(mebibytes) || 0) * 2 ** 20;
    return [{ index: Number(index), name, uuid, computeCapability, memoryBytes, multiprocessors: 0 }];
  });
  if (gpus.length === 0) return null;
  return { gpus, cudaVersion: null, driverVersion: rows[0]?.[5] ?? null };
}
