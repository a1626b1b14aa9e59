import { contractFileOf, writeContract } from '../../../formats/contract/file.js';
import { undecidedStates } from '../../../formats/contract/resolve.js';
import { type ModelContext, readModelBindings } from '../check/model-bindings.js';
import { contractFromModel } from '../contract/draft.js';
import { modelName } from './record.js';
import type { DraftedContract } from './result.js';

/** Writes the contract that a model's names suggest, to be completed by hand. */
export async function draftContract(
  file: string,
  output: string,
  sizes: readonly number[],
  context: ModelContext = {},
): Promise<DraftedContract> {
  const contract = contractFromModel(modelName(file), await readModelBindings(file, context), sizes);
  writeContract(output, contract);
  const { inputs, outputs, state } = contract;
  const undecided = undecidedStates(inputs, outputs, state);
  return { schema: 'trtforge.stream-draft/1', file, output, contract: contractFileOf(contract), undecided };
}
