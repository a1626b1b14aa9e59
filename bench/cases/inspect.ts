import { rmSync } from 'node:fs';
import { type BenchCase, type BenchContext, generate, peersOr, trtforge } from '../context.js';
import { measureBeside } from '../measure.js';
import { costs, type Measurement } from '../result.js';

const files = [
  { what: '1 GiB in one file', size: '1GiB', more: [] },
  { what: '2 GiB of external data', size: '2GiB', more: ['--external'] },
];

/** `inspect` of large files, process start included, beside onnx.load. */
export const inspect: BenchCase = {
  name: 'inspect',
  run: (context) => {
    const skipped: string[] = [];
    return {
      case: 'inspect',
      title: 'Inspect a large model',
      commands: ['trtforge inspect MODEL --json', "python -c 'import onnx; onnx.load(MODEL)'"],
      measurements: files.flatMap((file) => measureFile(context, file, skipped)),
      skipped,
    };
  },
};

function measureFile(
  context: BenchContext,
  { what, size, more }: (typeof files)[number],
  skipped: string[],
): Measurement[] {
  const model = generate(context, 'matmul-stack', size, ...more);
  try {
    const peers = peersOr(context, skipped);
    const { ours, peer } = measureBeside(
      trtforge(context, 'inspect', model, '--json'),
      peers && {
        name: 'onnx.load',
        argv: [peers.python, '-c', 'import onnx, sys; onnx.load(sys.argv[1])', model],
      },
      context,
    );
    return costs(what, ours, peer, { seconds: 0.3, megabytes: 80 });
  } finally {
    rmSync(model);
    rmSync(`${model}.data`, { force: true });
  }
}
