import { valuesOf } from '../../../base/options/option.js';
import { defineCommand, type TextOutput } from '../../../cli/command.js';
import { option, text } from '../../../cli/option.js';
import { searchOptions } from '../../../cli/options/store.js';
import { parseGpu } from '../../../engines/identity/target.js';
import { type ExitCode, outcomeExitCodes } from '../../../errors.js';
import type { Which } from '../which/which.js';

export const command = defineCommand({
  arguments: [
    {
      name: 'ENGINE',
      describe: 'an ONNX model, an engine file (or ONNX file around one), or part of a name in the store',
    },
  ],
  examples: [
    'trtforge which det.onnx --on inventory.yaml',
    'trtforge which det_fp16 --triton 24.05-py3 --gpu L4 --json',
  ],
  options: {
    on: text({ flags: '--on <inventory>', describe: 'machines: GPU, TensorRT, driver, container (YAML)' }),
    triton: text({ flags: '--triton <tag>', describe: 'a machine with this container of Triton: 24.05-py3' }),
    deepstream: text({ flags: '--deepstream <version>', describe: 'a machine with this DeepStream: 9.0' }),
    gpu: option({
      flags: '--gpu <gpu>',
      describe: 'the GPU of --triton and --deepstream (default: TensorRT alone is judged)',
      parse: parseGpu,
    }),
    ...searchOptions,
  },
  schema: async () => (await import('../which/which.js')).whichSchema,
  run: async ([query = ''], options, context): Promise<Which & { exitCode: ExitCode }> => {
    const { on: inventory, triton, deepstream, gpu } = options;
    const { whichEngines } = await import('../which/engines.js');
    const asked = { query, inventory, triton, deepstream, gpu, ...valuesOf(searchOptions, options) };
    const result = await whichEngines(asked, context);
    return { ...result, exitCode: outcomeExitCodes[result.outcome] };
  },
  render,
});

function render({ machines }: Which, { line, colors: { bold, dim, green, red, yellow } }: TextOutput): void {
  const paint = { yes: green, 'if-allowed': green, no: red, unknown: yellow };
  for (const { name, gpu, tensorrt, driver, loads, best, build, chosen } of machines) {
    const note = tensorrt?.cudaMajor == null ? ' (not judged: no +cuda13 behind the version)' : '';
    const facts = [
      gpu === null ? 'GPU not judged' : `sm_${gpu.capability}`,
      tensorrt === null ? 'unknown TensorRT' : `${tensorrt.product} ${tensorrt.version}`,
      ...(driver === null ? [] : [`driver ${driver}${note}`]),
    ];
    line(`${bold(name)}  ${dim(facts.join(', '))}`);
    if (loads.length === 0) line(`  ${red('no')}  The stores have no engine of this model.`);
    for (const { name: engine, verdict, rule, reason, warning } of loads) {
      line(`  ${paint[verdict](verdict)}  ${engine}  ${dim(`${rule}: ${reason}`)}`);
      if (warning !== null) line(`  ${yellow('warning')}  ${warning}`);
    }
    if (best !== null) line(`  ${bold('take')}  ${best}`);
    if (build !== null) line(`  ${bold('build')}  ${build}`);
    if (chosen !== null) line(`  ${dim(chosen)}`);
  }
}
