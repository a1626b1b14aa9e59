/** Sizes of one streaming encoder. */
export interface StreamingShape {
  readonly mels: number;
  /** Channels of the subsampling convolutions. */
  readonly subsamplingChannels: number;
  readonly layers: number;
  readonly width: number;
  readonly heads: number;
  readonly convolutionKernel: number;
  /** Steps of 80 ms that attention looks back. */
  readonly cacheSize: number;
}

/** Steps at the front of a chunk that the frames before it had already given (`drop_extra_pre_encoded`). */
export const DROP_EXTRA = 2;

/** Steps at the end of a chunk that only look ahead and are not kept (`cache_drop_size`). */
export const DROP = 3;

/** Steps of a result: those of the 48 frames of a later chunk that are its own, without what looks ahead. */
export const RESULT_STEPS = 3;

/** Frames of the first chunk and of every later one; each later one repeats 9 frames of the one before. */
export const CHUNK_FRAMES = { first: 41, rest: 57 } as const;
export const SHIFT_FRAMES = { first: 17, rest: 24 } as const;
export const PRE_ENCODE_FRAMES = { first: 0, rest: 9 } as const;

/** Depthwise convolutions look back as far as they look ahead. */
export const timeContext = ({ convolutionKernel }: StreamingShape): number => (convolutionKernel - 1) / 2;

/** `full` has the sizes of the streaming encoder of Parakeet-TDT 0.6B: 24 layers of 1024, a cache of 256 steps. */
export const streamingShapes = {
  tiny: {
    mels: 128,
    subsamplingChannels: 8,
    layers: 2,
    width: 32,
    heads: 4,
    convolutionKernel: 9,
    cacheSize: 16,
  },
  small: {
    mels: 128,
    subsamplingChannels: 64,
    layers: 4,
    width: 256,
    heads: 4,
    convolutionKernel: 9,
    cacheSize: 256,
  },
  full: {
    mels: 128,
    subsamplingChannels: 256,
    layers: 24,
    width: 1024,
    heads: 8,
    convolutionKernel: 9,
    cacheSize: 256,
  },
} as const satisfies Record<string, StreamingShape>;
