import { behaviour } from '../../behaviour/facts.js';

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
