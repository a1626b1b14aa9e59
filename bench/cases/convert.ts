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
import { CommandFailed, type MeasureOptions, measureBeside } from '../measure.js';
import { costs, type Measurement } from '../result.js';

const PEER = `
import onnx, sys
from onnxconverter_common import float16
onnx.save(float16.convert_float_to_float16(onnx.load(sys.argv[1]), keep_io_types=True), sys.argv[2])
`;

/** Whole conversions from file to file: to FP16 beside onnxconverter-common's, to 4 bits beside the one to FP16. */
export const convert: BenchCase = {
  name: 'convert',
  run: async (context) => {
    const skipped: string[] = [];
    const model = generate(context, 'matmul-stack', '1.5GB');
    const result = join(context.folder, 'converted.onnx');
    const fresh = {
      ...context,
      before: () => {
        rmSync(result, { force: true });
        rmSync(`${result}.data`, { force: true });
      },
    };
    const command = trtforge(context, 'convert', model, '--precision', 'fp16', '-o', result);
    const peers = peersOr(context, skipped);
    const { ours, peer } = measureBeside(
      command,
      peers && { name: 'onnxconverter-common', argv: [peers.python, '-c', PEER, model, result] },
      fresh,
    );
    return {
      case: 'convert',
      title: 'Convert 1.5 GB from FP32',
      commands: [
        'trtforge convert MODEL --precision fp16 -o RESULT',
        'python: onnx.save(float16.convert_float_to_float16(onnx.load(MODEL), keep_io_types=True), RESULT)',
        'trtforge convert MODEL --precision int4 --calibration-cache CACHE -o RESULT',
      ],
      measurements: [
        ...costs('FP32 to FP16, file to file', ours, peer, { seconds: 5, megabytes: 250 }),
        ...(await fourBits(context, model, result, command, fresh)),
        ...besideOtherClone(context, model, result, fresh),
      ],
      skipped: ofOtherClone() === undefined ? [...skipped, NO_OTHER_CLONE] : skipped,
    };
  },
};

/** Without data, so that nothing but the weights is read, in turns with another clone's: what a change of the loops costs. */
function besideOtherClone(
  context: BenchContext,
  model: string,
  result: string,
  fresh: MeasureOptions,
): readonly Measurement[] {
  return ['int4', 'nvfp4'].flatMap((precision) => {
    const words = ['convert', model, '--precision', precision, '-o', result];
    const other = ofOtherClone(...words);
    if (other === undefined) return [];
    const { ours, peer } = measureBeside(
      trtforge(context, ...words),
      { name: OTHER_CLONE, argv: other },
      fresh,
    );
    return costs(`FP32 to ${precision.toUpperCase()} without data, file to file`, ours, peer, {
      seconds: 12,
    });
  });
}

/** After the calibration, whose moments choose scales and correct biases. */
async function fourBits(
  context: BenchContext,
  model: string,
  result: string,
  fp16: readonly string[],
  fresh: MeasureOptions,
): Promise<Measurement[]> {
  const { writeNpy } = await load(context, 'formats/tensor/npy.js');
  const samples = join(context.folder, 'samples.npy');
  const cache = join(context.folder, 'calibration.json');
  const values = Float32Array.from({ length: 4 * 1024 }, (_, i) => Math.sin(i * 12.9898));
  writeNpy(samples, { dtype: 'float32', shape: [4, 1024], bytes: new Uint8Array(values.buffer) });
  const to = (precision: string, ...more: string[]) =>
    trtforge(
      context,
      'convert',
      model,
      '--precision',
      precision,
      '--calibration-cache',
      cache,
      ...more,
      '-o',
      result,
    );
  const [program = '', ...parameters] = to('int4', '--calibration', samples);
  const { status, stderr } = spawnSync(program, parameters, { encoding: 'utf8' });
  if (status !== 0) throw new CommandFailed(`The calibration failed: ${stderr}`);
  return ['int4', 'nvfp4'].flatMap((precision) => {
    const { ours, peer } = measureBeside(to(precision), { name: 'to FP16', argv: fp16 }, fresh);
    return costs(`FP32 to ${precision.toUpperCase()}, file to file`, ours, peer, {
      megabytes: 250,
    });
  });
}
