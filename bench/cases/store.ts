import { join } from 'node:path';
import { type BenchCase, generate, trtforge } from '../context.js';
import { measureCommand } from '../measure.js';
import { costs } from '../result.js';

const RUNS = 9;

/** `build` of a 100 MB model whose engine is in the store: what a deployment script pays each time. */
export const store: BenchCase = {
  name: 'store',
  run: (context) => {
    const model = generate(context, 'matmul-stack', '100MB');
    const shapes = ['--profile', 'x:1x1024/8x1024/32x1024'];
    const target = ['--target', 'tensorrt-rtx:sm_89', '--cache-dir', join(context.folder, 'store')];
    const command = trtforge(context, 'build', model, ...shapes, ...target);
    const first = measureCommand(command, { runs: 1, warmups: 0 });
    const again = measureCommand(command, { runs: Math.max(RUNS, context.runs) });
    return {
      case: 'store',
      title: 'Find a 100 MB model’s engine in the local store',
      commands: [
        `trtforge build MODEL ${[...shapes, '--target', 'tensorrt-rtx:sm_89'].join(' ')} --cache-dir FOLDER`,
      ],
      measurements: [
        ...costs('first time: built', first, undefined, {}),
        ...costs('again: from the store', again, { name: 'the build itself', runs: first }, { seconds: 0.3 }),
      ],
      skipped: [],
    };
  },
};
