import { join } from 'node:path';
import type { Toolchain } from '../../src/tensorrt/toolchain/toolchain.js';

/** The tensorrt-rtx libraries in a folder, as a toolchain. */
export const rtxToolchain = (folder: string): Toolchain => ({
  product: 'tensorrt-rtx',
  version: '1.7.1.116',
  libraries: {
    inference: join(folder, 'libtensorrt_rtx.so.1'),
    parser: join(folder, 'libtensorrt_onnxparser_rtx.so.1'),
    plugins: null,
  },
  trtexec: null,
  foundBy: 'test',
});
