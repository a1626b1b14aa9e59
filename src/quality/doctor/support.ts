import { z } from 'zod';
import type { Generation, Gpu } from '../../addon/addon.js';
import { behaviour, gpuArchitectures, holds, serves } from '../../behaviour/facts.js';
import { isInLine } from '../../behaviour/versions.js';
import { type FoundToolchain, unableToBuild, unknownVersion } from '../../tensorrt/toolchain/find.js';

/** Whether a toolchain can do something here; `why` is null when it can. */
interface Ability {
  readonly can: boolean;
  readonly why: string | null;
}

export interface Abilities {
  readonly build: Ability;
  readonly run: Ability;
}

const able: Ability = { can: true, why: null };
const unable = (why: string): Ability => ({ can: false, why });

/** The abilities of a toolchain with the GPUs at hand. Building with tensorrt-rtx needs no GPU; everything else does. */
export function abilitiesOf(
  toolchain: FoundToolchain,
  gpus: readonly Pick<Gpu, 'name' | 'computeCapability'>[],
): Abilities {
  const strange = unknownVersion(toolchain);
  if (strange !== null) return { build: unable(strange), run: unable(strange) };
  const run = runAbility(toolchain, gpus);
  const noBuilder = unableToBuild(toolchain);
  if (noBuilder !== null) return { build: unable(noBuilder), run };
  if (toolchain.product === 'tensorrt-rtx') return { build: able, run };
  return { build: run.can ? resourceAbility(toolchain, gpus) : run, run };
}

function runAbility(
  toolchain: FoundToolchain,
  gpus: readonly Pick<Gpu, 'name' | 'computeCapability'>[],
): Ability {
  if (gpus.length === 0) return unable('no NVIDIA GPU is usable here');
  if (gpus.some((gpu) => serves(toolchain, gpu.computeCapability) !== 'no')) return able;
  const here = gpus.map((gpu) => `${gpu.name} (sm_${gpu.computeCapability})`).join(', ');
  return unable(`${toolchain.product} ${toolchain.version} does not serve ${here}`);
}

/** Some packages carry kernels for a few architectures only; then the builder cannot be created on another GPU. */
function resourceAbility(
  toolchain: FoundToolchain,
  gpus: readonly Pick<Gpu, 'computeCapability'>[],
): Ability {
  const { builderResources, version } = toolchain;
  // A folder without any keeps them elsewhere on the loader path.
  if (
    builderResources.length === 0 ||
    builderResources.includes('all') ||
    !holds('split-resources', { product: 'tensorrt', version })
  )
    return able;
  const isServed = gpus.some(({ computeCapability }) =>
    builderResources.some((name) => resourceServes(name, computeCapability)),
  );
  if (isServed) return able;
  const wanted = gpus.map((gpu) => `sm_${gpu.computeCapability}`).join(', ');
  return unable(
    `its builder resources are for ${builderResources.join(', ')}; the one for ${wanted} is missing (libnvinfer_builder_resource)`,
  );
}

/** A resource serves its own architecture and the later ones of its major version (sm86 serves 8.7). PTX alone serves none: the builder cannot be created. */
function resourceServes(resource: string, computeCapability: number): boolean {
  const own = /^sm(\d+)$/.exec(resource)?.[1];
  if (own === undefined) return false;
  return (
    Math.floor(Number(own) / 10) === Math.floor(computeCapability / 10) && Number(own) <= computeCapability
  );
}

/** One compute capability and which TensorRT serves it: `yes`, `no`, `?`, or the versions that do (`from 10.8`). */
export const supportRowSchema = z.object({
  computeCapability: z.number(),
  architecture: z.string(),
  examples: z.string(),
  /** Whether a GPU of it is in this machine. */
  here: z.boolean(),
  tensorrt8: z.string(),
  tensorrt10: z.string(),
  tensorrt11: z.string(),
  tensorrtRtx: z.string(),
});
export type SupportRow = z.infer<typeof supportRowSchema>;

const OLDEST_SHOWN = 61;

/** Where GPUs stand with TensorRT, from Pascal to Blackwell; with those of this machine marked, and added when older. */
export function supportTable(here: readonly number[]): readonly SupportRow[] {
  return gpuArchitectures
    .filter(({ computeCapability }) => computeCapability >= OLDEST_SHOWN || here.includes(computeCapability))
    .map(({ computeCapability, architecture, examples }) => ({
      computeCapability,
      architecture,
      examples,
      here: here.includes(computeCapability),
      tensorrt8: servedBy('8', computeCapability),
      tensorrt10: rangeIn10(computeCapability),
      tensorrt11: servedBy('11', computeCapability),
      tensorrtRtx: servedBy('rtx1', computeCapability),
    }));
}

function servedBy(generation: Generation, computeCapability: number): string {
  const { product, since } = behaviour.generations.value.find((row) => row.generation === generation)!;
  const served = serves({ product, version: since }, computeCapability);
  return served === 'unknown' ? '?' : served;
}

/** The releases of 10 between which support changed, oldest first. */
const releasesOf10 = behaviour['served-gpus'].value.filter(({ since }) => isInLine(since, '10')).toReversed();

function rangeIn10(computeCapability: number): string {
  const answers = releasesOf10.map(({ since }) =>
    serves({ product: 'tensorrt', version: since }, computeCapability),
  );
  const first = answers.indexOf('yes');
  const last = answers.lastIndexOf('yes');
  if (first === -1) return answers.includes('unknown') ? '?' : 'no';
  if (first > 0) return `from ${releasesOf10[first]?.since}`;
  return last === answers.length - 1 ? 'yes' : `to ${releasesOf10[last]?.last}`;
}
