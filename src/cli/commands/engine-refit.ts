import { assertNoFolder } from '../../base/files/user-files.js';
import { allBut, valuesOf } from '../../base/options/option.js';
import { refitEngine, refitOptions } from '../../quality/known-answer/refit.js';
import { defineCommand } from '../command.js';
import { inConfig } from '../option.js';
import { type BuildReport, command as build, buildReport } from './build.js';

const { output, device, plugins, toolchain, identity, ...trust } = allBut(refitOptions, 'engine', 'model');

export const command = defineCommand({
  arguments: [
    { name: 'ENGINE', describe: 'an engine that was built with --refit, which its GPU runs' },
    { name: 'MODEL', describe: 'an ONNX model with the same graph and other weights' },
  ],
  examples: [
    'trtforge engine refit model.engine retrained.onnx -o retrained.engine',
    'trtforge build model.onnx --refit -o model.engine',
  ],
  options: {
    ...{ output, device, plugins, toolchain, identity },
    requireSignature: inConfig(trust.requireSignature),
    trustKeys: inConfig(trust.trustKeys),
    signKey: inConfig(trust.signKey),
  },
  schema: build.schema,
  run: async ([engine = '', model = ''], options, context): Promise<BuildReport> => {
    assertNoFolder(options.output, "the engine's file", 'new.engine');
    const request = { engine, model, ...valuesOf(refitOptions, options), output: options.output };
    return buildReport(await refitEngine(request, context));
  },
  render: build.render,
});
