// A supervised child that behaves as it is told, for supervise.integration.test.ts.
import { writeSync } from 'node:fs';
import { serve } from '../../../../dist/base/process/supervised-child.js';
import { TrtforgeError } from '../../../../dist/errors.js';

const behaviours = {
  double: async ({ values }) => values.map((value) => value * 2),
  events: async (_request, { emit }) => {
    emit({ type: 'log', source: 'library', severity: 'warning', message: 'careful' });
    return 'done';
  },
  error: async () => {
    throw new TrtforgeError('TF_FILE_NOT_FOUND', 'x.onnx does not exist.', {
      remedy: 'Look again.',
      details: { path: 'x.onnx' },
    });
  },
  bug: async () => undefined.missing,
  abort: async () => {
    writeSync(2, 'terminate called: tactic exploded\n');
    process.abort();
  },
  exit: async (_request, { emit }) => {
    emit({ type: 'log', source: 'trtforge', severity: 'warning', message: 'of our own' });
    process.exit(7);
  },
  kill: async () => process.kill(process.pid, 'SIGKILL'),
  wait: (_request, { signal }) =>
    new Promise((_resolve, reject) => {
      const timer = setInterval(() => {}, 1000);
      signal.addEventListener('abort', () => {
        clearInterval(timer);
        reject(new TrtforgeError('TF_CANCELLED', 'Stopped when asked.'));
      });
    }),
  stubborn: () => {
    for (;;);
  },
};

serve(async (request, context) => behaviours[request.behave](request, context));
