// One process of many that ask for an engine. Plain JavaScript over dist/, because it is started as it stands.
// argv[2]: JSON of { store, memo, plan, model, log, identity, buildMs, hang, remount, dieAtRename, forceRebuild, output, bucket }.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const task = JSON.parse(process.argv[2]);

if (task.dieAtRename !== undefined) {
  const rename = fs.renameSync;
  let renames = 0;
  fs.renameSync = (from, to) => {
    if (renames++ === task.dieAtRename) process.kill(process.pid, 'SIGKILL');
    rename(from, to);
  };
  syncBuiltinESMExports();
}

const { LocalStore } = await import('../../../dist/engines/store/local.js');
const { noTrust } = await import('../../../dist/engines/store/trust.js');
const { obtainEngine } = await import('../../../dist/engines/builder/obtain-engine.js');
const { writeFailed } = await import('../../../dist/base/files/publish.js');

/** Stands in for the library: takes its time, writes the plan it was given, and notes in the log that it was asked. */
async function build(_, { planPath }) {
  fs.appendFileSync(task.log, `${process.pid}\n`);
  const plan = fs.readFileSync(task.plan);
  if (task.hang) {
    fs.writeFileSync(planPath, plan.subarray(0, plan.length / 2));
    process.stdout.write('building\n');
    setInterval(() => {}, 1000);
    await new Promise(() => {});
  }
  await new Promise((resolve) => setTimeout(resolve, task.buildMs ?? 0));
  try {
    if (task.remount === 'before the plan') remount();
    fs.writeFileSync(planPath, plan);
    if (task.remount === 'after the plan') remount();
    if (task.fillDisk) fillDisk(`${planPath}.ballast`);
  } catch (cause) {
    throw writeFailed(planPath, cause);
  }
  return {
    buildMs: task.buildMs ?? 0,
    bytes: plan.length,
    libraryVersion: '1.7.1.116',
    layers: 1,
    timingCache: 'none',
    peakMemoryBytes: 0,
    warnings: [],
    inputs: [],
    outputs: [],
  };
}

/** The bucket of a task, with lease times that a test can wait for; keys come from the environment. */
async function openBucket(bucket) {
  if (bucket === undefined) return null;
  const [{ remoteAddress }, { openS3 }, { RemoteStore }] = await Promise.all([
    import('../../../dist/engines/store/remote/address.js'),
    import('../../../dist/engines/store/remote/s3-objects.js'),
    import('../../../dist/engines/store/remote/remote-store.js'),
  ]);
  const address = remoteAddress(bucket.address);
  return new RemoteStore(await openS3(address), address.prefix, { leaseTiming: bucket.leaseTiming });
}

const MOUNT = 'mount';

/** The store, which is a file system of its own, becomes read-only. */
const remount = () => execFileSync(MOUNT, ['-o', 'remount,ro', task.store]);

/** Leaves not one byte on the file system. */
function fillDisk(path) {
  const file = fs.openSync(path, 'w');
  for (let block = 65536; block >= 1; ) {
    try {
      fs.writeSync(file, Buffer.alloc(block));
    } catch {
      block = Math.floor(block / 2);
    }
  }
  fs.closeSync(file);
}

/** Says that another process is building what this one wants. */
function tell({ type, phase }) {
  if (type === 'phase-start' && phase === 'wait') process.stdout.write('waiting\n');
}

const stopping = new AbortController();
process.on('SIGTERM', () => stopping.abort());

try {
  const result = await obtainEngine(
    {
      modelPath: task.model,
      content: { digest: 'model', bytes: 1, weightBytes: 0, inputs: [], precisions: [] },
      model: { name: 'sample', version: null, bytes: 1 },
      identity: task.identity,
      toolchain: { foundBy: 'the test' },
      pluginPaths: [],
      extension: 'engine',
      conversion: null,
      timingCache: null,
      timingScope: null,
      forceRebuild: task.forceRebuild ?? false,
      output: task.output ?? null,
    },
    {
      store: new LocalStore(task.store, task.memo),
      layers: [],
      remote: await openBucket(task.bucket),
      trust: noTrust,
      maxBytes: null,
    },
    { emit: tell, signal: stopping.signal, build },
  );
  process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0));
} catch (error) {
  process.stdout.write(`${JSON.stringify({ code: error.code ?? 'unknown', message: error.message })}\n`, () =>
    process.exit(1),
  );
}
