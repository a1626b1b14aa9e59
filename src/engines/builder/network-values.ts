import { openModel } from '../../formats/onnx/model.js';
import { feedInputs, valueFacts } from '../../formats/onnx/value-facts.js';
import type { BuildOutcome } from './build-request.js';

/** Inputs and outputs as a model declares them: what a network's are, where the library is not there to ask. Errors: as `openModel`. */
export function networkValues(modelPath: string): Pick<BuildOutcome, 'inputs' | 'outputs'> {
  const model = openModel(modelPath);
  try {
    const { graph } = model.proto;
    if (graph === undefined) return { inputs: [], outputs: [] };
    const declared = (value: Parameters<typeof valueFacts>[0]) => {
      const { name, dtype, shape } = valueFacts(value);
      return {
        name,
        dtype: dtype ?? 'unknown',
        shape: shape?.map((size) => (typeof size === 'number' ? size : null)) ?? null,
      };
    };
    return { inputs: feedInputs(graph).map(declared), outputs: graph.output.map(declared) };
  } finally {
    model.close();
  }
}
