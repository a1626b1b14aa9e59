import { dirname, join } from 'node:path';
import { z } from 'zod';
import type { Gpu } from '../../addon/addon.js';
import { type FoundToolchain, surveyToolchains } from '../../tensorrt/toolchain/find.js';
import { readManifest } from '../../tensorrt/toolchain/manifest.js';
import type { Host } from '../../tensorrt/toolchain/places.js';
import { trtexecVersion } from '../../tensorrt/toolchain/trtexec.js';
import { onnxRuntimeSchema } from './onnxruntime.js';
import { abilitiesOf } from './support.js';

const abilitySchema = z.object({ can: z.boolean(), why: z.string().nullable() });

export const listedToolchainSchema = z.object({
  name: z.string(),
  product: z.enum(['tensorrt', 'tensorrt-rtx']),
  version: z.string(),
  flavour: z.enum(['full', 'lean', 'dispatch']),
  folder: z.string(),
  libraries: z.object({
    inference: z.string(),
    parser: z.string().nullable(),
    plugins: z.string().nullable(),
  }),
  parserVersion: z.string().nullable(),
  trtexec: z.string().nullable(),
  trtexecVersion: z.string().nullable(),
  foundBy: z.string(),
  alsoFoundBy: z.array(z.string()),
  cudaMajor: z.number().nullable(),
  builderResources: z.array(z.string()),
  /** Path of the licence text, where trtforge installed it. */
  license: z.string().nullable(),
  /** Its abilities on this machine, and the reasons against. */
  build: abilitySchema,
  run: abilitySchema,
});
export type ListedToolchain = z.infer<typeof listedToolchainSchema>;

export const toolchainListSchema = z.object({
  schema: z.literal('trtforge.toolchain-list/1'),
  toolchains: z.array(listedToolchainSchema),
  /** Files with the name of a TensorRT library that are not one for this machine. */
  damaged: z.array(z.object({ path: z.string(), why: z.string() })),
  /** Builds of ONNX Runtime, in the order in which sessions look for them; absent where nobody asked. */
  onnxRuntimes: z.array(onnxRuntimeSchema).optional(),
});
export type ToolchainList = z.infer<typeof toolchainListSchema>;

/** Every toolchain with what it can do beside these GPUs. Starts each trtexec once, to ask its version. */
export async function listToolchains(
  host: Host,
  gpus: readonly Pick<Gpu, 'name' | 'computeCapability'>[],
): Promise<ToolchainList> {
  const { toolchains, damaged } = await surveyToolchains(host);
  const listed = toolchains.map((toolchain) => listedToolchain(toolchain, gpus, host));
  return {
    schema: 'trtforge.toolchain-list/1',
    toolchains: await Promise.all(listed),
    damaged: damaged.map(({ path, why }) => ({ path, why })),
  };
}

async function listedToolchain(
  toolchain: FoundToolchain,
  gpus: readonly Pick<Gpu, 'name' | 'computeCapability'>[],
  { run, environment }: Host,
): Promise<ListedToolchain> {
  const { trtexec, folder } = toolchain;
  const own = readManifest(dirname(folder));
  return {
    ...toolchain,
    libraries: { ...toolchain.libraries },
    alsoFoundBy: [...toolchain.alsoFoundBy],
    builderResources: [...toolchain.builderResources],
    trtexecVersion: trtexec === null ? null : await trtexecVersion(trtexec, run, environment, folder),
    license: own?.license ? join(dirname(folder), own.license) : null,
    ...abilitiesOf(toolchain, gpus),
  };
}
