import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { create, toBinary } from '@bufbuild/protobuf';
import { modelFamilies } from '../../examples/models/catalogue.js';
import type { PlanBuilder } from '../../src/engines/builder/options.js';
import { visitTensors } from '../../src/formats/onnx/graph.js';
import { openModel } from '../../src/formats/onnx/model.js';
import {
  AttributeProto_AttributeType,
  AttributeProtoSchema,
  type ModelProto,
  ModelProtoSchema,
  NodeProtoSchema,
  StringStringEntryProtoSchema,
  type TensorProto,
} from '../../src/formats/onnx/onnx_pb.js';
import { sampleOutcome, samplePlan } from './sample-engine.js';

/** Writes the example's smallest speech bundle: encoder, predictor, joint network and their meta file. Gives the meta file's path. */
export async function writeBundle(folder: string): Promise<string> {
  await modelFamilies.parakeet!.write('tiny', folder, { seed: 1, external: false });
  return join(folder, 'model_meta.json');
}

/** Writes a bundle's meta file again with other fields. */
export function changeMeta(meta: string, fields: Readonly<Record<string, unknown>>): void {
  writeFileSync(meta, JSON.stringify({ ...JSON.parse(readFileSync(meta, 'utf8')), ...fields }));
}

/** Changes the messages of a model whose tensors are all small enough to be in them, and writes it where it was. */
export function changeModel(path: string, change: (model: ModelProto) => void): void {
  const model = openModel(path, { inlineBytes: 1 << 30 });
  try {
    change(model.proto);
    writeFileSync(path, toBinary(ModelProtoSchema, model.proto));
  } finally {
    model.close();
  }
}

/**
 * Keeps every weight of a model in a file of its own, named after it, in a sub-folder; one of them becomes the attribute of a Constant node, as some
 * exporters leave it. Gives the paths the model uses.
 */
export function scatterWeights(path: string, subfolder: string): readonly string[] {
  const locations: string[] = [];
  changeModel(path, (model) => {
    const graph = model.graph!;
    const constant = graph.initializer.findIndex(
      ({ dims, rawData }) => dims.length === 2 && rawData.length > 0,
    );
    const [tensor] = graph.initializer.splice(constant, 1);
    const attribute = create(AttributeProtoSchema, {
      name: 'value',
      type: AttributeProto_AttributeType.TENSOR,
      t: tensor!,
    });
    graph.node.unshift(
      create(NodeProtoSchema, {
        opType: 'Constant',
        name: 'Constant_2337',
        output: [tensor!.name],
        attribute: [attribute],
      }),
    );
    for (const place of visitTensors(model)) {
      if (place.tensor.rawData.length < 16 || place.tensor.dims.length === 0) continue;
      locations.push(
        moveOut(
          place.tensor,
          dirname(path),
          subfolder,
          place.role === 'attribute' ? 'Constant_2337_attr__value' : place.tensor.name,
        ),
      );
    }
  });
  return locations;
}

/** Moves a tensor's values to a file of a folder below the model's; gives the location. */
export function moveOut(tensor: TensorProto, folder: string, subfolder: string, name: string): string {
  const location = join(subfolder, name.replaceAll('/', '_'));
  mkdirSync(join(folder, subfolder), { recursive: true });
  writeFileSync(join(folder, location), tensor.rawData);
  tensor.externalData = [
    create(StringStringEntryProtoSchema, { key: 'location', value: location }),
    create(StringStringEntryProtoSchema, { key: 'length', value: String(tensor.rawData.length) }),
  ];
  tensor.dataLocation = 1;
  tensor.rawData = new Uint8Array();
  return location;
}

/** Writes a plan at once, and remembers the models it was given. */
export function recordingBuilder(
  change: (model: string) => Partial<ReturnType<typeof sampleOutcome>> | Error = () => ({}),
) {
  const models: string[] = [];
  const build: PlanBuilder = async (_, { modelPath, planPath }, { emit }) => {
    models.push(modelPath);
    emit?.({ type: 'log', source: 'builder', severity: 'info', message: `Building ${modelPath}` });
    const plan = samplePlan(models.length, 600_000);
    const changed = change(modelPath);
    if (changed instanceof Error) throw changed;
    writeFileSync(planPath, plan);
    return { ...sampleOutcome(plan.length), ...changed };
  };
  return { build, models };
}
