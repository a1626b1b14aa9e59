import { isEngineFile } from '../../engines/plan/header.js';
import { requestedSizes } from '../../engines/run/input-shapes.js';
import { TrtforgeError } from '../../errors.js';
import { modelFacts } from '../../formats/onnx/inspect.js';
import { type OnnxModel, openModel } from '../../formats/onnx/model.js';
import type { ModelFacts } from '../../formats/onnx/model-facts.js';
import { listNodes } from '../../formats/onnx/node-list.js';
import { costFacts } from '../../formats/onnx/shapes/cost-facts.js';
import { inferShapes, type ModelShapes } from '../../formats/onnx/shapes/infer.js';
import { feedInputs, valueFacts } from '../../formats/onnx/value-facts.js';
import { listWeights } from '../../formats/onnx/weight-list.js';
import { defineCommand } from '../command.js';
import { flag, option } from '../option.js';
import { shapesOf, shapesOption } from '../options/shapes.js';
import { pattern } from '../values.js';
import { renderModel } from './inspect-text.js';

export const command = defineCommand({
  examples: [
    'trtforge inspect model.onnx',
    'trtforge inspect model.onnx --json | jq .inputs',
    "trtforge inspect model.onnx --nodes '^Conv$'",
    'trtforge inspect model.onnx --shapes x:8x3x224x224',
    'trtforge inspect model.onnx --check-weights',
  ],
  arguments: [{ name: 'MODEL', describe: 'an ONNX model' }],
  options: {
    shapes: shapesOption(
      'shapes of inputs that FLOPs and memory are for, as x:1x3x224x224 (default: as declared)',
    ),
    nodes: option({
      flags: '--nodes <regex>',
      describe:
        'list the nodes whose name or operator matches, with attributes, output shapes and FLOPs; . for all',
      parse: pattern,
    }),
    weights: option({
      flags: '--weights <regex>',
      describe: 'list the weights whose name matches, with range, zeros and 2:4 sparsity; . for all',
      parse: pattern,
    }),
    checkWeights: flag({
      flags: '--check-weights',
      describe: 'read every weight and report NaN, infinities and values outside FP16',
    }),
  },
  schema: async () => (await import('../../formats/onnx/model-facts.js')).modelFactsSchema,
  run: async ([file = ''], { shapes, nodes, weights, checkWeights }, context): Promise<ModelFacts> => {
    if (isEngineFile(file))
      throw new TrtforgeError('TF_USAGE', `${file} is a TensorRT plan, not an ONNX model.`, {
        remedy: `Run: trtforge engine inspect ${file}`,
      });
    const model = openModel(file);
    try {
      const inferred = inferredShapes(model, shapesOf(shapes));
      const facts = {
        ...modelFacts(model),
        cost: costFacts(inferred),
        ...(nodes === undefined ? {} : { nodeList: listNodes(model, nodes, inferred) }),
        ...(weights === undefined ? {} : { weightList: await listWeights(model, weights, context.signal) }),
      };
      if (!checkWeights) return facts;
      const { lintWeights } = await import('../../formats/onnx/lint/weights.js');
      return { ...facts, findings: [...facts.findings, ...(await lintWeights(model, context))] };
    } finally {
      model.close();
    }
  },
  render: renderModel,
});

function inferredShapes(model: OnnxModel, asked: ReadonlyMap<string, readonly number[]>): ModelShapes {
  const { graph } = model.proto;
  return inferShapes(model, asked, requestedSizes(feedInputs(graph!).map(valueFacts), asked));
}
