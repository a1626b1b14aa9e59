import { gpuArchitectures, parseTarget } from '../../../engines/identity/target.js';
import { TrtforgeError } from '../../../errors.js';

/** The GPU that a server has: its compute capability (89 for 8.9), and the product in lower case where it was named. */
export interface GpuChoice {
  readonly capability: number;
  readonly name?: string;
}

/** Reads `sm_89`, `8.9`, `89`, or a product: `L4`, `NVIDIA H100`. Throws TF_USAGE, TF_TARGET_UNSUPPORTED. */
export function parseGpu(text: string): GpuChoice {
  const asked = text.trim();
  if (/^(?:sm_?)?\d+(?:\.\d)?$/i.test(asked)) {
    const [capability] = parseTarget(`tensorrt:${asked}`).computeCapabilities ?? [];
    return { capability: capability! };
  }
  const name = asked.toLowerCase().replace(/^(?:nvidia|tesla|geforce|quadro|\s)+/, '');
  const known = gpuArchitectures.find(({ examples }) =>
    examples
      .toLowerCase()
      .split(', ')
      .some((each) => name === each || name.startsWith(`${each} `) || name.startsWith(`${each}-`)),
  );
  if (known === undefined)
    throw new TrtforgeError('TF_USAGE', `--gpu: "${text}" is not a GPU whose compute capability is known.`, {
      remedy: 'Pass the compute capability: --gpu sm_89.',
    });
  return { capability: known.computeCapability, name };
}
