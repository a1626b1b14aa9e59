#!/usr/bin/env node
// npm links a command only where its file is there, and makes it executable once: this one is there before the first build and after each.
'use strict';
const { existsSync } = require('node:fs');
const { join } = require('node:path');

const root = join(__dirname, '..');
const built = join(root, 'dist', 'trtforge.cjs');
if (existsSync(built)) require(built);
else {
  const how = 'npm install --ignore-scripts && npm run build && npm run build:native';
  process.stderr.write(`trtforge is not built in ${root}.\n  → Run: cd ${root} && ${how}\n`);
  process.exitCode = 3;
}
