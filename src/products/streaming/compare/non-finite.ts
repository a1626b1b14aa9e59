import { dtypes } from '../../../formats/tensor/dtype.js';
import type { NamedTensors } from '../../../formats/tensor/tensor.js';
import { float32Values } from '../../../formats/tensor/values.js';
import type { Explanation } from '../verify/result.js';

/** Where NaN or infinite values first made a chunk fail: names of tensors that hold any. */
export interface NonFiniteChunk {
  readonly chunk: number;
  /** What the candidate was given, its state included. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly reference: readonly string[];
}

export const inspectNonFinite = (
  chunk: number,
  inputs: NamedTensors,
  outputs: NamedTensors,
  reference: NamedTensors,
): NonFiniteChunk => ({
  chunk,
  inputs: namesOf(inputs),
  outputs: namesOf(outputs),
  reference: namesOf(reference),
});

const namesOf = (tensors: NamedTensors): readonly string[] =>
  [...tensors].flatMap(([name, tensor]) =>
    dtypes[tensor.dtype].kind === 'float' && !float32Values(tensor).every(Number.isFinite) ? [name] : [],
  );

/** Who brought them in: the recording, its inputs, or the candidate. */
export function explainNonFinite(found: NonFiniteChunk | null): readonly Explanation[] {
  if (found === null) return [];
  const { chunk, inputs, outputs, reference } = found;
  const made = (id: string, sentence: string, remedy: string): readonly Explanation[] => [
    { id, severity: 'error', sentence, remedy, evidence: { ...found } },
  ];
  if (inputs.length > 0)
    return made(
      'non-finite-input',
      `Chunk ${chunk} is given NaN or infinite values in ${inputs.join(', ')}: what comes out says nothing of the candidate.`,
      'They are in the recording: see what made them, and record it again.',
    );
  if (outputs.length === 0)
    return made(
      'non-finite-reference',
      `In chunk ${chunk} it is the reference that holds NaN or infinite values (${reference.join(', ')}); the candidate gives none.`,
      'See what recorded it: FP16 there, or a fault that the candidate does not have.',
    );
  return made(
    'non-finite-output',
    `In chunk ${chunk} the candidate gives NaN or infinite values (${outputs.join(', ')}) for inputs that have none.`,
    'FP16 ends at 65504: keep in FP32 what grows beyond it (trtforge convert --calibration finds it), or take BF16. In FP32 look for a division by zero, or an exponential of something large.',
  );
}
