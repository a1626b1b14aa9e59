import { z } from 'zod';
import { firstProblem, readYaml } from '../../../base/text/yaml.js';
import { isArmOnly, isJetson } from '../../../behaviour/facts.js';
import { tensorrtIn } from '../../../behaviour/versions.js';
import { targetSchema } from '../../../engines/identity/recipe.js';
import {
  type NamedGpu,
  type Platform,
  type PlatformFault,
  parseGpu,
  platformFault,
} from '../../../engines/identity/target.js';
import { parsed } from '../parsed.js';

const { product, version, cudaMajor, os, arch } = targetSchema.shape;

/** A machine as engines are judged for it; what is null is not stated. */
export const machineSchema = z.strictObject({
  name: z.string(),
  gpu: z.strictObject({ capability: z.int(), product: z.string().optional() }).nullable(),
  /** The GPU is not judged: only a container was named. */
  anyGpu: z.boolean(),
  /** Judged where the CUDA that its TensorRT is built for is stated too. */
  driver: z.string().nullable(),
  /** As many parts of the version as are known. */
  tensorrt: z.strictObject({ product, version, cudaMajor }).nullable(),
  container: z.string().nullable(),
  os,
  arch,
});
export type Machine = z.infer<typeof machineSchema>;

// YAML reads 10.10 as the number 10.1, so a version must be text.
const stated = z
  .string('a version is expected here, with all its parts or in quotes')
  .regex(/^\d+(\.\d+){1,3}(\+cuda\d+(\.\d+)?)?$/, 'a version is expected here, with or without +cuda13');
const numberOrText = z.union([z.string(), z.number()], 'text is expected here').transform(String);
// YAML reads 8.0 as the number 8.
const gpu = numberOrText.transform(parsed((text) => parseGpu(/^\d$|^1\d$/.test(text) ? `${text}.0` : text)));
const driver = numberOrText.refine((text) => /^\d+(\.\d+)*$/.test(text), 'a driver is expected here: 550.54');

const statedSchema = z
  .strictObject({ gpu, driver, container: z.string(), os, arch })
  .extend({ tensorrt: stated, 'tensorrt-rtx': stated })
  .partial()
  .refine((one) => !(one.tensorrt && one['tensorrt-rtx']), 'tensorrt and tensorrt-rtx are two machines')
  .superRefine(({ gpu, ...stated }, { addIssue }) => {
    const { severity, message, remedy } =
      doubtOf({ gpu: gpu ?? null, ...platformOf({ gpu, ...stated }) }) ?? {};
    if (severity === 'error') addIssue({ code: 'custom', message: `${message} ${remedy}` });
  });
type Stated = z.infer<typeof statedSchema>;
const inventorySchema = z.strictObject({ machines: z.record(z.string(), statedSchema) });

/** Of what is stated; Linux, with the processor that the GPU exists with. */
function platformOf({ gpu, os = 'linux', arch }: Partial<Platform> & { gpu?: NamedGpu }): Platform {
  const isArm = gpu !== undefined && isArmOnly(gpu.capability, gpu.product);
  return { os, arch: arch ?? (isArm ? 'aarch64' : 'x86_64') };
}

/** What speaks against the GPU of a machine on its platform. */
export const doubtOf = ({ gpu, os, arch }: Pick<Machine, 'gpu' | 'os' | 'arch'>): PlatformFault | null =>
  gpu === null ? null : platformFault({ product: 'tensorrt', os, arch }, gpu);

/** Reads an inventory. Throws TF_INVENTORY_INVALID (with the line), TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE. */
export function readInventory(path: string): readonly Machine[] {
  const code = 'TF_INVENTORY_INVALID';
  const { content, lineOf } = readYaml(path, code);
  const { data, error } = inventorySchema.safeParse(content);
  const keys = ['machines', ...Object.keys(statedSchema.shape)];
  if (data === undefined) throw firstProblem(error, { path, code, lineOf }, () => keys);
  return Object.entries(data.machines).map(([name, stated]) => machineOf(name, stated));
}

/** Completes what is stated of a machine by what is known of its container. */
export function machineOf(name: string, stated: Stated, anyGpu = false): Machine {
  const { gpu = null, driver = null, container = null } = stated;
  const product = stated['tensorrt-rtx'] === undefined ? ('tensorrt' as const) : ('tensorrt-rtx' as const);
  const known = container === null || isJetson(gpu?.capability ?? 0) ? undefined : tensorrtIn(container);
  const [version, cuda] = (stated[product] ?? known)?.split('+cuda') ?? [];
  const cudaMajor = cuda === undefined ? null : Number.parseInt(cuda, 10);
  const tensorrt = version === undefined ? null : { product, version, cudaMajor };
  return { name, gpu, anyGpu, driver, tensorrt, container, ...platformOf(stated) };
}
