import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import {
  type BenchCase,
  type BenchContext,
  generate,
  load,
  NO_OTHER_CLONE,
  OTHER_CLONE,
  ofOtherClone,
  peersOr,
  trtforge,
} from '../context.js';
import { CommandFailed, measureCommands } from '../measure.js';
import { costs } from '../result.js';

const PEER = `
import onnx, sys
from onnxconverter_common import float16
onnx.save(float16.convert_float_to_float16(onnx.load(sys.argv[1]), keep_io_types=True), sys.argv[2])
`;

/** Each is tens of seconds of processor time: more runs made the case longer than all others together. */
const MOST_RUNS = 2;

/**
 * Whole conversions from file to file, all in one round of turns, so that each is measured once a round: to FP16 beside onnxconverter-common's, to 4 bits after the
 * calibration beside the one to FP16, and without data, so that nothing but the weights is read, beside another clone's: what a change of the loops costs.
 */
export const convert: BenchCase = {
  name: 'convert',
  run: async (context) => {
    const skipped: string[] = [];
    const model = generate(context, 'matmul-stack', '1.5GB');
    const result = join(context.folder, 'converted.onnx');
    const to = (precision: string, ...more: string[]) =>
      trtforge(context, 'convert', model, '--precision', precision, ...more, '-o', result);
    const cache = await calibrated(context, (...more) => to('int4', ...more));
    const peers = peersOr(context, skipped);
    const others = ['int4', 'nvfp4'].flatMap((precision) => {
      const other = ofOtherClone('convert', model, '--precision', precision, '-o', result);
      return other === undefined ? [] : [to(precision), other];
    });
    if (others.length === 0) skipped.push(NO_OTHER_CLONE);
    const commands = [
      to('fp16'),
      to('int4', '--calibration-cache', cache),
      to('nvfp4', '--calibration-cache', cache),
      ...others,
      ...(peers === undefined ? [] : [[peers.python, '-c', PEER, model, result]]),
    ];
    const measured = measureCommands(commands, {
      runs: Math.min(context.runs, MOST_RUNS),
      // The model was written a moment ago.
      warmups: 0,
      before: () => {
        rmSync(result, { force: true });
        rmSync(`${result}.data`, { force: true });
      },
    });
    const [fp16, int4, nvfp4, ...more] = measured;
    const peer = peers && { name: 'onnxconverter-common', runs: measured.at(-1)! };
    const toFp16 = { name: 'to FP16', runs: fp16! };
    const besideOther = (precision: string, at: number) =>
      others.length === 0
        ? []
        : costs(
            `FP32 to ${precision} without data, file to file`,
            more[at]!,
            { name: OTHER_CLONE, runs: more[at + 1]! },
            { seconds: 12 },
          );
    return {
      case: 'convert',
      title: 'Convert 1.5 GB from FP32 (at most 2 runs, without a warm-up)',
      commands: [
        'trtforge convert MODEL --precision fp16 -o RESULT',
        'python: onnx.save(float16.convert_float_to_float16(onnx.load(MODEL), keep_io_types=True), RESULT)',
        'trtforge convert MODEL --precision int4 --calibration-cache CACHE -o RESULT',
      ],
      measurements: [
        ...costs('FP32 to FP16, file to file', fp16!, peer, { seconds: 5, megabytes: 250 }),
        ...costs('FP32 to INT4, file to file', int4!, toFp16, { megabytes: 250 }),
        ...costs('FP32 to NVFP4, file to file', nvfp4!, toFp16, { megabytes: 250 }),
        ...besideOther('INT4', 0),
        ...besideOther('NVFP4', 2),
      ],
      skipped,
    };
  },
};

/** The cache of a calibration, whose moments choose scales and correct biases. */
async function calibrated(
  context: BenchContext,
  convert: (...more: string[]) => readonly string[],
): Promise<string> {
  const { writeNpy } = await load(context, 'formats/tensor/npy.js');
  const samples = join(context.folder, 'samples.npy');
  const cache = join(context.folder, 'calibration.json');
  const values = Float32Array.from({ length: 4 * 1024 }, (_, i) => Math.sin(i * 12.9898));
  writeNpy(samples, { dtype: 'float32', shape: [4, 1024], bytes: new Uint8Array(values.buffer) });
  const [program = '', ...parameters] = convert('--calibration-cache', cache, '--calibration', samples);
  const { status, stderr } = spawnSync(program, parameters, { encoding: 'utf8' });
  if (status !== 0) throw new CommandFailed(`The calibration failed: ${stderr}`);
  return cache;
}
