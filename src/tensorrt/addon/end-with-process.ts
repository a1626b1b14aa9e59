import type { NativeJob } from './native-job.js';

const running = new Set<NativeJob<unknown>>();
let watching = false;

/** The job itself. Node does not end before the addon's work is over, so work that still runs at `process.exit` is asked to stop. */
export function endWithProcess<T>(job: NativeJob<T>): NativeJob<T> {
  if (!watching) {
    process.once('exit', () => {
      for (const one of running) one.cancel();
    });
    watching = true;
  }
  running.add(job);
  const over = () => void running.delete(job);
  job.done.then(over, over);
  return job;
}
