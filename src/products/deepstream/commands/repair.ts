import { defineCommand } from '../../../cli/command.js';
import { modelOfFolder } from '../from-logs.js';
import { defaultLimits } from '../options.js';
import { streamsFromLogs } from '../repair.js';
import type { StreamsResult } from '../result.js';
import { answerOptions } from './options.js';
import { renderStreams } from './size.js';

export const command = defineCommand({
  arguments: [{ name: 'MODEL', describe: 'the ONNX model, or models/NAME' }],
  examples: ['trtforge deepstream repair models/yolo'],
  options: answerOptions,
  schema: async () => (await import('../schema.js')).streamsResultSchema,
  run: async ([model = ''], { fps, name, root }): Promise<StreamsResult> => {
    const onnx = /\.onnx$/i.test(model) ? model : modelOfFolder(model);
    return streamsFromLogs({ model: onnx, names: { name, root }, limits: { ...defaultLimits, fps } });
  },
  render: renderStreams,
});
