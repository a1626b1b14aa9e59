import { create } from '@bufbuild/protobuf';
import { openModel } from '../../src/formats/onnx/model.js';
import {
  AttributeProto_AttributeType,
  AttributeProtoSchema,
  NodeProtoSchema,
} from '../../src/formats/onnx/onnx_pb.js';
import { writeModel } from '../../src/formats/onnx/write.js';

/** Writes the twin of a network of images [N, 3, height, width] that takes them as [N, height, width, 3], and returns its path. */
export async function channelsLastTwin(path: string): Promise<string> {
  const model = openModel(path);
  const twin = path.replace(/\.onnx$/, '.nhwc.onnx');
  try {
    const graph = model.proto.graph!;
    const [input] = graph.input;
    const type = input!.type!.value;
    if (type.case !== 'tensorType') throw new Error(`${path} takes no tensor.`);
    const [batch, channels, height, width] = type.value.shape!.dim;
    type.value.shape!.dim = [batch!, height!, width!, channels!];
    const { name } = input!;
    input!.name = `${name}_nhwc`;
    const perm = create(AttributeProtoSchema, {
      name: 'perm',
      type: AttributeProto_AttributeType.INTS,
      ints: [0n, 3n, 1n, 2n],
    });
    graph.node.unshift(
      create(NodeProtoSchema, {
        opType: 'Transpose',
        input: [input!.name],
        output: [name],
        attribute: [perm],
      }),
    );
    await writeModel(model, twin);
    return twin;
  } finally {
    model.close();
  }
}
