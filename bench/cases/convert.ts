import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { type BenchCase, generate, peersOr, trtforge } from '../context.js';
import { measureBeside } from '../measure.js';
import { costs } from '../result.js';

const PEER = `
import onnx, sys
from onnxconverter_common import float16
onnx.save(float16.convert_float_to_float16(onnx.load(sys.argv[1]), keep_io_types=True), sys.argv[2])
`;

/** A whole conversion from file to file, beside onnxconverter-common's. */
export const convert: BenchCase = {
  name: 'convert',
  run: (context) => {
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
      title: 'Convert 1.5 GB from FP32 to FP16',
      commands: [
        'trtforge convert MODEL --precision fp16 -o RESULT',
        'python: onnx.save(float16.convert_float_to_float16(onnx.load(MODEL), keep_io_types=True), RESULT)',
      ],
      measurements: costs('FP32 to FP16, file to file', ours, peer, { seconds: 5, megabytes: 250 }),
      skipped,
    };
  },
};
