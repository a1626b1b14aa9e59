/** What the three components of one bundle agree on. */
export interface ParakeetShape {
  readonly mels: number;
  /** Channels of the subsampling convolutions. */
  readonly subsamplingChannels: number;
  readonly layers: number;
  readonly width: number;
  readonly heads: number;
  readonly convolutionKernel: number;
  /** Longest encoder sequence (steps of 80 ms) the position table serves. */
  readonly positions: number;
  /** Tokens without the blank, whose id is this number. */
  readonly vocabulary: number;
  /** Frames a TDT decoder may advance after a token. */
  readonly durations: readonly number[];
  readonly predictorLayers: number;
  readonly predictorWidth: number;
  readonly jointWidth: number;
}

const durations = [0, 1, 2, 3, 4];

/** `full` has the sizes of Parakeet-TDT 0.6B: 24 FastConformer layers of 1024, 0.6 B parameters. */
export const parakeetShapes = {
  tiny: {
    mels: 128,
    subsamplingChannels: 8,
    layers: 2,
    width: 32,
    heads: 4,
    convolutionKernel: 9,
    positions: 128,
    vocabulary: 32,
    durations,
    predictorLayers: 2,
    predictorWidth: 16,
    jointWidth: 16,
  },
  small: {
    mels: 128,
    subsamplingChannels: 64,
    layers: 4,
    width: 256,
    heads: 4,
    convolutionKernel: 9,
    positions: 512,
    vocabulary: 1024,
    durations,
    predictorLayers: 2,
    predictorWidth: 320,
    jointWidth: 320,
  },
  full: {
    mels: 128,
    subsamplingChannels: 256,
    layers: 24,
    width: 1024,
    heads: 8,
    convolutionKernel: 9,
    positions: 5000,
    vocabulary: 8192,
    durations,
    predictorLayers: 2,
    predictorWidth: 640,
    jointWidth: 640,
  },
} as const satisfies Record<string, ParakeetShape>;
