import { type ScalarTag, stringify, type Tags } from 'yaml';
import { z } from 'zod';
import { isRecord } from '../../../base/files/json.js';
import { containersOf } from '../../../behaviour/versions.js';
import { parseTarget, platformFor } from '../../../engines/identity/target.js';
import {
  type Asked,
  count,
  enqueue,
  indicesIn,
  line,
  planName,
  type Scheduler,
  type Submission,
} from './scheduler.js';

const named = z.array(z.looseObject({ name: line })).default([]);

const kubernetesSchema = z.strictObject({
  /** Required where the target is known (`lacks`), which the message is about. */
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
  /** The way the cluster provides GPUs. */
  resource: z.enum(['device-plugin', 'dra']).default('device-plugin'),
  /** The amount that a build may write into its temporary folder. */
  scratch: line.default('32Gi'),
  'at-once': count.optional(),
});

export type KubernetesWhere = z.infer<typeof kubernetesSchema>;

/** Completions of an Indexed Job, sent and listed by kubectl. */
export const kubernetes: Scheduler<KubernetesWhere> = {
  schema: kubernetesSchema,
  option: { flags: '--kubernetes', describe: 'only the targets that Kubernetes builds' },
  script: (submission, where) => ({ ending: 'yaml', content: kubernetesManifest(submission, where) }),
  submit: enqueue('kubectl', 'apply', '--filename=-', '--output=name'),
  jobs: async (wheres, { plan, count: jobs, ask, note }) => {
    const namespaces = [...new Set(wheres.map(({ namespace }) => namespace))];
    return Promise.all(
      namespaces.map(async (namespace) => {
        const place = namespace === undefined ? [] : [`--namespace=${namespace}`];
        const selector = `--selector=${planLabel}=${plan}`;
        const listed = await ask('kubectl', 'get', 'jobs,pods', selector, '--output=json', ...place);
        noteKubernetes(listed.answer, jobs, note);
        return { name: 'kubernetes', why: listed.why };
      }),
    );
  },
  lacks: ({ image }, target) => (image === undefined ? ['image', imageNeeded(target)] : undefined),
  blind: ({ volumes, patch }) =>
    volumes.length > 0 || 'volumes' in patch
      ? undefined
      : { who: 'pods', remedy: 'add volumes and volumeMounts to its kubernetes' },
};

/** The requirements of an image for a target, with a container of NVIDIA's to begin with where a page states one of this TensorRT. */
function imageNeeded(target: string): string {
  const { version } = parseTarget(target).named ?? {};
  const known = version === undefined ? undefined : containersOf(version).at(-1);
  const from =
    known === undefined ? '' : `, made FROM nvcr.io/nvidia/${known.image}:${known.tag} for example`;
  return `it is missing: an image with trtforge and the TensorRT of ${target}${from}`;
}

/** The label by which `kubectl` finds what was sent, and the annotation with the plan's index of each completion index. */
const planLabel = 'trtforge.fleet/plan';
const jobsAnnotation = 'trtforge.fleet/jobs';

const CONTAINER = 'build';
const SCRATCH = 'trtforge-scratch';
const CLAIM = 'gpu';
const DAY_S = 86_400;

