import { z } from 'zod';
import { exportFormats } from './exports.js';

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
