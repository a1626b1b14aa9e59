import { toBinary } from '@bufbuild/protobuf';
import { attribute, buildModel, type Dimension, GraphBuilder } from '../../formats/onnx/builder.js';
import { ModelProtoSchema } from '../../formats/onnx/onnx_pb.js';
import type { Dtype } from '../../formats/tensor/dtype.js';
import { longerName, modelFolder } from '../identity/engine-name.js';
import type { Passport } from '../identity/passport.js';
import type { ExportedFile, Exporter } from './exporter.js';

/**
 * `MODEL/NAME.engine` with `MODEL/NAME.onnx`, which ONNX Runtime's TensorRT provider runs: one node `EPContext` that names the plan beside it. The provider needs the
 * TensorRT that built the engine. https://onnxruntime.ai/docs/execution-providers/EP-Context-Design.html
 */
export const contextModelExporter: Exporter = {
  id: 'onnxruntime',
  *files(engines): Iterable<ExportedFile> {
    const taken = new Set<string>();
    for (const { planPath, passport } of engines) {
      const { name, identity } = passport;
      const unique = taken.has(name) ? longerName(name, identity.digest) : name;
      taken.add(name);
      const folder = modelFolder(name);
      yield { path: `${folder}/${unique}`, copyOf: planPath };
      // Last: it names the plan.
      yield {
        path: `${folder}/${unique.replace(/\.[^.]+$/, '')}.onnx`,
        bytes: contextModel(passport.plan, unique, sources[identity.document.target.product]),
      };
    }
  },
};

/** Which provider runs the engines of a product. */
const sources = {
  tensorrt: 'TensorrtExecutionProvider',
  'tensorrt-rtx': 'NvTensorRTRTXExecutionProvider',
} as const;

/** A serialized model with the engine's inputs and outputs, and one node in between that names the plan: open dimensions have a name each. */
export function contextModel(
  { inputs, outputs }: Pick<Passport['plan'], 'inputs' | 'outputs'>,
  planName: string,
  source: string = sources.tensorrt,
): Uint8Array {
  const graph = new GraphBuilder('engine');
  const shapeOf = ({ name, shape, symbols }: Passport['plan']['inputs'][number]): Dimension[] | null =>
    shape?.map((size, axis) => size ?? symbols?.[axis] ?? `${name}_${axis}`) ?? null;
  for (const input of inputs) graph.input(input.name, input.dtype as Dtype, shapeOf(input));
  graph.node('EPContext', {
    name: 'engine',
    domain: 'com.microsoft',
    inputs: inputs.map(({ name }) => name),
    outputs: outputs.map(({ name }) => name),
    // Attributes as ONNX Runtime's own script for wrapping an engine writes them, and the engine's owner: newer versions ask for it.
    attributes: {
      embed_mode: attribute.int(0),
      ep_cache_context: attribute.string(planName),
      source: attribute.string(source),
    },
  });
  for (const output of outputs) graph.output(output.name, output.dtype as Dtype, shapeOf(output));
  return toBinary(ModelProtoSchema, buildModel(graph, { opsets: { 'com.microsoft': 1 } }).proto);
}
