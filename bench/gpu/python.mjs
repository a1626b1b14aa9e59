// NVIDIA's Python API as a peer: one process that answers requests, a line of JSON each, so that rounds take turns without starting Python again.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const script = fileURLToPath(new URL('./peer_python.py', import.meta.url));
const START_MS = 60_000;

/** The peer, or null and why there is none. */
export async function startPython(environment) {
  const child = spawn(process.env.PYTHON || 'python3', ['-u', script], {
    env: environment,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let said = '';
  child.stderr.on('data', (chunk) => {
    said = (said + chunk).slice(-2000);
  });
  const waiting = [];
  const ended = (why) => {
    for (const { reject } of waiting.splice(0)) reject(new Error(why));
  };
  child.stdin.on('error', () => {});
  child.on('error', (error) => ended(error.message));
  child.on('close', (status, signal) =>
    ended(`it ended with ${signal ?? status}: ${said.trim().split('\n').at(-1) ?? ''}`),
  );
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (!line.startsWith('{')) return;
    const answer = JSON.parse(line);
    const { resolve, reject } = waiting.shift() ?? {};
    if (answer.error === undefined) resolve?.(answer);
    else reject?.(new Error(`Python: ${answer.error}`));
  });
  const next = () => new Promise((resolve, reject) => waiting.push({ resolve, reject }));
  const timer = setTimeout(() => child.kill('SIGKILL'), START_MS);
  try {
    const { version } = await next();
    return {
      peer: {
        version,
        ask: (request) => {
          const answer = next();
          child.stdin.write(`${JSON.stringify(request)}\n`);
          return answer;
        },
        close: () =>
          new Promise((resolve) => {
            child.once('close', resolve);
            child.stdin.end();
          }),
      },
    };
  } catch (error) {
    return { peer: null, why: error.message };
  } finally {
    clearTimeout(timer);
  }
}
