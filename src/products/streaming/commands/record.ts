import { formatBytes, formatMs, plural } from '../../../base/text/quantity.js';
import { defineCommand, type TextOutput } from '../../../cli/command.js';
import { flag, given, option, text } from '../../../cli/option.js';
import {
  cudaGraphOption,
  engineOptions,
  engineOptionsGiven,
  engineWishes,
} from '../../../cli/options/engine.js';
import { integer } from '../../../cli/values.js';
import { ExitCode, TrtforgeError } from '../../../errors.js';
import { convertReference, draftContract, recordFile } from '../reference/record-file.js';
import type { ConvertedReference, DraftedContract, RecordResult } from '../reference/record-result.js';

type Result = RecordResult | ConvertedReference | DraftedContract;

export const command = defineCommand({
  name: 'record',
  summary: 'record a streaming reference, convert one, or draft a contract',
  arguments: [
    {
      name: 'FILE',
      describe: 'an ONNX model (run by ONNX Runtime on the CPU, in float32) or a TensorRT engine',
      optional: true,
    },
  ],
  examples: [
    'trtforge record encoder.onnx --contract encoder.contract.json --chunks 50 --seed 42 -o ref.jsonl',
    'trtforge record encoder.onnx --schedule 41,57 --chunks 300 --seed 42 -o ref/',
    'trtforge record --convert pytorch_reference_300.jsonl -o ref/',
    'trtforge record encoder.onnx --draft-contract encoder.contract.json --schedule 41,57',
  ],
  options: {
    contract: text({
      flags: '--contract <file>',
      describe: 'what is fed back and how long chunks are (default: by the names of the model)',
    }),
    schedule: option({
      flags: '--schedule <frames>',
      describe: 'frames of the first chunk and of the later ones: 41,57 (default: as in the contract)',
      parse: parseSchedule,
    }),
    chunks: option({
      flags: '--chunks <count>',
      describe: 'how many chunks to record (default: 50)',
      parse: integer(1, 10_000_000),
    }),
    seed: option({
      flags: '--seed <number>',
      describe: 'of the signal; the same seed gives the same signal everywhere (default: 0)',
      parse: integer(0),
    }),
    batch: option({
      flags: '--batch <count>',
      describe: 'streams side by side (default: 1)',
      parse: integer(1, 65_536),
    }),
    output: text({
      flags: '-o, --output <place>',
      describe: 'file.jsonl, or a folder: compact, state stored once',
      writes: true,
    }),
    convert: text({
      flags: '--convert <reference>',
      describe: 'write this reference in the form of -o, without loss',
    }),
    skipDamaged: flag({
      flags: '--skip-damaged',
      describe: 'with --convert: leave damaged lines out and list them (default: stop at the first)',
    }),
    draftContract: text({
      flags: '--draft-contract <file>',
      describe: 'write the contract that the names of the model suggest, and record nothing',
      writes: ['JSON (trtforge.contract)'],
    }),
    threads: option({
      flags: '--threads <count>',
      describe: 'models: threads of ONNX Runtime (default: one a core)',
      parse: integer(1, 1024),
    }),
    device: option({
      flags: '--device <number>',
      describe: 'engines: which of the visible GPUs runs it (default: 0)',
      parse: integer(0),
    }),
    ...engineOptions,
    cudaGraph: cudaGraphOption,
  },
  run: async ([file], options, context): Promise<Result & { exitCode?: ExitCode }> => {
    const { convert, draftContract: draft, output, schedule, contract, skipDamaged, device } = options;
    const { chunks, seed, batch, threads } = options;
    const ofRecording = { '--chunks': chunks, '--seed': seed, '--batch': batch, '--threads': threads };
    if (convert !== undefined) {
      if (file !== undefined || draft !== undefined)
        throw wrongUse('--convert takes a reference and no model.', 'Leave FILE and --draft-contract out.');
      const ofRuns = { '--contract': contract, '--schedule': schedule, ...ofRecording, '--device': device };
      const [wrong] = [...given(ofRuns), ...engineOptionsGiven(options)];
      if (wrong !== undefined)
        throw wrongUse('--convert records nothing and runs nothing on a GPU.', `Leave ${wrong} out.`);
      return convertReference(convert, needed(output, `--convert ${convert}`), { ...context, skipDamaged });
    }
    if (skipDamaged) throw wrongUse('--skip-damaged is for --convert.', 'Leave it out.');
    if (file === undefined)
      throw wrongUse('There is nothing to record.', 'Name a model or an engine, or --convert REFERENCE.');
    if (draft !== undefined) {
      const [wrong] = given({ '-o': output, '--contract': contract, ...ofRecording });
      if (wrong !== undefined) throw wrongUse('--draft-contract records nothing.', `Leave ${wrong} out.`);
      return draftContract(file, draft, schedule ?? [], { ...context, device, ...engineWishes(options) });
    }
    const wishes = {
      contract,
      schedule,
      chunks: chunks ?? 50,
      seed: seed ?? 0,
      batch: batch ?? 1,
      threads,
      device,
      ...engineWishes(options),
    };
    const result = await recordFile({ file, ...wishes, output: needed(output, file) }, context);
    const isSound = result.violations.length === 0 && result.warnings.length === 0;
    return { ...result, exitCode: isSound ? ExitCode.pass : ExitCode.failed };
  },
  render,
});

