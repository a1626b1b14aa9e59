import { isFloat32, isStored, type Operation, readFlow } from '../../../formats/precision/flow.js';
import { asConverted } from '../model-nodes.js';

/** Operators whose result is a choice: a small error moves whole rows of it. */
const choosing: ReadonlySet<string> = new Set(
  'TopK NonMaxSuppression ArgMax ArgMin NonZero Unique Multinomial Round'.split(' '),
);

/** The tensors of a model that are compared with FP32. */
export interface JudgedTensors {
  readonly names: readonly string[];
  /** Whether some are no outputs of the model: then its copies need them as outputs. */
  readonly areInside: boolean;
}

/**
 * The floating-point outputs of a model; where a choice decides one (a sorted list of boxes), the values that go into the choice and past it, because two lists
 * in another order are far apart although they hold the same.
 */
export const judgedTensors = (path: string): Promise<JudgedTensors> =>
  asConverted(path, ({ proto }) => {
    const { root, operations } = readFlow(proto);
    const chosen = new Set<Operation>();
    for (const operation of operations) {
      const isAfter = operation.inputs.some(
        (value) => value?.producer !== undefined && chosen.has(value.producer),
      );
      if (isAfter || choosing.has(operation.node.opType)) chosen.add(operation);
    }
    const outputs = root.outputs.flatMap((value) => value ?? []).filter(isFloat32);
    const isBefore = (value: (typeof outputs)[number]) =>
      value.producer === undefined || !chosen.has(value.producer);
    const border = [...chosen]
      .filter(({ scope }) => scope === root)
      .flatMap(({ inputs }) => inputs.flatMap((value) => value ?? []))
      .filter((value) => isFloat32(value) && !isStored(value) && value.origin !== 'input' && isBefore(value));
    const names = [...new Set([...outputs.filter(isBefore), ...border].map(({ name }) => name))];
    return { names, areInside: border.length > 0 };
  });
