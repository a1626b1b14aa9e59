import { cpus, loadavg, totalmem } from 'node:os';
import type { BenchContext } from './context.js';
import { advantage, type CaseResult, isMet, type Measurement, type Table } from './result.js';

/** Everything a run found: data first, `markdown` is a view of it. */
export interface BenchReport {
  readonly schema: 'trtforge.bench-peers/1';
  /** ISO date and time. */
  readonly date: string;
  readonly command: string;
  readonly machine: {
    readonly cpu: string;
    readonly cores: number;
    readonly memoryGib: number;
    readonly node: string;
    readonly os: string;
    /** One-minute load average when the report was made; above about 1 something else was running too. */
    readonly load: number;
  };
  readonly peers: Readonly<Record<string, string>> | { readonly missing: string };
  readonly runs: number;
  readonly cases: readonly CaseResult[];
}

export function benchReport(
  context: BenchContext,
  command: string,
  cases: readonly CaseResult[],
): BenchReport {
  const processors = cpus();
  return {
    schema: 'trtforge.bench-peers/1',
    date: new Date().toISOString(),
    command,
    machine: {
      cpu: processors[0]?.model.trim() ?? 'unknown',
      cores: processors.length,
      memoryGib: Math.round(totalmem() / 2 ** 30),
      node: process.versions.node,
      os: `${process.platform} ${process.arch}`,
      load: Math.round(10 * (loadavg()[0] ?? 0)) / 10,
    },
    peers: 'versions' in context.peers ? context.peers.versions : context.peers,
    runs: context.runs,
    cases,
  };
}

export function markdown(report: BenchReport): string {
  const { machine } = report;
  const peers =
    typeof report.peers.missing === 'string'
      ? `none: ${report.peers.missing}`
      : Object.entries(report.peers)
          .map((pair) => pair.join(' '))
          .join(', ');
  return [
    `${report.date.slice(0, 10)}, \`${report.command}\` on ${machine.cpu}, ${machine.cores} cores, ${machine.memoryGib} GiB, ${machine.os}, Node ${machine.node}, load ${machine.load}. Peers: ${peers}.`,
    `Median of ${report.runs} or more runs after a warm-up; whole commands in turns with the peer's, process start included. "Ratio" is how many times better ours is.`,
    '',
    ...report.cases.flatMap(caseLines),
  ].join('\n');
}

function caseLines(result: CaseResult): string[] {
  const table =
    result.measurements.length === 0
      ? []
      : [
          '| | ours | peer | ratio | bar | met |',
          '|---|---|---|---|---|---|',
          ...result.measurements.map((line) => `| ${cells(line).join(' | ')} |`),
          '',
        ];
  return [
    `### ${result.title}`,
    '',
    ...(result.tables ?? []).flatMap(tableLines),
    ...table,
    ...result.commands.map((command) => `- \`${command}\``),
    ...result.skipped.map((reason) => `- not measured here: ${reason}`),
    '',
  ];
}

const tableLines = ({ caption, head, rows }: Table): string[] => [
  `#### ${caption}`,
  '',
  `| ${head.join(' | ')} |`,
  `|${head.map((_, at) => (at === 0 ? '---' : '--:')).join('|')}|`,
  ...rows.map((row) => `| ${row.join(' | ')} |`),
  '',
];

function cells(line: Measurement): string[] {
  const ratio = advantage(line);
  const met = isMet(line);
  return [
    line.what,
    quantity(line.ours, line.unit),
    line.peer === undefined ? '' : `${quantity(line.peer.figure, line.unit)} (${line.peer.name})`,
    ratio === undefined ? '' : `${ratio.toPrecision(3)}×`,
    line.bar === undefined ? '' : `${line.bar.better === 'lower' ? '≤' : '≥'} ${line.bar.limit} ${line.unit}`,
    met === undefined ? '' : met ? 'yes' : 'no',
  ];
}

const quantity = (figure: number, unit: string): string =>
  `${unit === 's' ? figure.toFixed(3) : unit === 'µs' || unit === 'times plain' ? figure.toFixed(2) : figure.toFixed(0)} ${unit}`;
