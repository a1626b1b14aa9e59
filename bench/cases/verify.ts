import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import {
  type BenchCase,
  type BenchContext,
  generate,
  NO_OTHER_CLONE,
  OTHER_CLONE,
  ofOtherClone,
  trtforge,
} from '../context.js';
import { CommandFailed, measureCommands, median } from '../measure.js';

/** Family, size and the file of each generated model; a folder where the family writes several. */
const MODELS = [
  ['resnet50', 'tiny'],
  ['resnet50', 'small'],
  ['transformer-encoder', 'tiny'],
  ['transformer-encoder', 'small'],
  ['parakeet', 'tiny', 'encoder.onnx'],
  ['parakeet', 'tiny', 'predictor.onnx'],
  ['parakeet', 'tiny', 'joint.onnx'],
  ['streaming-encoder', 'tiny', 'encoder_streaming.onnx'],
] as const;

/** Pass, fail, inconclusive. */
const VERDICTS = [0, 1, 4];

/** How many times the processor time of the other clone. */
const BASE_RATIO = 1.5;

/** `verify` of an FP16 conversion beside its original, drawn inputs, for eight generated models; in turns with another clone's where BENCH_BASE names one. */
export const verify: BenchCase = {
  name: 'verify',
  run: (context) => {
    const lines = MODELS.map(([family, size, file]) => {
      const { original, converted } = pairOf(context, family, size, file);
      const words = ['verify', converted, '--against', original, '--quiet'];
      const sides = [trtforge(context, ...words), ofOtherClone(...words)].filter(
        (side) => side !== undefined,
      );
      const [own, other] = measureCommands(sides, { runs: context.runs, codes: VERDICTS });
      const seconds = (runs = own) => runs?.median.cpuSeconds ?? runs?.median.seconds ?? Number.NaN;
      const name = [family, size, file?.replace('.onnx', '')].filter(Boolean).join(' ');
      return { name, own: seconds(), other: other && seconds(other) };
    });
    const ours = median(lines.map(({ own }) => own));
    const others = lines.flatMap(({ other }) => other ?? []);
    const peer = others.length === 0 ? undefined : { name: OTHER_CLONE, figure: median(others) };
    return {
      case: 'verify',
      title: 'Verify eight FP16 models',
      commands: [
        'trtforge verify FP16 --against MODEL',
        ...(peer === undefined ? [] : ['the same of the clone that BENCH_BASE names']),
      ],
      measurements: [
        {
          what: 'one verdict, median of the models, processor time',
          unit: 's',
          ours,
          ...(peer && {
            peer,
            bar: { limit: Number((BASE_RATIO * peer.figure).toFixed(2)), better: 'lower' as const },
          }),
        },
      ],
      tables: [
        {
          caption: 'Processor time of one verdict, s',
          head: ['model', 'ours', ...(peer === undefined ? [] : [OTHER_CLONE, 'times'])],
          rows: lines.map(({ name, own, other }) => [
            name,
            own.toFixed(2),
            ...(other === undefined ? [] : [other.toFixed(2), (own / other).toFixed(2)]),
          ]),
        },
      ],
      skipped: peer === undefined ? [NO_OTHER_CLONE] : [],
    };
  },
};

function pairOf(context: BenchContext, family: string, size: string, file?: string) {
  const path = generate(context, family, size);
  const original = file === undefined ? path : join(path, file);
  const converted = `${original}.fp16.onnx`;
  const command = ['convert', original, '--precision', 'fp16', '-o', converted];
  const [program = '', ...parameters] = trtforge(context, ...command);
  const { status, stderr } = spawnSync(program, parameters, { encoding: 'utf8' });
  if (status !== 0) throw new CommandFailed(`${original} could not be converted: ${stderr}`);
  return { original, converted };
}
