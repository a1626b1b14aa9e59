import { statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { readJson } from '../../base/files/files.js';
import { exportFormats } from './exports.js';
import { MANIFEST_NAME } from './places.js';

/** The result of `trtforge toolchain install`. */
export const toolchainInstallSchema = z.object({
  schema: z.literal('trtforge.toolchain-install/1'),
  name: z.string(),
  folder: z.string(),
  version: z.string(),
  /** False when this version stood there already. */
  installed: z.boolean(),
  wheel: z.object({
    file: z.string(),
    sha256: z.string(),
    bytes: z.number(),
    checkedBy: z.enum(['pinned', 'record']),
  }),
  license: z.object({ owner: z.string(), name: z.string(), url: z.string(), path: z.string().nullable() }),
});
export type ToolchainInstallResult = z.infer<typeof toolchainInstallSchema>;

/** The result of `trtforge toolchain remove`. */
export const toolchainRemoveSchema = z.object({
  schema: z.literal('trtforge.toolchain-remove/1'),
  name: z.string(),
  folder: z.string(),
});
export type ToolchainRemoveResult = z.infer<typeof toolchainRemoveSchema>;

/** The result of `trtforge toolchain env`. */
export const toolchainEnvSchema = z.object({
  schema: z.literal('trtforge.toolchain-env/1'),
  name: z.string(),
  format: z.enum(exportFormats),
  /** Folders by variable; LD_LIBRARY_PATH and PATH are to be prepended to. */
  variables: z.record(z.string(), z.string()),
  /** Python bindings of this very version, as pip and Pixi name them: `tensorrt==10.6.0.*`. */
  python: z.string(),
  /** The lines to paste. */
  text: z.string(),
});
export type ToolchainEnvResult = z.infer<typeof toolchainEnvSchema>;

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
