import { type ScalarTag, stringify, type Tags } from 'yaml';
import { isRecord } from '../../../base/text/lenient-json.js';
import { parseTarget } from '../../../engines/identity/target.js';
import type { KubernetesWhere } from '../where.js';
import { planName, type Submission } from './submission.js';

/** The label by which `kubectl` finds what was sent, and the annotation with the plan's index of each completion index. */
export const planLabel = 'trtforge.fleet/plan';
export const jobsAnnotation = 'trtforge.fleet/jobs';

const CONTAINER = 'build';
const SCRATCH = 'trtforge-scratch';
const CLAIM = 'gpu';
const DAY_S = 86_400;

/** The manifest of one target: an Indexed Job, with DRA behind the template of its claims. */
export function kubernetesManifest(submission: Submission, where: KubernetesWhere): string {
  const { plan, address, target, builds, jobs, attempt } = submission;
  const isDra = where.resource === 'dra';
  const gpu = gpuOf(builds);
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
  const pod = {
    restartPolicy: 'Never',
    nodeSelector: { ...(isDra ? {} : gpu?.labels), ...where.nodeSelector },
    ...(isDra ? { resourceClaims: [{ name: CLAIM, resourceClaimTemplateName: name }] } : {}),
    containers: [container],
    volumes: [...where.volumes, { name: SCRATCH, emptyDir: { sizeLimit: where.scratch } }],
  };
  const job = {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: `${name}-${attempt}`, ...metadata },
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
        spec: patched(pod, where.patch),
      },
    },
  };
  const exactly = {
    deviceClassName: 'gpu.nvidia.com',
    count: 1,
    ...(gpu === null ? {} : { selectors: [{ cel: { expression: gpu.expression } }] }),
  };
  const claim = {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaimTemplate',
    // Of the target alone: sending again changes nothing in it.
    metadata: { name, ...metadata, annotations: {} },
    spec: { spec: { devices: { requests: [{ name: CLAIM, exactly }] } } },
  };
  // kubectl reads YAML 1.1, in which an unquoted `yes`, `on` or `1:30` is no text.
  const yaml = { version: '1.1', customTags: (tags: Tags) => [quotedText, ...tags] } as const;
  return (isDra ? [claim, job] : [job]).map((each) => `---\n${stringify(each, yaml)}`).join('');
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
    [...own, ...patch].every((each) => named(each) !== null)
  ) {
    const others = patch.filter((each) => own.every((one) => named(one) !== named(each)));
    const merged = own.map((one) => patched(one, patch.find((each) => named(each) === named(one)) ?? {}));
    return [...merged, ...others];
  }
  if (!isRecord(own) || !isRecord(patch)) return patch;
  const entries = Object.entries(patch).map(([key, value]) => [key, patched(own[key], value)] as const);
  return { ...own, ...Object.fromEntries(entries) };
}

const named = (value: unknown): unknown => (isRecord(value) ? (value.name ?? null) : null);

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
