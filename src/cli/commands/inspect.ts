import { isEngineFile } from '../../engines/plan/header.js';
import { TrtforgeError } from '../../errors.js';
import { inspectModel } from '../../formats/onnx/inspect.js';
import type { ModelFacts } from '../../formats/onnx/model-facts.js';
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
    return inspectModel(file, { shapes: shapesOf(shapes), nodes, weights, checkWeights }, context);
  },
  render: renderModel,
});
