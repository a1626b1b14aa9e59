import { gpuArchitectures, parseTarget } from '../../../engines/identity/target.js';
import { TrtforgeError } from '../../../errors.js';

/** The GPU that a server has: its compute capability (89 for 8.9), and the product where it was named. */
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
  const words = wordsOf(asked.replace(/^(?:nvidia|tesla|geforce|quadro|\s)+/i, ''));
  const [known] = gpuArchitectures.flatMap(({ computeCapability: capability, examples }) =>
    examples.split(', ').flatMap((name) => (words.startsWith(wordsOf(name)) ? [{ capability, name }] : [])),
  );
  if (known === undefined)
    throw new TrtforgeError('TF_USAGE', `--gpu: "${text}" is not a GPU whose compute capability is known.`, {
      remedy: 'Pass the compute capability: --gpu sm_89.',
    });
  return known;
}

/** Whether a GPU's full name, as the driver has it, is of this product. */
export const isOfProduct = (gpu: string, product: string): boolean => wordsOf(gpu).includes(wordsOf(product));

/** `NVIDIA A100-SXM4-40GB` as ` nvidia a100 sxm4 40gb `. */
const wordsOf = (name: string) => ` ${name.toLowerCase().replaceAll('-', ' ')} `;
