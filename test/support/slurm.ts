import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** A real Slurm on this machine, with a munge and a folder of its own; root alone can start one. */
export interface Slurm extends AsyncDisposable {
  /** In which `sbatch`, `squeue` and `scontrol` reach it. */
  readonly environment: NodeJS.ProcessEnv;
  /** Runs one of its programs and gives what it printed. */
  run(program: string, ...args: readonly string[]): string;
  /** Until no job is in the queue. */
  untilIdle(): Promise<void>;
}

/** A node with one GPU, which is not there (its device is /dev/null), and cores for more tasks than that. */
export interface FakeNode {
  readonly name: string;
  readonly gpu: string;
  readonly feature: string;
}

const START_LIMIT_MS = 240_000;

export async function startSlurm(
  nodes: readonly FakeNode[] = [
    { name: 'l4a', gpu: 'l4', feature: 'sm_89' },
    { name: 'a10a', gpu: 'a10', feature: 'sm_86' },
  ],
): Promise<Slurm> {
  const folder = mkdtempSync(join(tmpdir(), 'trtforge-slurm-'));
  const at = (...names: readonly string[]) => join(folder, ...names);
  for (const name of ['munge', 'state', ...nodes.map((node) => `spool-${node.name}`)])
    mkdirSync(at(name), { mode: 0o755 });
  const environment = { ...process.env, SLURM_CONF: at('slurm.conf') };
  writeFileSync(at('munge', 'key'), randomBytes(128), { mode: 0o400 });
  const [controller, ...ports] = await freePorts(nodes.length + 1);
  writeFileSync(
    at('slurm.conf'),
    configuration(
      folder,
      controller!,
      nodes.map((node, index) => [node, ports[index]!]),
    ),
  );
  writeFileSync(
    at('gres.conf'),
    [
      'AutoDetect=off',
      ...nodes.map(({ name, gpu }) => `NodeName=${name} Name=gpu Type=${gpu} File=/dev/null`),
    ].join('\n'),
  );
  const children: ChildProcess[] = [];
  const start = (program: string, ...args: readonly string[]) =>
    children.push(spawn(program, args, { env: environment, stdio: 'ignore' }));
  const run = (program: string, ...args: readonly string[]) =>
    execFileSync(program, args, { env: environment, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  const untilIdle = async () => {
    while (
      run('squeue', '--noheader', '--states=all', '--format=%T').match(
        /PENDING|RUNNING|COMPLETING|CONFIGURING/,
      )
    )
      await sleep(200);
  };
  const stop = async () => {
    try {
      // The steps of a task are nobody's children here, and end with it.
      run('scancel', '--user=root', '--full', '--signal=KILL');
      run('scancel', '--user=root');
      await untilIdle();
    } catch {
      // The controller never answered.
    }
    for (const child of children.reverse()) {
      const gone = new Promise((resolve) => child.once('exit', resolve));
      if (child.exitCode !== null || child.signalCode !== null || !child.kill()) continue;
      const killer = setTimeout(() => child.kill('SIGKILL'), 5000);
      await gone;
      clearTimeout(killer);
    }
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    start(
      'munged',
      '--foreground',
      '--force',
      `--key-file=${at('munge', 'key')}`,
      `--socket=${at('munge', 'socket')}`,
      `--pid-file=${at('munge', 'pid')}`,
      `--seed-file=${at('munge', 'seed')}`,
      `--log-file=${at('munge', 'log')}`,
    );
    await until(() => run('munge', `--socket=${at('munge', 'socket')}`, '--no-input'), 'munged');
    start('slurmctld', '-D', '-c', '-f', at('slurm.conf'));
    for (const { name } of nodes) start('slurmd', '-D', '-N', name, '-f', at('slurm.conf'));
    await until(() => {
      const states = run('sinfo', '--noheader', '--Node', '--format=%T').trim().split('\n');
      if (states.length !== nodes.length || states.some((state) => state !== 'idle'))
        throw new Error(states.join());
    }, 'slurmctld');
  } catch (cause) {
    const logs = ['ctld.log', ...nodes.map(({ name }) => `d-${name}.log`)].map((name) => textOf(at(name)));
    await stop();
    throw new Error(`Slurm did not start: ${String(cause)}\n${logs.join('\n')}`);
  }
  return { environment, run, untilIdle, [Symbol.asyncDispose]: stop };
}

const configuration = (
  folder: string,
  port: number,
  nodes: readonly (readonly [node: FakeNode, port: number])[],
): string => `ClusterName=trtforge
SlurmctldHost=localhost
SlurmctldPort=${port}
SlurmUser=root
AuthType=auth/munge
CryptoType=crypto/munge
AuthInfo=socket=${folder}/munge/socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
ReturnToService=2
SlurmctldPidFile=${folder}/ctld.pid
SlurmdPidFile=${folder}/d-%n.pid
SlurmdSpoolDir=${folder}/spool-%n
StateSaveLocation=${folder}/state
SlurmctldLogFile=${folder}/ctld.log
SlurmdLogFile=${folder}/d-%n.log
MailProg=/bin/true
SlurmdTimeout=20
SlurmdParameters=config_overrides
KillWait=5
JobRequeue=1
SchedulerParameters=sched_interval=1
${nodes
  .map(
    ([{ name, gpu, feature }, at]) =>
      `NodeName=${name} NodeHostname=localhost Port=${at} CPUs=4 RealMemory=100 Gres=gpu:${gpu}:1 Feature=${feature}`,
  )
  .join('\n')}
PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP
`;

async function until(check: () => unknown, what: string): Promise<void> {
  const limit = Date.now() + START_LIMIT_MS;
  for (;;) {
    try {
      check();
      return;
    } catch (error) {
      if (Date.now() > limit) throw new Error(`${what}: ${String(error)}`);
      await sleep(200);
    }
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** Ports that were free a moment ago, each another one. */
async function freePorts(count: number): Promise<readonly number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      return server;
    }),
  );
  const ports = servers.map((server) => {
    const address = server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  });
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
