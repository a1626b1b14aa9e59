import { isEngineFile } from '../../../engines/plan/header.js';
import { TrtforgeError } from '../../../errors.js';
import { type MadeTensor, madeTensors } from '../made-tensors.js';

/** Tensors of two models under one name, in the order of the reference's graph. */
export interface CommonTensors {
  readonly tensors: readonly MadeTensor[];
  readonly onlyReference: number;
  readonly onlyCandidate: number;
}

/** Throws TF_USAGE for an engine, TF_VERIFY_MISMATCH where the models have no tensor in common, and what opening a model throws. */
export function commonTensors(reference: string, candidate: string): CommonTensors {
  for (const path of [reference, candidate]) rejectEngine(path);
  const [theirs, ours] = [madeTensors(reference), madeTensors(candidate)];
  const own = new Set(ours.map(({ name }) => name));
  const tensors = theirs.filter(({ name }) => own.has(name));
  if (tensors.length === 0)
    throw new TrtforgeError(
      'TF_VERIFY_MISMATCH',
      `${candidate} and ${reference} have no floating-point tensor of one name, so no layer can be compared.`,
      {
        remedy:
          'Compare a model with the one that it was converted from: a conversion keeps the names of tensors, a new export may not.',
      },
    );
  return {
    tensors,
    onlyReference: theirs.length - tensors.length,
    onlyCandidate: ours.length - tensors.length,
  };
}

/** Throws TF_USAGE for an engine in the place of a model. */
export function rejectEngine(path: string): void {
  if (isEngineFile(path))
    throw new TrtforgeError('TF_USAGE', `${path} is an engine, which returns its outputs only.`, {
      remedy: 'Pass the ONNX model that it was built from.',
    });
}
