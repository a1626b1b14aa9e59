import { serveSession } from '../../../../dist/base/process/supervised-child.js';

let sum = 0;
serveSession(async (request, emit) => {
  if (request === 'crash') process.abort();
  if (request === 'deafen') {
    process.removeAllListeners('disconnect');
    process.stderr.write('the driver hangs\n');
    setTimeout(() => process.disconnect(), 100);
    setInterval(() => {}, 1000);
    return 'deaf';
  }
  if (request === 'pid') return process.pid;
  if (request === 'fail') throw new Error('not today');
  if (request === 'wait') return new Promise((resolve) => setTimeout(resolve, 300, 'waited'));
  if (request === 'block') for (;;) sum++;
  emit({ type: 'log', source: 'child', severity: 'info', message: `adding ${request.length} numbers` });
  for (const value of request) sum += value;
  return sum;
});
