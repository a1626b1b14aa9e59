#!/usr/bin/env node
// CommonJS, so that it runs before Node loads the first ES module and libuv starts its threads, 4 by default: images are decoded on them.
import os = require('node:os');

process.env.UV_THREADPOOL_SIZE ??= String(Math.max(4, os.availableParallelism()));
void import('./main.js');
