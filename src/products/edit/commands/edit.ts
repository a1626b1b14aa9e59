import { formatBytes, formatCount, formatMs, plural } from '../../../base/text/quantity.js';
import { defineCommand, type TextOutput } from '../../../cli/command.js';
import { text } from '../../../cli/option.js';
import { type ExitCode, outcomeExitCodes } from '../../../errors.js';
import { judgingSampleOptions } from '../../../formats/precision/options.js';
import { formatMeasure } from '../../../report/sentences.js';
import { applySteps, editOptions } from '../edit.js';
import type { EditProof, EditResult } from '../result.js';
import { stepOptions, stepsOf } from '../steps/steps.js';

const { seed, samples, shapes, threads } = editOptions;

export const command = defineCommand({
  arguments: [{ name: 'MODEL', describe: 'an ONNX model of any size, with or without external data' }],
  examples: [
    'trtforge edit model.onnx -o folded.onnx --set-dim batch=1 --fold',
    'trtforge edit yolo.onnx -o head.onnx --extract images:scores --rename scores=output',
    'trtforge edit model.onnx -o model.opset17.onnx --opset 17 --ir 8 --json',
  ],
  options: {
    output: text({
      flags: '-o, --output <file>',
      describe: 'where the edited model goes, once it is proven',
      writes: ['an ONNX model'],
      required: '-o edited.onnx',
    }),
    ...stepOptions,
    inputs: { ...judgingSampleOptions.files, group: 'Proof' },
    samples: { ...samples, group: 'Proof' },
    seed: { ...seed, group: 'Proof' },
    shapes: { ...shapes, group: 'Proof' },
    threads: { ...threads, group: 'Proof' },
    unproven: editOptions.unproven,
    externalData: editOptions.externalData,
  },
  schema: async () => (await import('../result.js')).editSchema,
  run: async (
    [model = ''],
    options,
    { emit, signal, order = [] },
  ): Promise<EditResult & { exitCode: ExitCode }> => {
    const steps = stepsOf(options, order);
    const { inputs, ...others } = options;
    const data = inputs.length === 0 ? undefined : { files: inputs };
    const result = await applySteps({ ...others, model, steps, data }, { emit, signal });
    return { ...result, exitCode: outcomeExitCodes[result.proof.outcome] };
  },
  render,
});

function render(result: EditResult, output: TextOutput): void {
  const { bold, dim, green, red, yellow } = output.colors;
  const { proof, nodes, bytes } = result;
  const colored = { pass: green('pass'), fail: red('FAIL'), inconclusive: yellow('not proven') };
  const size = bytes.after === null ? '' : `  ${formatBytes(bytes.before)} → ${formatBytes(bytes.after)}`;
  output.line(
    `${colored[proof.outcome]}  ${bold(result.output ?? result.input)}  ${formatCount(nodes.before)} → ${plural(nodes.after, 'node')}${size}  ${dim(`in ${formatMs(result.ms)}`)}`,
  );
  for (const { step, did } of result.steps) output.line(`  ${step}  ${dim(did ?? 'changes nothing')}`);
  if (!result.changed) output.line('Nothing was changed: the model is written as it was.');
  else output.line(proofSentence(proof));
  for (const { name, was, equal, largestError } of proof.outputs) {
    if (!result.changed) break;
    const what = { bits: 'equal bit by bit', rounding: 'equal to the last rounding of FP32' };
    const error =
      equal === 'bits' || largestError === null ? '' : `, at most ${formatMeasure(largestError)} off`;
    output.line(
      `  ${name}${name === was ? '' : dim(` (${was})`)}  ${equal === null ? red('differs') : what[equal]}${error}`,
    );
  }
  for (const { input, axis, stored, sizes } of proof.opened)
    output.line(
      `  ${input}:${axis}  ${dim(`the original takes ${stored} alone; with ${sizes.join(' and ')} in the edited model each sample gives the same, of which no run of the original is proof`)}`,
    );
  for (const name of proof.unproven)
    output.line(`  ${name}  ${yellow('not proven')}: the original has no such value`);
  for (const reason of proof.reasons) output.line(`- ${reason}`);
  if (result.output === null)
    output.line(
      proof.outcome === 'fail'
        ? 'Nothing was written.'
        : 'Nothing was written. --unproven writes a model that cannot be run here.',
    );
}

function proofSentence({ outputs, samples, shapes }: EditProof): string {
  if (samples === 0) return 'Nothing was compared.';
  return `${plural(outputs.length, 'output')} compared with the original on ${plural(samples, 'sample')}, ${plural(shapes.length, 'set')} of shapes:`;
}
