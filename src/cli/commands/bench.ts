import { benchTools, benchWith } from '../../quality/bench/bench-engine.js';
import { checkBeforeUse, checkedSessionOptions } from '../../quality/known-answer/at-load.js';
import { defineCommand } from '../command.js';
import { choice } from '../option.js';
import { limited, timeoutOption } from '../options/timeout.js';
import { benchOptions, benchRequest } from './bench-options.js';
import { renderBench } from './bench-text.js';

export const command = defineCommand({
  arguments: [{ name: 'ENGINE', describe: 'a TensorRT engine' }],
  examples: [
    'trtforge bench resnet50.engine --batch 1,8,64 --no-data-transfers --graph --spin-wait',
    'trtforge bench model.engine --layers --samples times.npz --json',
    'trtforge bench model.engine --cold',
    'trtforge bench model.engine --with trtexec',
  ],
  options: {
    ...benchOptions,
    with: choice({
      flags: '--with <tool>',
      describe: 'what measures: trtforge itself, or the trtexec of the toolchain',
      choices: benchTools,
      default: 'trtforge',
      advanced: true,
    }),
    check: checkedSessionOptions.check,
    ...timeoutOption,
  },
  schema: async () => (await import('../../quality/bench/result.js')).benchResultSchema,
  run: limited(async ([engine = ''], options, context) => {
    const request = benchRequest(engine, options);
    await checkBeforeUse(engine, options.check, { ...request, ...context });
    return benchWith(options.with, request, context);
  }),
  render: renderBench,
});
