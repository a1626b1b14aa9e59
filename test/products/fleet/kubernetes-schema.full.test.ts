import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { kubernetesManifest } from '../../../src/products/fleet/schedulers/kubernetes.js';
import { whereSchema } from '../../../src/products/fleet/schedulers/where.js';
import { describeWith } from '../../support/needs.js';
import { submission } from './sample-plan.js';

describeWith('kubernetes-validate', 'the schemas of Kubernetes', (python) => {
  const folder = mkdtempSync(join(tmpdir(), 'trtforge-kubernetes-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  function validated(manifest: string) {
    const path = join(folder, 'manifest.yaml');
    writeFileSync(path, manifest);
    const { status, stdout, stderr } = spawnSync(python, ['-m', 'kubernetes_validate', '--strict', path], {
      encoding: 'utf8',
    });
    return { status, output: `${stdout}${stderr}` };
  }

  const manifestOf = (kubernetes: Record<string, unknown>) => {
    const where = whereSchema.parse({ kubernetes: { image: 'registry/trtforge:10.13', ...kubernetes } });
    if (where === 'local' || where.kubernetes === undefined) throw new Error('not of Kubernetes');
    return kubernetesManifest(submission(), where.kubernetes);
  };

  const everything = {
    namespace: 'ml',
    folder: '/models',
    secret: 's3-keys',
    nodeSelector: { pool: 'gpu' },
    volumes: [{ name: 'models', persistentVolumeClaim: { claimName: 'models' } }],
    volumeMounts: [{ name: 'models', mountPath: '/models', readOnly: true }],
    'at-once': 2,
  };

  test.each([
    ['a device plugin', { resource: 'device-plugin' }],
    ['DRA', { resource: 'dra' }],
    ['every key with a device plugin', { ...everything, resource: 'device-plugin' }],
    ['every key with DRA', { ...everything, resource: 'dra' }],
  ])('a manifest for %s passes', (_, asked) => {
    expect(validated(manifestOf(asked))).toMatchObject({ status: 0 });
  });

  test.each([
    ['backoffLimitPerIndex', 'backoffLimitPerindex'],
    ['deviceClassName', 'deviceClass'],
    ['sizeLimit', 'limit'],
  ])('a %s that is written otherwise fails', (right, wrong) => {
    const manifest = manifestOf({ resource: 'dra' });
    expect(manifest).toContain(right);
    const { status, output } = validated(manifest.replaceAll(right, wrong));
    expect(status).not.toBe(0);
    expect(output).toContain(wrong);
  });
});
