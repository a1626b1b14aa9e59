/**
 * The facts about one family of models: the cache-aware FastConformer encoders of NeMo, Parakeet's streaming encoder among them. Nothing else here counts
 * their strides or names their tensors, except the readers of their files in `legacy/` and `formats/contract/`.
 */

/**
 * The convolutions in front of the encoder, 8x subsampling: `stages` in a row, each of `floor((L + 2 padding - kernel) / stride) + 1` frames.
 * Source: Rekesh et al., Fast Conformer with Linearly Scalable Attention, 2023 (arXiv:2305.05084); NeMo's `dw_striding` subsampling with factor 8.
 */
const SUBSAMPLING = { stages: 3, kernel: 3, stride: 2, padding: 1 } as const;

/** Encoder steps of so many frames. */
export function stepsOf(frames: number): number {
  const { stages, kernel, stride, padding } = SUBSAMPLING;
  let steps = frames;
  for (let stage = 0; stage < stages; stage++)
    steps = Math.floor((steps + 2 * padding - kernel) / stride) + 1;
  return steps;
}

export const MAIN_OUTPUT = 'encoder_output';
export const STATE_LENGTH = 'cache_last_channel_len';

/** The names that scripts read in the dump of a chunk, by input. */
export const dumpedAs: ReadonlyMap<string, string> = new Map([
  ['audio_signal', 'audio'],
  ['length', 'length'],
  ['cache_last_channel', 'cache_ch_in'],
  ['cache_last_time', 'cache_tm_in'],
  [STATE_LENGTH, 'cache_len_in'],
]);
