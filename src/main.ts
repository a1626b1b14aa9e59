import nodeModule from 'node:module';

// Before anything is loaded: a command that is stopped meanwhile answers as it does later. A second signal ends the process at once.
const interrupt = new AbortController();
const stop = () => interrupt.abort();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const) process.once(signal, stop);

// Node 22 and later keep compiled code between runs; what follows must load after this.
(nodeModule as { readonly enableCompileCache?: () => void }).enableCompileCache?.();
const { runProgram } = await import('./cli/program/program.js');
const { products } = await import('./registry.js');
const { writeFailed } = await import('./base/files/publish.js');
const { packageVersion } = await import('./version.js');

// A reader that has seen enough (`trtforge … | head`) closes the pipe; the work goes on, and its exit code counts.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') return;
  const { code, message, remedy, exitCode } = writeFailed('The standard output', error);
  process.stderr.write(`error ${code} ${message}\n  → ${remedy}\n`);
  process.exit(exitCode);
});
// Progress that nobody can read, or that finds no room, stops no work.
process.stderr.on('error', () => {});

/** The interface closes without an answer on Ctrl-C, Ctrl-D and the end of the input. */
async function ask(question: string): Promise<string> {
  const { createInterface } = await import('node:readline');
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  return new Promise((resolve) => {
    lines.once('close', () => resolve(''));
    lines.question(question, (answer) => {
      resolve(answer);
      lines.close();
    });
  });
}

process.exitCode = await runProgram(
  {
    name: 'trtforge',
    version: packageVersion(),
    summary: 'The whole life of an NVIDIA TensorRT engine, from the ONNX file to the gate in CI.',
    products,
  },
  process.argv.slice(2),
  {
    out: (text) => process.stdout.write(`${text}\n`),
    err: (text) => process.stderr.write(`${text}\n`),
    errRaw: (text) => process.stderr.write(text),
    isTerminal: { out: process.stdout.isTTY === true, err: process.stderr.isTTY === true },
    ...(process.stdin.isTTY === true && process.stderr.isTTY === true ? { ask } : {}),
    columns: () => process.stderr.columns ?? 80,
    environment: process.env,
  },
  interrupt.signal,
);
