import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildAddon } from '../../../scripts/build-native.mjs';
import { buildPlan } from '../../../src/engines/builder/build-supervised.js';
import { buildWithTrtexec } from '../../../src/engines/builder/trtexec-build.js';
import { defaultRecipe } from '../../../src/engines/identity/recipe.js';
import { TrtforgeError } from '../../../src/errors.js';
import { ignoreEvents } from '../../../src/events.js';
import { explaining, issuesOf } from '../../../src/quality/explain/failure.js';
import { FakeBench } from '../../fakes/tensorrt/library.js';
import { type FakeVersion, fakeTrtexec, fakeVersions } from '../../fakes/trtexec.js';
import { dynamicModel } from '../../native/tiny-models.js';
import { resolvedBuild } from '../../support/sample-engine.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-failed-builds-'));
let bench: FakeBench;

beforeAll(async () => {
  await buildAddon({ say: () => {} });
  bench = await FakeBench.plain();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const recipe = {
  memoryPools: { ...defaultRecipe.memoryPools, workspace: 2 ** 30 },
  profiles: [{ x: { min: [1, 64], opt: [8, 64], max: [32, 64], values: false } }],
};
const filesOf = (modelPath: string) => ({ modelPath, planPath: join(folder, 'plan') });

async function failureOf(attempt: Promise<unknown>): Promise<TrtforgeError> {
  const error = await attempt.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof TrtforgeError) return error;
  throw new Error(`a TrtforgeError was expected, not ${String(error)}`);
}

/** A build by a fake for trtexec, explained. */
function trtexecFails(version: FakeVersion, fault: string): Promise<TrtforgeError> {
  const model = dynamicModel(folder);
  const toolchain = {
    product: 'tensorrt',
    version: fakeVersions[version],
    libraries: { inference: '/nowhere/libnvinfer.so', parser: null, plugins: null },
    trtexec: fakeTrtexec(folder, { version, fault }),
    foundBy: 'test',
  } as const;
  const build = resolvedBuild(model, {
    toolchain,
    recipe: { ...recipe, stronglyTyped: version !== '8.6' },
    logFolder: folder,
  });
  return failureOf(
    explaining((emit) => buildWithTrtexec(build, filesOf(model), { emit }), { emit: ignoreEvents, model }),
  );
}

describe('a build by trtexec that fails', () => {
  it.each([
    ['8.6', 'killed', 'TF_CHILD_DIED', ['process-died']],
    ['10.6', 'killed', 'TF_CHILD_DIED', ['process-died']],
    ['10.6', 'aborts', 'TF_CHILD_DIED', ['process-died']],
    ['10.6', 'misreads-pools', 'TF_TRTEXEC_MISREAD', ['workspace-parsed-tiny']],
    ['11.1', 'misreads-pools', 'TF_TRTEXEC_MISREAD', ['workspace-parsed-tiny']],
  ] as const)('%s, %s: %s, %j', async (version, fault, code, expected) => {
    const error = await trtexecFails(version, fault);
    const errors = issuesOf(error).filter(({ severity }) => severity === 'error');
    expect({ code: error.code, issues: errors.map(({ id }) => id) }).toEqual({ code, issues: expected });
  });

  it('is not the fault of what the user wrote where trtexec misreads what it was passed correctly', async () => {
    const error = await trtexecFails('10.6', 'misreads-pools');
    expect(error.remedy).toMatch(/report it with the log; --builder native/);
  });
});

describe('a build by the library that fails', () => {
  it('by a lack of GPU memory is TF_GPU_MEMORY, not a fault of the model, and states what makes room', async () => {
    const work = explaining(
      (emit) =>
        buildPlan(
          resolvedBuild(dynamicModel(folder), { toolchain: bench.toolchain('10'), recipe }),
          filesOf(dynamicModel(folder)),
          { emit, environment: bench.environment({ FAKE_BUILD: 'memory' }) },
        ),
      { emit: ignoreEvents },
    );
    const error = await failureOf(work);
    expect(error).toMatchObject({ code: 'TF_GPU_MEMORY', exitCode: 3 });
    expect(error.details).toMatchObject({ freeBytes: expect.any(Number), totalBytes: expect.any(Number) });
  });

  it('because the process was killed: the signal is reported, with the last lines it printed', async () => {
    const model = dynamicModel(folder);
    const work = explaining(
      (emit) =>
        buildPlan(resolvedBuild(model, { toolchain: bench.toolchain('10'), recipe }), filesOf(model), {
          emit,
          environment: bench.environment({ FAKE_BUILD: 'aborts' }),
        }),
      { emit: ignoreEvents, model },
    );
    const error = await failureOf(work);
    expect(error.code).toBe('TF_CHILD_DIED');
    expect(issuesOf(error).find(({ id }) => id === 'process-died')).toMatchObject({
      cause: expect.stringMatching(
        /was killed by SIGABRT, which is the library ending the process itself\. Its last line is ".+"/,
      ),
    });
  });
});
