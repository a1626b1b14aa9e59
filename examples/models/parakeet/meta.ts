import { jointLogits } from './joint.js';
import type { ParakeetShape } from './shapes.js';

/** `model_meta.json` as speech exporters write it beside the components; the labels are made up, like the weights. */
export function parakeetMeta(name: string, shape: ParakeetShape, seed: number): Record<string, unknown> {
  return {
    model_name: name,
    sample_rate: 16_000,
    labels: labels(shape.vocabulary),
    blank_id: shape.vocabulary,
    tokenizer_vocab_size: shape.vocabulary,
    joint_vocab_size: jointLogits(shape),
    duration_values: shape.durations,
    torch_version: 'none: generated with seeded weights',
    tensor_layout_contract: {
      encoder_input: 'audio_signal: [B, n_mels, T], length: [B]',
      encoder_output: 'encoder_output: [B, D_enc, T_out], encoded_lengths: [B]',
      predictor_input: 'y: [B, U], h: [L, B, H], c: [L, B, H]',
      predictor_output: 'g: [B, D_pred, U], h_out: [L, B, H], c_out: [L, B, H]',
      joint_input: 'encoder_output: [B, D_enc, T], predictor_output: [B, D_pred, U]',
      joint_output: 'joint_output: [B, T, U, vocab + 1 + durations]',
    },
    features: { type: 'log-mel', n_fft: 512, n_mels: shape.mels, hop_length: 160 },
    generated: { seed },
  };
}

/** `<unk>` and then distinct pseudo-words in base 26, every second one marked as the beginning of a word. */
function labels(count: number): string[] {
  return Array.from({ length: count }, (_, id) => {
    if (id === 0) return '<unk>';
    let letters = '';
    for (let rest = id >> 1; rest >= 0; rest = Math.floor(rest / 26) - 1) {
      letters = String.fromCharCode(97 + (rest % 26)) + letters;
    }
    return id % 2 === 0 ? letters : `▁${letters}`;
  });
}
