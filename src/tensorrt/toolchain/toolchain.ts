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

/** A file that should be a library of TensorRT, and why it is none that can be used, for users. */
export interface DamagedLibrary {
  readonly path: string;
  readonly why: string;
}
/** True where `version` is `since` or newer; numbers a version lacks count as zero. */
export function isAtLeast(version: string, since: string): boolean {
  const wanted = since.split('.').map(Number);
  const own = version.split('.').map(Number);
  for (const [index, number] of wanted.entries()) {
    const difference = (own[index] ?? 0) - number;
    if (difference !== 0) return difference > 0;
  }
  return true;
}
