import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('trtexec.mjs', import.meta.url));

export const recordedLogs = fileURLToPath(new URL('../fixtures/trtexec-logs/', import.meta.url));
export const recordedRuns = fileURLToPath(new URL('../fixtures/trtexec-runs/', import.meta.url));

export type FakeVersion = '8.6' | '10.6' | '11.1';

/** The versions that fakes say they are, as a toolchain has them. */
export const fakeVersions = { '8.6': '8.6.1.6', '10.6': '10.6.0.26', '11.1': '11.1.0.106' } as const;

/** Writes a trtexec that replays recorded runs of a version, with a fault; gives its path. */
export function fakeTrtexec(
  folder: string,
  config: {
    readonly version: FakeVersion;
    /** Another version of that dialect in its banner and plans: `10.3.0.26`. */
    readonly says?: string;
    readonly fault?: string;
    readonly planBytes?: number;
    readonly pidFile?: string;
    /** Takes a line for each run: CUDA_VISIBLE_DEVICES and what --device says. */
    readonly gpuFile?: string;
    /** Bytes of weights that the engine can stream. */
    readonly streamable?: number;
    /** Images a second are the same at every batch. */
    readonly isSaturated?: boolean;
  },
): string {
  const name = `trtexec-${config.version}-${config.fault ?? 'sound'}`;
  const settings = join(folder, `${name}.json`);
  writeFileSync(settings, JSON.stringify(config));
  const path = join(folder, name);
  writeFileSync(path, `#!/bin/sh\nexec '${process.execPath}' '${program}' '${settings}' "$@"\n`);
  chmodSync(path, 0o755);
  return path;
}
