/** Sound of one channel, from -1 to 1. */
export interface Audio {
  /** Samples a second. */
  readonly rate: number;
  readonly samples: Float32Array;
}
