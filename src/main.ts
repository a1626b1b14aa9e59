#!/usr/bin/env node
import nodeModule from 'node:module';

// Node 22 and later keep compiled code between runs; what follows must load after this.
(nodeModule as { readonly enableCompileCache?: () => void }).enableCompileCache?.();
const { runProgram } = await import('./cli/program.js');
const { registry } = await import('./commands/registry.js');
const { packageVersion } = await import('./version.js');

// A reader that has seen enough (`trtforge … | head`) closes the pipe; that is no fault.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
});

process.exitCode = await runProgram(
  {
    name: 'trtforge',
    version: packageVersion(),
    summary: 'The whole life of an NVIDIA TensorRT engine, from the ONNX file to the gate in CI.',
    entries: registry,
  },
  process.argv.slice(2),
  {
    out: (text) => process.stdout.write(`${text}\n`),
    err: (text) => process.stderr.write(`${text}\n`),
    errRaw: (text) => process.stderr.write(text),
    isTerminal: { out: process.stdout.isTTY === true, err: process.stderr.isTTY === true },
    columns: () => process.stderr.columns ?? 80,
    environment: process.env,
  },
);
