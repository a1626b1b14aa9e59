import { behaviour } from '../../behaviour/facts.js';
/** A TensorRT-RTX release that trtforge can install, and what its wheel must be. */
export interface Release {
  readonly product: 'tensorrt-rtx';
  /** `major.minor.patch.build`. */
  readonly version: string;
  /** Name of the wheel's package. */
  readonly packageName: string;
  /** The wheel for x86-64 Linux; null for a version whose digest nobody has pinned here. */
  readonly wheel: { readonly sha256: string; readonly bytes: number } | null;
}

export interface License {
  readonly owner: string;
  readonly name: string;
  readonly url: string;
}

/** Shown before anything is downloaded. The text itself is in the wheel. */
export const tensorrtRtxLicense: License = {
  owner: 'NVIDIA Corporation',
  name: 'NVIDIA Software License Agreement for TensorRT-RTX',
  url: 'https://docs.nvidia.com/deeplearning/tensorrt-rtx/latest/',
};

/** Newest first: the first is the default. */
const releases: readonly Release[] = behaviour['rtx-wheels'].value;

/** The release of a version, pinned or not; without a version the newest pinned one. */
export function releaseOf(version: string | undefined): Release {
  const [newest] = releases;
  if (newest === undefined) throw new Error('The table of releases is empty.');
  if (version === undefined) return newest;
  const pinned = releases.find((release) => release.version === version);
  return pinned ?? { ...newest, version, wheel: null };
}
