import { basename, dirname, join } from 'node:path';
import { statIfThere } from '../../../base/files/files.js';
import { allBut } from '../../../base/options/option.js';
import { shellLine, shellQuote } from '../../../base/text/shell-line.js';
import { defineCommand, type TextOutput } from '../../../cli/command.js';
import { changedModel } from '../../../engines/plan/context-model.js';
import { passportHere } from '../../../engines/run/run-file.js';
import {
  type DeepstreamConfig,
  deepstreamConfigSchema,
  writeDeepstreamConfig,
} from '../config/write-config.js';
import { configOptions } from '../options.js';

export const command = defineCommand({
  arguments: [{ name: 'FILE', describe: 'an engine, or the ONNX model that nvinfer builds one from' }],
  examples: [
    'trtforge deepstream config models/yolo/benchmarks/engines/yolo_dynamic_b64.engine -o models/yolo/config',
    'trtforge deepstream config detector.onnx -o deepstream --size 640x640 --labels coco.txt --batch 4',
  ],
  options: allBut(configOptions, 'file'),
  schema: async () => deepstreamConfigSchema,
  run: async ([file = ''], options, context): Promise<DeepstreamConfig> => {
    const written = writeDeepstreamConfig({ file, ...options });
    const { engine, model, warnings } = written;
    const passport = model === null ? null : passportHere(engine);
    const changed = passport && (await changedModel(engine, passport, context, model!));
    return changed === null ? written : { ...written, warnings: [...warnings, changed] };
  },
  render,
});

function render({ name, files, engine, assumed, warnings }: DeepstreamConfig, output: TextOutput): void {
  const { dim, yellow } = output.colors;
  for (const file of files) output.line(file);
  for (const each of assumed) output.line(dim(`  Assumed: ${each}`));
  for (const each of warnings) output.line(`  ${yellow('warning')} ${each}`);
  const makefile = files.find((file) => basename(file) === 'Makefile');
  if (makefile !== undefined)
    output.line(`${dim('Next, for the parser:')} make -C ${shellQuote(dirname(makefile))}`);
  const repository = join(dirname(files.at(-1)!), '..', 'triton');
  // One that nvinfer builds has no passport, which Triton's configuration is made from.
  const served = statIfThere(engine) === undefined ? 'ENGINE' : engine;
  const line = shellLine(['trtforge', 'triton', 'export', served, '-o', repository, '--name', name]);
  output.line(`${dim('Next, for nvinferserver:')} ${line}`);
}
