import { behaviour, type Processor } from '../../behaviour/facts.js';

/** `full` builds and runs, `lean` only runs, `dispatch` only runs plans that bring their own runtime. */
export type Flavour = 'full' | 'lean' | 'dispatch';

/** An installed TensorRT: where its libraries are and which product and version they are. */
export interface Toolchain {
  readonly product: 'tensorrt' | 'tensorrt-rtx';
  /** `major.minor.patch.build`, as the library itself reports; build is absent where the library cannot report it. */
  readonly version: string;
  /** Left out for `full`. */
  readonly flavour?: Flavour;
  readonly libraries: {
    /** libnvinfer.so.N or libtensorrt_rtx.so.N */
    readonly inference: string;
    /** libnvonnxparser.so.N or libtensorrt_onnxparser_rtx.so.N; null in a runtime-only installation. */
    readonly parser: string | null;
    /** libnvinfer_plugin.so.N, where there is one. */
    readonly plugins: string | null;
  };
  readonly trtexec: string | null;
  /** The way it was found, for users: `installed by trtforge`, `TENSORRT_HOME`, `loader path`, `Debian package`, `pip package`, `tar`, `NGC`. */
  readonly foundBy: string;
}

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
const [newest] = behaviour['rtx-wheels'].value;

/** The platform in the names of wheels for a processor, as the newest release has it. */
export const wheelTag = (processor: Processor): string => newest.wheels[processor].tag;

/** The release of a version, pinned or not; without a version the newest pinned one. */
export function releaseOf(version: string | undefined): Release {
  if (version === undefined) return newest;
  const pinned = releases.find((release) => release.version === version);
  return pinned ?? { ...newest, version, wheels: null };
}
