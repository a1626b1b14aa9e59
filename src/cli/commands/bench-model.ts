import { benchModel } from '../../quality/bench/bench-model.js';
import { defineCommand } from '../command.js';
import { limited, timeoutOption } from '../options/timeout.js';
import { modelBenchOptions, modelBenchRequest } from './bench-options.js';
import { renderBench } from './bench-text.js';

export const command = defineCommand({
  arguments: [{ name: 'MODEL', describe: 'an ONNX model: host times of ONNX Runtime' }],
  examples: [
    'trtforge bench model model.onnx --batch 1,8',
    'trtforge bench model model.onnx --provider cuda',
  ],
  options: { ...modelBenchOptions, ...timeoutOption },
  schema: async () => (await import('../../quality/bench/result.js')).benchResultSchema,
  run: limited(([model = ''], options, context) => benchModel(modelBenchRequest(model, options), context)),
  render: renderBench,
});
