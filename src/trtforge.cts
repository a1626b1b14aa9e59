#!/usr/bin/env node
// CommonJS, so that it runs before Node loads the first ES module and libuv starts its threads, 4 by default: images are decoded on them.
import os = require('node:os');

process.env.UV_THREADPOOL_SIZE ??= String(Math.max(4, os.availableParallelism()));
import('./main.js').catch((error: NodeJS.ErrnoException) => {
  if (error.code !== 'EMFILE' && error.code !== 'ENFILE') throw error;
  // As `cli/output.ts` prints it, which cannot be loaded either.
  const [code, message] = ['TF_FILE_UNREADABLE', `No more files can be opened (${error.code}).`];
  const remedy = 'Raise the limit of open files: ulimit -n 1024.';
  const document = {
    schema: 'trtforge.error/1',
    ok: false,
    exitCode: 2,
    command: null,
    error: { code, message, remedy },
  };
  if (process.argv.includes('--json')) process.stdout.write(`${JSON.stringify(document, null, 2)}\n`);
  process.stderr.write(`error ${code} ${message}\n  → ${remedy}\n`);
  process.exitCode = document.exitCode;
});
