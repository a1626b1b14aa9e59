import { basename, dirname, join } from 'node:path';
import { statIfThere } from '../../../base/files/files.js';
import { shellLine, shellQuote } from '../../../base/process/shell-quote.js';
import { defineCommand, type TextOutput } from '../../../cli/command.js';
import { choice, option, text } from '../../../cli/option.js';
import { integer, number } from '../../../cli/values.js';
import { changedModel } from '../../../engines/plan/model-beside.js';
import { passportHere } from '../../../engines/run/passport-inputs.js';
import { TrtforgeError } from '../../../errors.js';
import {
  type DeepstreamConfig,
  deepstreamConfigSchema,
  writeDeepstreamConfig,
} from '../config/write-config.js';

export const command = defineCommand({
  arguments: [{ name: 'FILE', describe: 'an engine, or the ONNX model that nvinfer builds one from' }],
  examples: [
    'trtforge deepstream config models/yolo/benchmarks/engines/yolo_dynamic_b64.engine -o models/yolo/config',
    'trtforge deepstream config detector.onnx -o deepstream --size 640x640 --labels coco.txt --batch 4',
  ],
  options: {
    output: text({
      flags: '-o, --output <folder>',
      describe: 'where the configurations go; of a folder named config the parser goes beside it',
      required: '-o models/NAME/config',
      writes: true,
    }),
    onnx: text({
      flags: '--onnx <model>',
      describe: 'the model of the engine (default: the one in models/NAME/model)',
    }),
    name: text({ flags: '--name <name>', describe: "the model's name in files (default: as its folder)" }),
    labels: text({
      flags: '--labels <file>',
      describe: 'names of the classes, one a line or YAML (default: those beside or in the model)',
    }),
    batch: option({
      flags: '--batch <n>',
      describe: "batch-size (default: the engine's largest, else 1)",
      parse: integer(1, 1024),
    }),
    scale: option({
      flags: '--scale <factor>',
      describe: 'net-scale-factor (default: from the files beside the model)',
      // nvinfer ignores a scale of 0, and the offsets with it.
      parse: number(1e-9),
    }),
    offsets: option({
      flags: '--offsets <r;g;b>',
      describe: 'what is subtracted before, as 123.675;116.28;103.53',
      parse: (list) => list.split(';').map(number(0, 255)),
    }),
    color: choice({ flags: '--color <order>', describe: 'order of the channels', choices: ['rgb', 'bgr'] }),
    fit: choice({
      flags: '--fit <how>',
      describe: 'how a picture fills the input; corner pads right and below alone',
      choices: ['stretch', 'letterbox', 'corner'],
    }),
    size: option({
      flags: '--size <HxW>',
      describe: 'height and width, where the model leaves them open',
      parse: parseSides,
    }),
  },
  schema: async () => deepstreamConfigSchema,
  run: async ([file = ''], { output, ...options }, context): Promise<DeepstreamConfig> => {
    const written = writeDeepstreamConfig({ file, folder: output, ...options });
    const { engine, model, warnings } = written;
    const passport = model === null ? null : passportHere(engine);
    const changed = passport && (await changedModel(engine, passport, context, model!));
    return changed === null ? written : { ...written, warnings: [...warnings, changed] };
  },
  render,
});

function parseSides(sides: string): readonly [number, number] {
  const [, height, width] = /^([1-9]\d{0,4})x([1-9]\d{0,4})$/.exec(sides) ?? [];
  if (height !== undefined && width !== undefined) return [Number(height), Number(width)];
  throw new TrtforgeError('TF_USAGE', `"${sides}" is not a size.`, { remedy: 'Write 640x640.' });
}

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
