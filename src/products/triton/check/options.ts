import * as is from '../../../base/options/kinds.js';
import { needed, type OptionsOf, optional } from '../../../base/options/option.js';
import { parseVersion } from '../../../behaviour/versions.js';
import { type NamedGpu, parseGpu } from '../../../engines/identity/target.js';

export const checkOptions = {
  repository: needed(is.text),
  /** The GPU of the server: `L4`, `sm_89`. */
  gpu: optional(is.either(is.text, is.object<NamedGpu>()), {
    flags: '--gpu <gpu>',
    describe: 'the GPU of the server: sm_89, 8.9, or a product such as L4',
    parse: parseGpu,
  }),
  /** Its TensorRT, as many parts as are known. */
  tensorrt: optional(is.text, {
    flags: '--tensorrt <version>',
    describe: 'the TensorRT of the server, as far as it is known: 10.13, 10.13.3.9',
    parse: parseVersion,
  }),
};

export interface TritonCheckRequest extends OptionsOf<typeof checkOptions> {}
