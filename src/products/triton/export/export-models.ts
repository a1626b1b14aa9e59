import { join } from 'node:path';
import { publishFile } from '../../../base/files/publish.js';
import type { LocalStore } from '../../../engines/store/local.js';
import type { StoredEngine } from '../../../engines/store/store.js';
import { readLabels } from '../../../formats/images/labels.js';
import { clientOf, componentsOf, namedStates } from './bundle.js';
import { readBundleMeta, readContract, type StateContract } from './contract.js';
import { chooseEngines } from './engines.js';
import { plainName, planFile } from './exporter.js';
import { nextVersion, publishModels } from './publish.js';
import type { TritonExport } from './result.js';
import { type ServeRequest, serve } from './served-model.js';

export interface ExportRequest
  extends Pick<ServeRequest, 'instances' | 'delayMicroseconds' | 'gpu' | 'force'> {
  readonly repository: string;
  readonly name?: string | undefined;
  readonly version?: number | undefined;
  /** Files. */
  readonly labels?: string | undefined;
  readonly contract?: string | undefined;
  readonly bundle?: string | undefined;
}

/** Writes engines as models of a repository. Throws TF_SERVING_REFUSED, and what reading engines, contract, labels and meta file throws. */
export async function exportModels(
  names: readonly string[],
  store: LocalStore,
  request: ExportRequest,
): Promise<TritonExport> {
  const { repository, force, gpu, instances, delayMicroseconds } = request;
  const engines = await chooseEngines(names, store);
  const contract = request.contract === undefined ? undefined : readContract(request.contract);
  const labels = request.labels === undefined ? [] : readLabels(request.labels);
  const meta = request.bundle === undefined ? null : readBundleMeta(request.bundle);
  const served = (name: string, own: readonly StoredEngine[], states: StateContract | undefined) => {
    const settings = { name, gpu, instances, delayMicroseconds, labels, force };
    const model = serve(own, { ...settings, version: request.version ?? null, contract: states });
    return model.isPinned ? model : { ...model, version: nextVersion(repository, name) };
  };
  const start = plainName(request.name ?? meta?.model_name?.split('/').at(-1) ?? 'bundle');
  const models =
    meta === null
      ? [served(request.name ?? plainName(engines[0]!.passport.model.name), engines, contract)]
      : componentsOf(engines).map(({ role, engines: own }) =>
          served(
            `${start}_${role}`,
            own,
            (role === 'encoder' ? contract : undefined) ?? namedStates(own[0]!),
          ),
        );
  const client = meta === null ? null : clientOf(models, meta);
  const clientFile = client === null || typeof client === 'string' ? null : `${start}.client.mts`;
  const files = await publishModels(models, repository, { trust: store.trust, force, engines });
  if (clientFile !== null && typeof client === 'object')
    publishFile(join(repository, clientFile), client?.text ?? '');
  return {
    schema: 'trtforge.triton-export/1',
    repository,
    models: models.map(({ name, version, maxBatch, plans, states }) => ({
      name,
      version,
      maxBatchSize: maxBatch,
      files: files.flatMap(({ path }) => (path.startsWith(`${name}/`) ? [path] : [])),
      plans: plans.map(({ capability, engine }) => ({
        capability,
        identity: engine.identity,
        path: `${name}/${version}/${planFile(engine)}`,
      })),
      states: states.map(({ input, output, initial }) => ({
        input: input.name,
        output: output.name,
        initial,
      })),
    })),
    client: clientFile,
    warnings: [
      ...models.flatMap(({ warnings }) => warnings),
      ...(typeof client === 'string' ? [`No client was written: ${client}.`] : []),
    ],
  };
}
