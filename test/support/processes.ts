import { readFileSync } from 'node:fs';

/** Whether a process runs; a zombie is dead, and only waits to be counted. */
export const isAlive = (pid: number): boolean => {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'latin1'));
  } catch {
    return false;
  }
};