function parseSchedule(value: string): readonly number[] {
  const sizes = value.split(',').map((part) => part.trim());
  if (sizes.every((size) => /^[1-9]\d{0,8}$/.test(size))) return sizes.map(Number);
  throw new TrtforgeError('TF_USAGE', `«${value}» is no schedule.`, {
    remedy: 'Write the frames of the first chunk and of the later ones: 41,57.',
  });
}

function needed(output: string | undefined, what: string): string {
  if (output !== undefined) return output;
  throw wrongUse('There is no place for the reference.', `trtforge record ${what} -o ref.jsonl, or -o ref/`);
}

const wrongUse = (message: string, remedy: string): TrtforgeError =>
  new TrtforgeError('TF_USAGE', message, { remedy });

function render(result: Result, output: TextOutput): void {
  const { bold, dim, red, yellow } = output.colors;
  if (result.schema === 'trtforge.record-contract/1') {
    const { inputs, outputs, state, assertions } = result.contract;
    output.line(`${bold(result.output)}  ${dim(`drafted from ${result.file}`)}`);
    output.line(
      `${plural(inputs.length, 'input')}, ${plural(outputs.length, 'output')}, ${plural(assertions.length, 'assertion')}`,
    );
    for (const pair of state) output.line(`  ${pair.output} ${dim('becomes the next')} ${pair.input}`);
    return;
  }
  const saved = result.bytes < result.tensorBytes ? `, ${formatBytes(result.tensorBytes)} of tensors` : '';
  output.line(
    `${bold(result.output)}  ${dim(`${result.form}, ${plural(result.chunks, 'chunk')}, ${formatBytes(result.bytes)}${saved}`)}`,
  );
  if (result.schema === 'trtforge.record/1') {
    const { backend, provenance, stepMs, repeat } = result;
    output.line(
      dim(
        `${backend}, ${provenance.precision}, seed ${provenance.seed}, chunks of ${provenance.schedule.join(', then ')} frames`,
      ),
    );
    const rest = stepMs.median === null ? '' : `, then ${formatMs(stepMs.median)} (median)`;
    output.line(dim(`a step took ${formatMs(stepMs.first)}${rest}`));
    for (const { tensor, chunk, found, sentence } of result.violations)
      output.line(`${red('broken promise')} ${tensor}, chunk ${chunk}: ${found}  ${dim(sentence)}`);
    output.line(`${dim('again:')} ${repeat}`);
  } else for (const { line, why } of result.damaged) output.line(`${red('damaged')} line ${line}: ${why}`);
  for (const warning of result.warnings) output.line(`${yellow('warning')} ${warning}`);
}
