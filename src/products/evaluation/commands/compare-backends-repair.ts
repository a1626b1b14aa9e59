import { defineCommand } from '../../../cli/command.js';
import { writeComparison } from '../compare/compare-backends.js';
import type { Comparison } from '../compare/result.js';
import { renderComparison } from './compare-backends.js';

export const command = defineCommand({
  arguments: [{ name: 'ROOT', describe: 'the run root of compare-backends' }],
  examples: ['trtforge compare-backends repair tmp/compare-yolov10m/2026-11-23_09-30-00'],
  options: {},
  schema: async () => (await import('../compare/result.js')).comparisonSchema,
  run: async ([root = '']): Promise<Comparison> =>
    writeComparison(root, { ran: new Set(), warnings: [], repeat: null }),
  render: renderComparison,
});
