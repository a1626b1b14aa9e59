import { writeFileSync, writeSync } from 'node:fs';
import { serveSession } from '../../../../dist/base/process/supervised-child.js';

let sum = 0;
const held = new Promise((resolve) => process.once('SIGUSR2', () => resolve('waited')));
serveSession(async (request, emit) => {
  if (request === 'crash') process.abort();
  if (typeof request === 'string' && request.startsWith('deafen ')) {
    process.removeAllListeners('disconnect');
    process.stderr.write('the driver hangs\n');
    setInterval(() => {}, 1000);
    setTimeout(() => {
      process.disconnect();
      writeFileSync(request.slice('deafen '.length), 'deaf');
    }, 100);
    return 'deaf';
  }
  if (request === 'pid') return process.pid;
  if (request === 'fail') throw new Error('not today');
  if (request === 'wait') return new Promise((resolve) => setTimeout(resolve, 300, 'waited'));
  if (request === 'hold') {
    writeSync(2, 'holding\n');
    return held;
  }
  if (request === 'block') {
    writeSync(2, 'blocking\n');
    for (;;) sum++;
  }
  emit({ type: 'log', source: 'child', severity: 'info', message: `adding ${request.length} numbers` });
  for (const value of request) sum += value;
  return sum;
});
