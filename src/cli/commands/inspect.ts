import { isEngineFile } from '../../engines/plan/header.js';
import { TrtforgeError } from '../../errors.js';
import { modelFacts } from '../../formats/onnx/inspect.js';
import { openModel } from '../../formats/onnx/model.js';
import type { ModelFacts } from '../../formats/onnx/model-facts.js';
import { listNodes } from '../../formats/onnx/node-list.js';
import { listWeights } from '../../formats/onnx/weight-list.js';
import { defineCommand } from '../command.js';
import { flag, option } from '../option.js';
import { pattern } from '../values.js';
import { renderModel } from './inspect-text.js';

export const command = defineCommand({
  examples: [
    'trtforge inspect model.onnx',
    'trtforge inspect model.onnx --json | jq .inputs',
    "trtforge inspect model.onnx --nodes '^Conv$'",
    'trtforge inspect model.onnx --check-weights',
  ],
  arguments: [{ name: 'MODEL', describe: 'an ONNX model' }],
  options: {
    nodes: option({
      flags: '--nodes <regex>',
      describe: 'list the nodes whose name or operator matches, with their attributes; . for all',
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
  run: async ([file = ''], { nodes, weights, checkWeights }, context): Promise<ModelFacts> => {
    if (isEngineFile(file))
      throw new TrtforgeError('TF_USAGE', `${file} is a TensorRT plan, not an ONNX model.`, {
        remedy: `Run: trtforge engine inspect ${file}`,
      });
    const model = openModel(file);
    try {
      const facts = {
        ...modelFacts(model),
        ...(nodes === undefined ? {} : { nodeList: listNodes(model, nodes) }),
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
