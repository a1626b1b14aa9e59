import { create } from '@bufbuild/protobuf';
import {
  NodeProtoSchema,
  openModel,
  TensorProtoSchema,
  writeModel,
} from '../../../src/formats/onnx/index.js';

/** Two steps that undo each other in FP32. FP16 holds their numbers, but not the products of the first and values beyond 2, nor the digits of a sum with the second. */
const faults = {
  overflow: { up: 'Mul', down: 'Div', by: 2 ** 15 },
  rounding: { up: 'Add', down: 'Sub', by: 2 ** 14 },
} as const;

/**
 * Writes a copy of a model in which some values go through two steps that leave them as they are in FP32 and break them in FP16, unless both stay FP32.
 * The steps' names are the value's with `/up` and `/down`.
 */
export async function plantFaults(
  from: string,
  to: string,
  values: readonly string[],
  fault: keyof typeof faults = 'overflow',
): Promise<readonly string[]> {
  const model = openModel(from);
  try {
    const { up, down, by } = faults[fault];
    const { graph } = model.proto;
    if (graph === undefined) throw new Error('A model without a graph.');
    const scalar = (name: string, value: number) =>
      create(TensorProtoSchema, {
        name,
        dataType: 1,
        rawData: new Uint8Array(Float32Array.of(value).buffer),
      });
    graph.initializer.push(scalar('planted/factor', by));
    const names = values.flatMap((value) => {
      const at = graph.node.findIndex(({ output }) => output.includes(value));
      const maker = graph.node[at];
      if (maker === undefined) throw new Error(`No node makes ${value}.`);
      maker.output = maker.output.map((name) => (name === value ? `${value}/before` : name));
      const step = (opType: string, input: string, output: string, name: string) =>
        create(NodeProtoSchema, { opType, name, input: [input, 'planted/factor'], output: [output] });
      graph.node.splice(
        at + 1,
        0,
        step(up, `${value}/before`, `${value}/large`, `${value}/up`),
        step(down, `${value}/large`, value, `${value}/down`),
      );
      return [`${value}/up`, `${value}/down`];
    });
    await writeModel(model, to);
    return names;
  } finally {
    model.close();
  }
}
