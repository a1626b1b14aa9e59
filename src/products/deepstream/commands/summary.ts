import { defineCommand } from '../../../cli/command.js';
import { factsOfModel } from '../../../formats/onnx/inspect.js';
import type { ModelFacts } from '../../../formats/onnx/model-facts.js';
import { deepstreamSummary } from '../model-summary.js';

export const command = defineCommand({
  arguments: [{ name: 'MODEL', describe: 'an ONNX model' }],
  examples: ['trtforge deepstream summary yolo.onnx | grep input_name'],
  options: {},
  schema: async () => (await import('../../../formats/onnx/model-facts.js')).modelFactsSchema,
  run: async ([file = '']): Promise<ModelFacts> => factsOfModel(file),
  render: (facts: ModelFacts, { line }) => {
    for (const each of deepstreamSummary(facts)) line(each);
  },
});
