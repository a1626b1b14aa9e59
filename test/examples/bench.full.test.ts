import { describe, expect, it } from 'vitest';
import { CommandFailed, measureCommand, median } from '../../bench/measure.js';
import { markdown } from '../../bench/report.js';
import { advantage, costs, isMet, type Measurement } from '../../bench/result.js';
import { describeWith } from '../support/needs.js';

describeWith('python', 'measureCommand', () => {
  it('sees the time and the peak memory of the process it starts', () => {
    const script = 'const held = Buffer.alloc(200e6, 1); setTimeout(() => held[0], 150)';
    const { median: cost, runs } = measureCommand([process.execPath, '-e', script], { runs: 2, warmups: 0 });
    expect(runs).toHaveLength(2);
    expect(cost.seconds).toBeGreaterThan(0.15);
    expect(cost.cpuSeconds).toBeGreaterThan(0.01);
    expect(cost.peakBytes).toBeGreaterThan(200e6);
    expect(cost.peakBytes).toBeLessThan(400e6);
  });

  it('counts the memory of a child that the process waited for', () => {
    const child = 'Buffer.alloc(300e6, 1)';
    const parent = `require('child_process').spawnSync(process.execPath, ['-e', ${JSON.stringify(child)}])`;
    const { median: cost } = measureCommand([process.execPath, '-e', parent], { runs: 1, warmups: 0 });
    expect(cost.peakBytes).toBeGreaterThan(300e6);
  });

  it('names the command that failed and what it printed', () => {
    const command = [process.execPath, '-e', 'console.error("no such model"); process.exit(3)'];
    expect(() => measureCommand(command, { runs: 1 })).toThrow(CommandFailed);
    expect(() => measureCommand(command, { runs: 1 })).toThrow(/no such model/);
  });
});

describe('median', () => {
  it.each([
    [[3, 1, 2], 2],
    [[4, 1, 2, 3], 2.5],
    [[7], 7],
  ])('of %j is %d', (values, expected) => {
    expect(median(values)).toBe(expected);
  });
});

describe('a measurement', () => {
  const wall: Measurement = {
    what: 'x',
    unit: 's',
    ours: 0.1,
    peer: { name: 'p', figure: 1 },
    bar: { limit: 0.15, better: 'lower' },
  };
  const rate: Measurement = {
    what: 'y',
    unit: 'M pairs/s',
    ours: 300,
    peer: { name: 'p', figure: 5 },
    bar: { limit: 350, better: 'higher' },
  };

  it('is better when it is less time and more pairs', () => {
    expect(advantage(wall)).toBeCloseTo(10);
    expect(advantage(rate)).toBeCloseTo(60);
    expect(isMet(wall)).toBe(true);
    expect(isMet(rate)).toBe(false);
  });

  it('leaves out what could not be measured', () => {
    const runs = { median: { seconds: 1, cpuSeconds: null, peakBytes: null }, runs: [] };
    expect(costs('z', runs, undefined, { megabytes: 80 }).map(({ unit }) => unit)).toEqual(['s']);
  });

  it('appears in the Markdown with its peer, ratio and bar, beside what was skipped', () => {
    const text = markdown({
      schema: 'trtforge.bench-peers/1',
      date: '2026-01-02T03:04:05.000Z',
      command: 'npm run bench',
      machine: { cpu: 'a CPU', cores: 2, memoryGib: 24, node: '20.20.0', os: 'linux x64', load: 0.5 },
      peers: { missing: 'no python3' },
      runs: 5,
      cases: [
        {
          case: 'c',
          title: 'A case',
          commands: ['one'],
          measurements: [wall, rate],
          skipped: ['peers: none'],
        },
      ],
    });
    expect(text).toContain('| x | 0.100 s | 1.000 s (p) | 10.0× | ≤ 0.15 s | yes |');
    expect(text).toContain('| y | 300 M pairs/s | 5 M pairs/s (p) | 60.0× | ≥ 350 M pairs/s | no |');
    expect(text).toContain('not measured here: peers: none');
    expect(text).toContain('none: no python3');
  });
});
