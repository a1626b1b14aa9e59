import { describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import {
  type KubernetesWhere,
  kubernetesManifest,
} from '../../../src/products/fleet/schedulers/kubernetes.js';
import { whereSchema } from '../../../src/products/fleet/schedulers/where.js';
import { submission } from './sample-plan.js';

const where = (kubernetes: Record<string, unknown> = {}): KubernetesWhere => {
  const parsed = whereSchema.parse({ kubernetes: { image: 'registry/trtforge:10.13', ...kubernetes } });
  if (parsed === 'local' || parsed.kubernetes === undefined) throw new Error('not of Kubernetes');
  return parsed.kubernetes;
};

interface Metadata {
  readonly name: string;
  readonly namespace?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

interface Pod {
  readonly nodeSelector: Readonly<Record<string, string>>;
  readonly resourceClaims: readonly { readonly name: string; readonly resourceClaimTemplateName: string }[];
  readonly containers: readonly {
    readonly name: string;
    readonly args: readonly string[];
    readonly env: readonly unknown[];
    readonly resources: unknown;
    readonly workingDir: string;
    readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
  }[];
  readonly volumes: readonly { readonly name: string; readonly emptyDir: { readonly sizeLimit: string } }[];
}

interface Rule {
  readonly action: string;
  readonly onExitCodes?: { readonly containerName: string; readonly values: readonly number[] };
  readonly onPodConditions?: readonly { readonly type: string }[];
}

/** What is read here of the two kinds. */
interface Kinds {
  readonly Job: {
    readonly metadata: Metadata;
    readonly spec: {
      readonly podFailurePolicy: { readonly rules: readonly Rule[] };
      readonly template: { readonly metadata: Metadata; readonly spec: Pod };
    };
  };
  readonly ResourceClaimTemplate: {
    readonly metadata: Metadata;
    readonly spec: {
      readonly spec: {
        readonly devices: {
          readonly requests: readonly {
            readonly exactly: {
              readonly selectors: readonly { readonly cel: { readonly expression: string } }[];
            };
          }[];
        };
      };
    };
  };
}

/** The documents of a manifest by kind. */
function kinds(manifest: string): Kinds {
  const documents = parseAllDocuments(manifest, { version: '1.1' });
  if (!Array.isArray(documents)) throw new Error('it is empty');
  expect(documents.flatMap(({ errors }) => errors)).toEqual([]);
  return Object.fromEntries(
    documents.map((document) => document.toJS()).map((each) => [each.kind, each]),
  ) as Kinds;
}

const containerOf = ({ Job }: Pick<Kinds, 'Job'>) => Job.spec.template.spec.containers[0]!;

describe('an Indexed Job', () => {
  const { Job: job } = kinds(kubernetesManifest(submission(), where({ 'at-once': 2 })));
  const container = containerOf({ Job: job });

  test('has a completion for each job, and states which it is', () => {
    expect(job.spec).toMatchObject({
      completionMode: 'Indexed',
      completions: 4,
      parallelism: 2,
      backoffLimitPerIndex: 1,
    });
    expect(container.args).toEqual(['fleet', 'work', '/store/fleet/0123456789ab.json', '--jobs', '0,1,2,5']);
    for (const { annotations, labels } of [job.metadata, job.spec.template.metadata]) {
      expect(annotations['trtforge.fleet/jobs']).toBe('0,1,2,5');
      expect(labels).toMatchObject({ 'trtforge.fleet/plan': '0123456789ab', 'trtforge.fleet/target': 'l4' });
    }
  });

  test('does not repeat on the wrong machine, ends for wrong input, and does not count evictions', () => {
    const { rules } = job.spec.podFailurePolicy;
    const actions = rules.map((rule) => [
      rule.action,
      rule.onExitCodes?.values[0] ?? rule.onPodConditions?.[0]?.type,
    ]);
    expect(actions).toEqual([
      ['FailIndex', 3],
      ['FailJob', 2],
      ['Ignore', 'DisruptionTarget'],
    ]);
    expect(rules[0]?.onExitCodes?.containerName).toBe(container.name);
  });

  test('gets one GPU of the capability of the target, by labels that are text', () => {
    expect(job.spec.template.spec.nodeSelector).toEqual({
      'nvidia.com/gpu.compute.major': '8',
      'nvidia.com/gpu.compute.minor': '9',
    });
    expect(container.resources).toEqual({ limits: { 'nvidia.com/gpu': 1 } });
  });

  test('runs on nodes with Arm processors where the target is for these', () => {
    const selectorOf = (builds: string) =>
      kinds(kubernetesManifest({ ...submission(), builds }, where({}))).Job.spec.template.spec.nodeSelector;
    for (const builds of ['tensorrt@10.13.3.9:sm_110', 'tensorrt@10.13.3.9:sm_90:linux-aarch64'])
      expect(selectorOf(builds)).toMatchObject({ 'kubernetes.io/arch': 'arm64' });
    expect(selectorOf('tensorrt@10.13.3.9:sm_90:linux-x86_64')).not.toHaveProperty('kubernetes.io/arch');
  });

  test('has what a patch adds, as kubectl merges it', () => {
    const tolerations = [{ key: 'nvidia.com/gpu', operator: 'Exists' }];
    const patch = {
      ...{ tolerations, runtimeClassName: 'nvidia', serviceAccountName: 'builder' },
      imagePullSecrets: [{ name: 'registry' }],
      nodeSelector: { pool: 'gpu' },
      containers: [{ name: 'build', resources: { requests: { memory: '16Gi' } }, args: ['other'] }],
    };
    const merged = kinds(kubernetesManifest(submission(), where({ patch }))).Job.spec.template.spec;
    expect(merged).toMatchObject({ tolerations, runtimeClassName: 'nvidia', serviceAccountName: 'builder' });
    expect(merged).toMatchObject({ imagePullSecrets: [{ name: 'registry' }] });
    expect(Object.keys(merged.nodeSelector)).toHaveLength(3);
    const [only, ...others] = merged.containers;
    expect(others).toEqual([]);
    expect(only).toMatchObject({
      args: ['other'],
      resources: { limits: { 'nvidia.com/gpu': 1 }, requests: { memory: '16Gi' } },
      workingDir: container.workingDir,
    });
    expect(merged.volumes).toEqual(job.spec.template.spec.volumes);
  });

  test('of a target with several capabilities runs where its user requests', () => {
    const nodeSelector = { pool: 'gpu', 'nvidia.com/gpu.compute.major': '12' };
    const several = { builds: 'tensorrt-rtx@1.7.1.116:sm_89,sm_120' };
    const selectorOf = (manifest: string) => kinds(manifest).Job.spec.template.spec.nodeSelector;
    expect(selectorOf(kubernetesManifest(submission(several), where({ nodeSelector })))).toEqual(
      nodeSelector,
    );
    expect(selectorOf(kubernetesManifest(submission(), where({ nodeSelector })))).toEqual({
      ...nodeSelector,
      'nvidia.com/gpu.compute.minor': '9',
    });
  });

  test('has text where kubectl, by YAML 1.1, would read a truth value or a number', () => {
    const nodeSelector = { pool: 'yes', y: 'off', build: '0b1010', rack: '1:30', slot: '1_000' };
    const selected = kinds(kubernetesManifest(submission(), where({ nodeSelector }))).Job;
    expect(selected.spec.template.spec.nodeSelector).toMatchObject(nodeSelector);
  });

  test('writes its temporary files into a volume of its own size', () => {
    const { volumes } = job.spec.template.spec;
    const at = container.volumeMounts.find(({ name }) => name === volumes[0]?.name)?.mountPath;
    expect(volumes[0]?.emptyDir.sizeLimit).toBe('32Gi');
    expect(container.env).toEqual([{ name: 'TMPDIR', value: at }]);
  });

  test('has what its user passes through', () => {
    const volumes = [{ name: 'models', persistentVolumeClaim: { claimName: 'models' } }];
    const volumeMounts = [{ name: 'models', mountPath: '/m', readOnly: true }];
    const passed = where({
      volumes,
      volumeMounts,
      namespace: 'ml',
      secret: 's3',
      folder: '/m',
      scratch: '1Gi',
    });
    const { Job } = kinds(kubernetesManifest(submission(), passed));
    expect(Job.metadata.namespace).toBe('ml');
    expect(Job.spec.template.spec.volumes[0]).toEqual(volumes[0]);
    expect(containerOf({ Job })).toMatchObject({
      workingDir: '/m',
      envFrom: [{ secretRef: { name: 's3' } }],
      volumeMounts: [volumeMounts[0], {}],
    });
  });

  test('that is sent again is another Job', () => {
    const again = kinds(kubernetesManifest(submission({ attempt: 'later' }), where()));
    expect(again.Job.metadata.name).not.toBe(job.metadata.name);
  });

  test('has a name that leaves room for the index of a pod', () => {
    const longest = kinds(kubernetesManifest(submission({ target: 'x'.repeat(24) }), where()));
    expect(`${longest.Job.metadata.name}-999999`.length).toBeLessThanOrEqual(63);
  });
});

describe('with DRA', () => {
  const dra = kinds(kubernetesManifest(submission(), where({ resource: 'dra', namespace: 'ml' })));

  test('a pod claims a device of the capability of the target', () => {
    const { ResourceClaimTemplate: template, Job } = dra;
    const [request] = template.spec.spec.devices.requests;
    expect(request!.exactly).toMatchObject({ deviceClassName: 'gpu.nvidia.com', count: 1 });
    expect(request!.exactly.selectors[0]?.cel.expression).toContain("semver('8.9.0')");
    const pod = Job.spec.template.spec;
    expect(pod.resourceClaims[0]?.resourceClaimTemplateName).toBe(template.metadata.name);
    expect(pod.containers[0]?.resources).toEqual({ claims: [{ name: pod.resourceClaims[0]?.name }] });
    expect(pod.nodeSelector).toEqual({});
    expect(template.metadata.namespace).toBe('ml');
  });

  test('the template is the same when jobs are sent again', () => {
    const later = submission({ attempt: 'later', jobs: [5] });
    expect(
      kinds(kubernetesManifest(later, where({ resource: 'dra', namespace: 'ml' }))).ResourceClaimTemplate,
    ).toEqual(dra.ResourceClaimTemplate);
  });
});

test.each(['/a b', '/a\nkind: Pod', '/a: {b', `/it's "x"`, '/#x', '/---\n'])(
  'a folder %j stays a value',
  (folder) => {
    const { Job, ...others } = kinds(
      kubernetesManifest(submission({ plan: { id: '0123456789ab', folder } }), where()),
    );
    expect(containerOf({ Job }).workingDir).toBe(folder);
    expect(others).toEqual({});
  },
);

test('an address is not expanded by Kubernetes', () => {
  const { Job } = kinds(kubernetesManifest(submission({ address: 's3://$(HOME)/x' }), where()));
  expect(containerOf({ Job }).args[2]).toBe('s3://$$(HOME)/x');
});
