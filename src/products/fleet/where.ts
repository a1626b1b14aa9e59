import { z } from 'zod';
import { containersOf } from '../../behaviour/containers.js';
import { parseTarget } from '../../engines/identity/target.js';
import { isRemoteAddress } from '../../engines/store/remote/address.js';
import { TrtforgeError } from '../../errors.js';

/** What stands in one line of a script: no control character, no end of a line. Without \p, which the regular expressions of many validators of its JSON Schema lack. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it rejects.
const LINE = /^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]+$/u;
const line = z.string().regex(LINE, 'must be one line of text');
const count = z.int().min(1);

/** What the script asks of Slurm. */
const slurmSchema = z.strictObject({
  constraint: line.optional(),
  gres: line.default('gpu:1'),
  partition: line.optional(),
  account: line.optional(),
  time: line.optional(),
  /** With trtforge in it; for Pyxis. */
  image: line.optional(),
  /** Beside the plan's folder: `/data:/data`; for Pyxis. */
  mounts: z.array(line).default([]),
  'at-once': count.optional(),
  /** More of what `#SBATCH` takes, one argument each. */
  options: z.array(line.regex(/^--[a-z][a-z-]*(=|$)/, 'must be written as --name=value')).default([]),
  /** Names of variables that tasks get from where they are submitted, beside PATH and HOME. */
  environment: z.array(z.string().regex(/^[A-Za-z_]\w*$/, 'must be the name of a variable')).default([]),
});

const named = z.array(z.looseObject({ name: line })).default([]);

const kubernetesSchema = z.strictObject({
  /** Required where the target is known (`targetEntrySchema`), which the message is about. */
  image: line.optional(),
  nodeSelector: z.record(z.string(), z.string('must be text, in quotes')).default({}),
  namespace: line.optional(),
  /** Where a container works; default: the plan's folder. */
  folder: line.optional(),
  /** A Secret whose keys become variables of the tasks. */
  secret: line.optional(),
  volumes: named,
  volumeMounts: named,
  /** Merged into the pod as `kubectl patch` does: mappings key by key, lists of what has a name by their names (the container is `build`); anything else replaces. */
  patch: z.record(z.string(), z.unknown()).default({}),
  /** How the cluster lends GPUs. */
  resource: z.enum(['device-plugin', 'dra']).default('device-plugin'),
  /** How much a build may write into its temporary folder. */
  scratch: line.default('32Gi'),
  'at-once': count.optional(),
});

const sshSchema = z.strictObject({
  host: z.string().regex(/^[\w[][\w.:@%[\]-]*$/, 'must be the name of a host, with "user@" or not'),
  /** There; default: the plan's folder. */
  folder: line.optional(),
});

const ONE = 'must be local, or one of slurm, kubernetes and ssh';

/** Where a target is built: its scheduler and what that is asked for. */
export const whereSchema = z.union(
  [
    z.literal('local'),
    z
      .strictObject({
        slurm: slurmSchema.optional(),
        kubernetes: kubernetesSchema.optional(),
        ssh: sshSchema.optional(),
      })
      .refine((where) => Object.keys(where).length === 1, ONE),
  ],
  // Of a mapping its own fault is named.
  { error: ({ input }) => (typeof input === 'object' && input !== null ? undefined : ONE) },
);

export type Where = z.infer<typeof whereSchema>;
export type SlurmWhere = z.infer<typeof slurmSchema>;
export type KubernetesWhere = z.infer<typeof kubernetesSchema>;
export type WhereKind = 'slurm' | 'kubernetes' | 'ssh' | 'local';

/** What keeps the tasks of a plan from its store, as far as it shows: a pod sees no folder but those of its volumes. */
export const unseenStore = (
  store: string,
  targets: Readonly<Record<string, { readonly where: Where }>>,
): readonly string[] =>
  Object.entries(targets).flatMap(([name, { where }]) => {
    const pod = where === 'local' ? undefined : where.kubernetes;
    const isSeen =
      pod === undefined || isRemoteAddress(store) || pod.volumes.length > 0 || 'volumes' in pod.patch;
    return isSeen
      ? []
      : [
          `The pods of the target ${name} do not see the store ${store}, which is a folder here: add volumes and volumeMounts to its kubernetes, or use a bucket.`,
        ];
  });

export const kindOfWhere = (where: Where): WhereKind =>
  (where === 'local' ? where : Object.keys(where)[0]) as WhereKind;

/** What an image for a target has to have, with a container of NVIDIA's to begin with where a page states one of this TensorRT. */
export function imageNeeded(target: string): string {
  const { version } = parseTarget(target).named ?? {};
  const known = version === undefined ? undefined : containersOf(version).at(-1);
  const from =
    known === undefined ? '' : `, made FROM nvcr.io/nvidia/${known.image}:${known.tag} for example`;
  return `it is missing: an image with trtforge and the TensorRT of ${target}${from}`;
}

/** What goes into a script. Throws TF_USAGE for text that would end its line. */
export function oneLine(what: string, text: string): string {
  if (LINE.test(text)) return text;
  throw new TrtforgeError('TF_USAGE', `${what} is not one line of text: ${JSON.stringify(text)}.`, {
    remedy: 'Rename it: a script has one line for each value.',
  });
}