/** The manifest of one target: an Indexed Job, with DRA behind the template of its claims. */
export function kubernetesManifest(submission: Submission, where: KubernetesWhere): string {
  const { plan, target, builds, jobs } = submission;
  // Names have 63 characters at most; the whole ID is in the label.
  const name = `${planName(plan.id.slice(0, 12))}-${target}`;
  const metadata = {
    ...(where.namespace === undefined ? {} : { namespace: where.namespace }),
    labels: {
      'app.kubernetes.io/managed-by': 'trtforge',
      [planLabel]: plan.id,
      'trtforge.fleet/target': target,
    },
    annotations: { [jobsAnnotation]: jobs.join(',') },
  };
  const job = {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: `${name}-${submission.attempt}`, ...metadata },
    spec: {
      completionMode: 'Indexed',
      completions: jobs.length,
      parallelism: Math.min(where['at-once'] ?? jobs.length, jobs.length),
      backoffLimitPerIndex: 1,
      maxFailedIndexes: jobs.length,
      ttlSecondsAfterFinished: DAY_S,
      podFailurePolicy: {
        rules: [
          onExit('FailIndex', 3),
          onExit('FailJob', 2),
          { action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] },
        ],
      },
      template: {
        metadata: { labels: metadata.labels, annotations: metadata.annotations },
        spec: patched(podOf(submission, where, name), where.patch),
      },
    },
  };
  const claim = {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaimTemplate',
    // Of the target alone: sending again changes nothing in it.
    metadata: { name, ...metadata, annotations: {} },
    spec: { spec: { devices: { requests: [{ name: CLAIM, exactly: deviceOf(builds) }] } } },
  };
  // kubectl reads YAML 1.1, in which an unquoted `yes`, `on` or `1:30` is no text.
  const yaml = { version: '1.1', customTags: (tags: Tags) => [quotedText, ...tags] } as const;
  const manifests = where.resource === 'dra' ? [claim, job] : [job];
  return manifests.map((each) => `---\n${stringify(each, yaml)}`).join('');
}

/** The pod of a task, before the patch; with DRA its GPU comes by the claim template of this name. */
function podOf({ plan, address, builds, jobs }: Submission, where: KubernetesWhere, claimTemplate: string) {
  const isDra = where.resource === 'dra';
  const container = {
    name: CONTAINER,
    image: where.image,
    command: ['trtforge'],
    // Kubernetes puts variables in the place of `$(NAME)`.
    args: ['fleet', 'work', address.replaceAll('$', '$$$$'), '--jobs', jobs.join(',')],
    workingDir: where.folder ?? plan.folder,
    env: [{ name: 'TMPDIR', value: '/scratch' }],
    ...(where.secret === undefined ? {} : { envFrom: [{ secretRef: { name: where.secret } }] }),
    resources: isDra ? { claims: [{ name: CLAIM }] } : { limits: { 'nvidia.com/gpu': 1 } },
    volumeMounts: [...where.volumeMounts, { name: SCRATCH, mountPath: '/scratch' }],
  };
  return {
    restartPolicy: 'Never',
    nodeSelector: { ...(isDra ? {} : gpuOf(builds)?.labels), ...processorOf(builds), ...where.nodeSelector },
    ...(isDra ? { resourceClaims: [{ name: CLAIM, resourceClaimTemplateName: claimTemplate }] } : {}),
    containers: [container],
    volumes: [...where.volumes, { name: SCRATCH, emptyDir: { sizeLimit: where.scratch } }],
  };
}

/** The device that a DRA claim of a target requests. */
function deviceOf(target: string) {
  const gpu = gpuOf(target);
  return {
    deviceClassName: 'gpu.nvidia.com',
    count: 1,
    ...(gpu === null ? {} : { selectors: [{ cel: { expression: gpu.expression } }] }),
  };
}

/** `<<` merges in YAML 1.1, and `=` is a value of its own. */
const quotedText: ScalarTag = {
  tag: 'tag:yaml.org,2002:str',
  default: true,
  test: /^(<<|=)$/,
  identify: (value) => value === '<<' || value === '=',
  resolve: (text) => text,
  stringify: ({ value }) => JSON.stringify(value),
};

/** A patch as Kubernetes merges it into a pod. */
function patched(own: unknown, patch: unknown): unknown {
  if (
    Array.isArray(own) &&
    Array.isArray(patch) &&
    [...own, ...patch].every((each) => nameIn(each) !== null)
  ) {
    const others = patch.filter((each) => own.every((one) => nameIn(one) !== nameIn(each)));
    const merged = own.map((one) => patched(one, patch.find((each) => nameIn(each) === nameIn(one)) ?? {}));
    return [...merged, ...others];
  }
  if (!isRecord(own) || !isRecord(patch)) return patch;
  const entries = Object.entries(patch).map(([key, value]) => [key, patched(own[key], value)] as const);
  return { ...own, ...Object.fromEntries(entries) };
}

