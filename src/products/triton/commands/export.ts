import { join } from 'node:path';
import { allBut } from '../../../base/options/option.js';
import { defineCommand } from '../../../cli/command.js';
import type { TritonExport } from '../export/export-models.js';
import { exportOptions } from '../export/options.js';

export const command = defineCommand({
  arguments: [
    {
      name: 'ENGINES',
      describe: 'of one model: files, parts of names in the store (resnet*fp16), starts of identities',
      many: true,
    },
  ],
  examples: [
    'trtforge triton export resnet50.engine -o models --delay 500us',
    'trtforge triton export resnet50_fp16 -o models --name resnet50 --instances 2',
    'trtforge triton export encoder.engine -o models --contract encoder.contract.json',
    'trtforge triton export encoder.engine predictor.engine joint.engine -o models --bundle model_meta.json',
  ],
  options: allBut(exportOptions, 'engines', 'force'),
  schema: async () => (await import('../export/export-models.js')).tritonExportSchema,
  run: async (engines, options, context): Promise<TritonExport> => {
    const { exportModels } = await import('../export/export-models.js');
    return exportModels({ ...options, engines, force: context.force }, context);
  },
  render: (result, { line, colors }) => {
    for (const { name, version, maxBatchSize, plans, states } of result.models) {
      const batch = maxBatchSize === 0 ? 'no batching' : `batch up to ${maxBatchSize}`;
      const kept = states.length === 0 ? '' : `, states: ${states.map(({ input }) => input).join(', ')}`;
      line(`${colors.bold(name)} version ${version}  ${batch}${kept}`);
      for (const { capability, path } of plans) line(`  ${capability}  ${path}`);
    }
    for (const file of result.client) line(`client  ${join(result.repository, file)}`);
    for (const warning of result.warnings) line(`${colors.yellow('warning')} ${warning}`);
    line(
      `${colors.dim('Next:')} tritonserver --model-repository=${result.repository} --disable-auto-complete-config`,
    );
  },
});
