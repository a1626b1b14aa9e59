import { assertNoFolder } from '../../base/files/user-files.js';
import { refitEngine, refitOptions } from '../../quality/known-answer/refit.js';
import { defineCommand } from '../command.js';
import { type BuildReport, command as build, buildReport } from './build.js';

const { output, device, plugins, toolchain, identity } = refitOptions;

export const command = defineCommand({
  arguments: [
    { name: 'ENGINE', describe: 'an engine that was built with --refit, which its GPU runs' },
    { name: 'MODEL', describe: 'an ONNX model with the same graph and other weights' },
  ],
  examples: [
    'trtforge engine refit model.engine retrained.onnx -o retrained.engine',
    'trtforge build model.onnx --refit -o model.engine',
  ],
  options: { output, device, plugins, toolchain, identity },
  schema: build.schema,
  run: async ([engine = '', model = ''], options, context): Promise<BuildReport> => {
    assertNoFolder(options.output, "the engine's file", 'new.engine');
    return buildReport(await refitEngine({ engine, model, ...options }, context));
  },
  render: build.render,
});
