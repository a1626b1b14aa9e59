import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type BenchCase, generate, trtforge } from '../context.js';
import { measureCommand } from '../measure.js';
import { costs } from '../result.js';

const MODELS = 50;

const TARGETS = [
  'tensorrt@10.13.3.9:sm_89',
  'tensorrt@10.13.3.9:sm_90',
  'tensorrt@10.6.0.26:sm_80',
  'tensorrt-rtx@1.7.1.116:sm_120',
];

/** What it costs to know of every engine of a fleet whether a store has it. */
export const fleet: BenchCase = {
  name: 'fleet',
  run: (context) => {
    const models = Array.from({ length: MODELS }, (_, seed) => {
      const path = generate(context, 'resnet50', 'tiny', '--seed', String(seed + 1));
      const own = join(context.folder, `fleet-${seed}.onnx`);
      renameSync(path, own);
      return own;
    });
    const file = join(context.folder, 'engines.yaml');
    const targets = TARGETS.map((target, index) => `  t${index}: { target: '${target}' }`);
    const entries = models.map((model) => `  - { model: ${model}, precision: fp16, batch: 1/4/8 }`);
    writeFileSync(file, `store: fleet\ntargets:\n${targets.join('\n')}\nmodels:\n${entries.join('\n')}\n`);
    const plan = trtforge(context, 'fleet', 'plan', file);
    const first = measureCommand(plan, { runs: 1, warmups: 0 });
    const again = measureCommand(plan, { runs: context.runs });
    const what = `plan ${MODELS} models for ${TARGETS.length} targets`;
    return {
      case: 'fleet',
      title: `A fleet of ${MODELS * TARGETS.length} engines`,
      commands: ['trtforge fleet plan engines.yaml'],
      measurements: [
        ...costs(`${what}, models not read before`, first, undefined, {}),
        ...costs(what, again, undefined, { seconds: 2 }),
      ],
      skipped: [],
    };
  },
};
