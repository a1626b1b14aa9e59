import { z } from 'zod';
import type { Toolchain } from '../../tensorrt/toolchain/toolchain.js';
import type { Recipe } from '../identity/recipe.js';

/** Everything a build needs, resolved. `planPath` is a pending file the caller publishes once it has checked it. */
export interface BuildRequest {
  readonly toolchain: Toolchain;
  readonly modelPath: string;
  /** The model that was given, where `modelPath` is a converted copy of it: what messages name. */
  readonly givenModel?: string;
  readonly planPath: string;
  readonly recipe: Recipe;
  /** tensorrt-rtx: the capabilities to build for, 89 for 8.9, several at once; empty means the library's default. Must be empty for TensorRT. */
  readonly computeCapabilities: readonly number[];
  /** Read when it exists, and replaced atomically after the build; one file per key the caller chooses. */
  readonly timingCachePath: string | null;
  readonly pluginPaths: readonly string[];
}

const tensorSchema = z.object({
  name: z.string(),
  dtype: z.string(),
  /** null where the network leaves the dimension open; null as a whole where nobody says the rank. */
  shape: z.array(z.int().nonnegative().nullable()).nullable(),
});

export const buildOutcomeSchema = z.object({
  schema: z.literal('trtforge.build-outcome/1'),
  /** Absent: the library itself, through the addon. */
  builder: z.literal('trtexec').optional(),
  /** From the first call on the library to the plan's last byte on disk; for trtexec its whole run. */
  buildMs: z.number().nonnegative(),
  /** Size of the plan. */
  bytes: z.int().positive(),
  libraryVersion: z.string(),
  /** Layers of the network as parsed; null from trtexec, which does not say. */
  layers: z.int().nonnegative().nullable(),
  timingCache: z.enum(['none', 'new', 'hit', 'rejected']),
  /** Most memory the building process held at once (resident, host). */
  peakMemoryBytes: z.int().nonnegative().nullable(),
  warnings: z.array(z.string()),
  inputs: z.array(tensorSchema),
  outputs: z.array(tensorSchema),
});

export type BuildOutcome = z.infer<typeof buildOutcomeSchema>;

/** What `buildPlan` sends its child. */
export interface BuildChildRequest {
  readonly build: BuildRequest;
  readonly verbose: boolean;
}