const nameIn = (value: unknown): unknown => (isRecord(value) ? (value.name ?? null) : null);

const onExit = (action: string, code: number) => ({
  action,
  onExitCodes: { containerName: CONTAINER, operator: 'In', values: [code] },
});

/** Which nodes or devices a target is built on; null where it has several capabilities or names none. */
function gpuOf(target: string) {
  const [capability, ...others] = parseTarget(target).computeCapabilities ?? [];
  if (capability === undefined || others.length > 0) return null;
  const [major, minor] = [Math.floor(capability / 10), capability % 10];
  return {
    /** As NVIDIA's GPU feature discovery labels nodes. */
    labels: { 'nvidia.com/gpu.compute.major': `${major}`, 'nvidia.com/gpu.compute.minor': `${minor}` },
    /** By the attribute that NVIDIA's DRA driver publishes of a GPU. */
    expression: `device.attributes['gpu.nvidia.com'].cudaComputeCapability.compareTo(semver('${major}.${minor}.0')) == 0`,
  };
}

/** The label of nodes with Arm processors, where a target is for these; a cluster that has others alone needs none. */
const processorOf = (target: string) =>
  platformFor(parseTarget(target)).arch === 'aarch64' ? { 'kubernetes.io/arch': 'arm64' } : {};

/** Jobs, whose tasks wait until they have a pod, and pods. */
function noteKubernetes(answer: string, count: number, note: Asked['note']): void {
  let list: unknown;
  try {
    list = JSON.parse(answer);
  } catch {
    return;
  }
  for (const item of listAt(list, 'items')) {
    const annotation = (name: string) => textAt(item, 'metadata', 'annotations', name);
    const status = (...path: readonly string[]) => textAt(item, 'status', ...path);
    const condition = (type: string, is: string) =>
      listAt(item, 'status', 'conditions').find(
        (each) => textAt(each, 'type') === type && textAt(each, 'status') === is,
      );
    const jobs = indicesIn(annotation(jobsAnnotation), count);
    if (textAt(item, 'kind') === 'Job') {
      if (condition('Complete', 'True') ?? condition('Failed', 'True')) continue;
      const lists = [status('completedIndexes'), status('failedIndexes')];
      const over = new Set(lists.flatMap((each) => indicesIn(each, jobs.length)));
      jobs.forEach((index, at) => {
        if (!over.has(at)) note(index, 'queued', { node: null, reason: 'no pod yet' });
      });
      continue;
    }
    const index = jobs[Number(annotation('batch.kubernetes.io/job-completion-index') || Number.NaN)];
    if (index === undefined) continue;
    const container = (...path: readonly string[]) => status('containerStatuses', '0', 'state', ...path);
    const exitCode = container('terminated', 'exitCode');
    const word =
      container('terminated', 'reason') ||
      container('waiting', 'reason') ||
      textAt(condition('PodScheduled', 'False'), 'reason') ||
      status('phase');
    const states = { Succeeded: 'ended', Failed: 'ended', Pending: 'queued' } as const;
    const reason = exitCode === '' ? word : `${word}, exit code ${exitCode}`;
    const node = textAt(item, 'spec', 'nodeName') || null;
    note(index, states[status('phase') as keyof typeof states] ?? 'running', { node, reason });
  }
}

const valueAt = (value: unknown, path: readonly string[]): unknown =>
  path.reduce(
    (inner, key) => (typeof inner === 'object' && inner !== null ? Reflect.get(inner, key) : null),
    value,
  );

/** The text or number at a place, empty where there is none. */
function textAt(value: unknown, ...path: readonly string[]): string {
  const found = valueAt(value, path);
  return typeof found === 'string' || typeof found === 'number' ? String(found) : '';
}

function listAt(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const found = valueAt(value, path);
  return Array.isArray(found) ? found : [];
}
