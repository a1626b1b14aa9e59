import { behaviour, type Processor } from '../../behaviour/facts.js';

/** A TensorRT-RTX release that trtforge can install, and what its wheels must be. */
export interface Release {
  readonly product: 'tensorrt-rtx';
  /** `major.minor.patch.build`. */
  readonly version: string;
  /** Name of the wheel's package. */
  readonly packageName: string;
  /** Those for Linux; null for a version whose digests nobody has pinned here. */
  readonly wheels: Readonly<Record<Processor, PinnedWheel>> | null;
}

export interface PinnedWheel {
  /** The platform in its name. */
  readonly tag: string;
  readonly sha256: string;
  readonly bytes: number;
}

interface License {
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
const [newest] = behaviour['rtx-wheels'].value;

/** The platform in the names of wheels for a processor, as the newest release has it. */
export const wheelTag = (processor: Processor): string => newest.wheels[processor].tag;

/** The release of a version, pinned or not; without a version the newest pinned one. */
export function releaseOf(version: string | undefined): Release {
  if (version === undefined) return newest;
  const pinned = releases.find((release) => release.version === version);
  return pinned ?? { ...newest, version, wheels: null };
}
