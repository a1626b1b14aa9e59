import { defineCommand, type TextOutput } from '../../../cli/command.js';
import { searchOptions } from '../../../cli/options/build.js';
import { shortIdentity } from '../../../engines/identity/identity.js';
import { type ExitCode, outcomeExitCodes } from '../../../errors.js';
import type { Which } from '../which/result.js';
import { machineOptions, whichEngines } from '../which/which.js';

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
    ...machineOptions,
    ...searchOptions,
  },
  schema: async () => (await import('../which/result.js')).whichSchema,
  run: async ([query = ''], options, context): Promise<Which & { exitCode: ExitCode }> => {
    const result = await whichEngines({ query, ...options }, context);
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
    for (const { name: engine, identity, verdict, rule, reason, warning } of loads) {
      const isShared = loads.filter((each) => each.name === engine).length > 1;
      const id = isShared && identity !== null ? `  ${shortIdentity(identity)}` : '';
      line(`  ${paint[verdict](verdict)}  ${engine}${id}  ${dim(`${rule}: ${reason}`)}`);
      if (warning !== null) line(`  ${yellow('warning')}  ${warning}`);
    }
    if (best !== null) line(`  ${bold('take')}  ${best}`);
    if (build !== null) line(`  ${bold('build')}  ${build}`);
    if (chosen !== null) line(`  ${dim(chosen)}`);
  }
}
