import { openModel } from '../../formats/onnx/model.js';
import { operatorName, readFlow, type Value } from '../../formats/precision/flow.js';
import { inlineFunctions } from '../../formats/precision/inline-functions.js';

const nothing: ReadonlySet<string> = new Set();

/** The inputs of a model whose values reach each of its outputs, looked up when first asked for: shapes alone carry no value. Throws what opening the model throws. */
export function inputsReaching(path: string): (output: string) => readonly string[] {
  let found: ReadonlyMap<string, readonly string[]> | undefined;
  return (output) => {
    found ??= read(path);
    return found.get(output) ?? [];
  };
}

function read(path: string): ReadonlyMap<string, readonly string[]> {
  const model = openModel(path);
  try {
    inlineFunctions(model.proto);
    const { root, operations } = readFlow(model.proto);
    const reached = new Map<Value, ReadonlySet<string>>(
      root.inputs.filter(({ tensor }) => tensor === undefined).map((input) => [input, new Set([input.name])]),
    );
    for (const operation of operations) {
      if (/^(Shape|Size)$/.test(operatorName(operation))) continue;
      const values = [...operation.inputs, ...operation.bodies.flatMap(({ outputs }) => outputs)];
      const sets = [...new Set(values.map((value) => (value && reached.get(value)) ?? nothing))];
      const all = sets.reduce((most, one) => (one.size > most.size ? one : most), nothing);
      const isWhole = sets.every((one) => [...one].every((name) => all.has(name)));
      const union = isWhole ? all : new Set(sets.flatMap((one) => [...one]));
      if (union.size > 0) for (const output of operation.outputs) if (output) reached.set(output, union);
    }
    return new Map(
      root.outputs.flatMap((value) => (value ? [[value.name, [...(reached.get(value) ?? nothing)]]] : [])),
    );
  } finally {
    model.close();
  }
}
