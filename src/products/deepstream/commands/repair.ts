import { defineCommand } from '../../../cli/command.js';
import { modelOfFolder, streamsFromLogs } from '../repair.js';
import type { StreamsResult } from '../result.js';
import { answerOptions, defaultLimits } from './options.js';
import { renderStreams } from './size.js';

export const command = defineCommand({
  arguments: [{ name: 'MODEL', describe: 'the ONNX model, or models/NAME' }],
  examples: ['trtforge deepstream repair models/yolo'],
  options: answerOptions,
  schema: async () => (await import('../result.js')).streamsResultSchema,
  run: async ([model = ''], { fps, name, root }): Promise<StreamsResult> => {
    const onnx = /\.onnx$/i.test(model) ? model : modelOfFolder(model);
    const limits = { ...defaultLimits, fps: fps ?? defaultLimits.fps };
    return streamsFromLogs({ model: onnx, names: { name, root }, limits });
  },
  render: renderStreams,
});
