// trtexec as a peer, without anything of trtforge between: our flags, its own export of times and its own summary.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { median } from './figures.mjs';

/** Runs trtexec; gives what it printed. */
export function runTrtexec({ trtexec, environment }, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(trtexec, args, { env: environment, stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        said += chunk;
      });
    }
    child.on('error', reject);
    child.on('close', (status, signal) => {
      if (status === 0 && said.includes('&&&& PASSED')) resolve(said);
      else
        reject(
          new Error(
            `trtexec ended with ${signal ?? status}: ${said.trim().split('\n').slice(-3).join(' | ')}`,
          ),
        );
    });
  });
}

const shapesFlag = (shapes) =>
  `--shapes=${Object.entries(shapes)
    .map(([name, dims]) => `${name}:${dims.join('x')}`)
    .join(',')}`;

/** Measures a plan: median GPU time by its exported samples, and the throughput it prints. */
export async function measureTrtexec(machine, plan, shapes, { transfers, graph, durationMs }) {
  const times = join(machine.work, 'trtexec.times.json');
  const said = await runTrtexec(machine, [
    `--loadEngine=${plan}`,
    shapesFlag(shapes),
    '--warmUp=200',
    `--duration=${durationMs / 1000}`,
    '--useSpinWait',
    `--exportTimes=${times}`,
    ...(transfers ? [] : ['--noDataTransfers']),
    ...(graph ? ['--useCudaGraph'] : []),
  ]);
  const samples = JSON.parse(readFileSync(times, 'utf8'));
  return {
    gpuMs: median(samples.map(({ computeMs }) => computeMs)),
    qps: Number(/Throughput: ([\d.e+]+) qps/.exec(said)?.[1]),
  };
}
