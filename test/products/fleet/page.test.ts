import { describe, expect, test } from 'vitest';
import { formatBytes, formatMs } from '../../../src/base/text/quantity.js';
import { fleetReport } from '../../../src/products/fleet/page.js';
import { fleetStatusSchema } from '../../../src/products/fleet/plan-schema.js';
import { type Block, present, type Section, type Text } from '../../../src/report/blocks.js';
import { LACKS, sampleStatus, TARGETS } from './sample-status.js';

const status = fleetStatusSchema.parse(sampleStatus());
const page = fleetReport.page(status);
const section = (id: string): Section => present(page.sections).find((each) => each.id === id)!;
const [map] = present(section('engines').blocks) as [Extract<Block, { kind: 'table' }>];

type Cell = readonly { readonly mark: string; readonly text: string; readonly share?: number }[];
const linesOf = (text: Text): Cell => (text as unknown as { lines: Cell }).lines;

describe('the map of a fleet', () => {
  const jobAt = (row: number, column: number) => status.jobs[row * TARGETS.length + column]!;
  const cells = map.rows.flatMap(([, ...row], at) =>
    row.map((cell, column) => ({ lines: linesOf(cell), job: jobAt(at, column) })),
  );

  test('is the first section, and has a cell of each engine with what the JSON has', () => {
    expect(page.sections[0]?.id).toBe('engines');
    expect(cells).toHaveLength(status.jobs.length);
    for (const { lines, job } of cells) {
      const [state, ...figures] = lines;
      expect(state?.text).toBe(job.state);
      const shown = figures.filter(({ mark }) => mark === 'heat').map(({ text }) => text);
      const { bytes, buildMs, builtAt } = job;
      expect(shown.slice(0, 2)).toEqual(
        bytes === null || buildMs === null ? [] : [formatBytes(bytes), formatMs(buildMs)],
      );
      const days = Math.floor((Date.parse(status.at) - Date.parse(builtAt ?? '')) / 86_400_000);
      expect(shown[2]).toBe(builtAt === null ? undefined : `${days} days old`);
    }
  });

  test('has no age of an engine whose passport states no date', () => {
    const jobs = status.jobs
      .slice(0, 2)
      .map((job, at) => ({ ...job, builtAt: at === 0 ? 'yesterday' : job.builtAt }));
    const { blocks } = present(fleetReport.page({ ...status, jobs }).sections)[0]!;
    const text = JSON.stringify(blocks);
    expect(text.match(/days old/g)).toHaveLength(1);
    expect(text).not.toMatch(/NaN|null,"text/);
  });

  test('shades by the share of the largest', () => {
    const largest = Math.max(...status.jobs.map(({ bytes }) => bytes ?? 0));
    for (const { lines, job } of cells)
      if (job.bytes !== null) expect(lines[1]?.share).toBeCloseTo(job.bytes / largest);
  });

  test('names what did not pass, and nothing that did', () => {
    const texts = cells.flatMap(({ lines, job }) => (job.gate === 'fail' ? lines : []));
    expect(texts).toContain('policy: fail');
    expect(JSON.stringify(map.rows)).not.toContain('answer:');
  });
});

describe('reasons of a fleet', () => {
  const [list] = present(section('why').blocks) as [Extract<Block, { kind: 'list' }>];

  test('engines that lack the same are one line, the worst state first', () => {
    const lines = list.items.map(({ label, items }) => [label?.text, items?.length]);
    expect(lines).toEqual([
      ['failed', 3],
      ['refused', 1],
      ['missing', 6],
    ]);
    const notThere = status.jobs.filter(({ state }) => state !== 'have');
    expect(list.items.flatMap(({ items = [] }) => items)).toHaveLength(notThere.length);
  });

  test('those of failures are in the verdict once each, and no more than fit above the map', () => {
    expect(page.verdict.reasons).toHaveLength(2);
    expect(page.verdict.reasons[0]).toContain(LACKS);
    const jobs = status.jobs.map((job) => ({
      ...job,
      state: 'failed' as const,
      why: [`reason ${job.index}`],
    }));
    expect(fleetReport.page({ ...status, jobs }).verdict.reasons).toHaveLength(3);
  });
});
