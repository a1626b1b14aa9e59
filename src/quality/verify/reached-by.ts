import { viewModel } from '../../formats/onnx/model.js';
import { operatorName, readFlow, type Value } from '../../formats/precision/flow.js';
import { inlined } from '../../formats/precision/inline-functions.js';

const nothing: ReadonlySet<string> = new Set();

/** What a model does with its values on their way to an output. */
interface Reached {
  /** The inputs whose values reach it: shapes alone carry no value. */
  readonly inputs: readonly string[];
  /** Whether its rows are ordered or chosen by values. */
  readonly isOrdered: boolean;
  /** Whether it states how many values compare as they should. */
  readonly isCount: boolean;
}

/** Stands among the inputs for an operator that orders rows. */
const ORDER = '\0order';

/** What reaches each output of a model, looked up when first asked for. Throws what opening the model throws. */
export function reachingOutputs(path: string): (output: string) => Reached {
  let found: ReadonlyMap<string, Reached> | undefined;
  return (output) => {
    found ??= read(path);
    return found.get(output) ?? { inputs: [], isOrdered: false, isCount: false };
  };
}

const ordersRows = (name: string): boolean =>
  /(^|::)(TopK|Unique|NonZero|.*(NMS|NonMaxSuppression).*)$/.test(name);

const MOVES = /^(Cast|Identity|Reshape|Squeeze|Unsqueeze|Flatten)$/;

/** What makes a value, what only casts and moves it left out. */
function originOf(value: Value | undefined): Value | undefined {
  const { producer } = value ?? {};
  return producer && MOVES.test(operatorName(producer)) ? originOf(producer.inputs[0]) : value;
}

/** Whether a value is a sum of booleans, or the first output of a plug-in's NMS. */
function isCount(value: Value): boolean {
  const made = originOf(value);
  const name = made?.producer ? operatorName(made.producer) : '';
  if (name === 'ReduceSum') {
    const [summed] = made!.producer!.inputs;
    return [summed, summed?.producer?.inputs[0]].some((one) => one?.type === 'bool');
  }
  return /::.*NMS/.test(name) && made === made!.producer!.outputs[0] && made!.producer!.outputs.length > 3;
}

function read(path: string): ReadonlyMap<string, Reached> {
  return viewModel(path, (model) => {
    const { root, operations } = readFlow(inlined(model).proto);
    const reached = new Map<Value, ReadonlySet<string>>(
      root.inputs.filter(({ tensor }) => tensor === undefined).map((input) => [input, new Set([input.name])]),
    );
    for (const operation of operations) {
      const operator = operatorName(operation);
      if (/^(Shape|Size)$/.test(operator)) continue;
      const values = [...operation.inputs, ...operation.bodies.flatMap(({ outputs }) => outputs)];
      const sets = [
        ...new Set(values.map((value) => (value && reached.get(value)) ?? nothing)),
        ordersRows(operator) ? new Set([ORDER]) : nothing,
      ];
      const all = sets.reduce((most, one) => (one.size > most.size ? one : most), nothing);
      const isWhole = sets.every((one) => [...one].every((name) => all.has(name)));
      const union = isWhole ? all : new Set(sets.flatMap((one) => [...one]));
      if (union.size > 0) for (const output of operation.outputs) if (output) reached.set(output, union);
    }
    return new Map(
      root.outputs.flatMap((value) => {
        if (!value) return [];
        const all = [...(reached.get(value) ?? nothing)];
        const inputs = all.filter((name) => name !== ORDER);
        return [[value.name, { inputs, isOrdered: all.includes(ORDER), isCount: isCount(value) }]];
      }),
    );
  });
}
