import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const source = (path: string) => fileURLToPath(new URL(`./src/${path}`, import.meta.url));

export default defineConfig({
  resolve: {
    alias: [
      { find: /^trtforge$/, replacement: source('index.ts') },
      { find: /^trtforge\/onnx$/, replacement: source('formats/onnx/index.ts') },
      { find: /^trtforge\/trtexec$/, replacement: source('tensorrt/trtexec/index.ts') },
      { find: /^trtforge\/(streaming|bundle|deepstream)$/, replacement: source('products/$1/index.ts') },
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/build-first.ts'],
    testTimeout: 60_000,
    // A hook may compile the addon, behind others that wait for the same, on a slow machine.
    hookTimeout: 600_000,
    pool: 'forks',
    // Vitest leaves one core free, which is half of a machine with two.
    maxWorkers: '100%',
  },
});
