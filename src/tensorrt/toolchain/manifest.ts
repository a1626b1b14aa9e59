import { statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { readJson } from '../../base/files/files.js';
import { MANIFEST_NAME } from './places.js';

/** The content of `toolchain.json` in an installed toolchain's folder: its origin. Paths are relative to the folder. */
export const toolchainManifestSchema = z.object({
  schema: z.literal('trtforge.toolchain/1'),
  product: z.literal('tensorrt-rtx'),
  version: z.string(),
  wheel: z.object({
    file: z.string(),
    sha256: z.string(),
    bytes: z.number(),
    /** `pinned`: the whole file has the digest trtforge knows; `record`: every member has the digest the wheel itself lists. */
    checkedBy: z.enum(['pinned', 'record']),
  }),
  /** Path of the licence text in the folder; null where the wheel has none. */
  license: z.string().nullable(),
  files: z.array(z.object({ path: z.string(), bytes: z.number() })),
  installedAt: z.string(),
});

export type ToolchainManifest = z.infer<typeof toolchainManifestSchema>;

/** The manifest of a finished installation, or undefined where the folder is not one (or lost a file). */
export function readManifest(folder: string): ToolchainManifest | undefined {
  const path = join(folder, MANIFEST_NAME);
  const parsed = toolchainManifestSchema.safeParse(readJson(path));
  const isWhole = parsed.data?.files.every((file) => hasSize(join(folder, file.path), file.bytes)) === true;
  return isWhole ? parsed.data : undefined;
}

function hasSize(path: string, bytes: number): boolean {
  try {
    return statSync(path).size === bytes;
  } catch {
    return false;
  }
}
