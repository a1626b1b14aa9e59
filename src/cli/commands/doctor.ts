import { behaviour } from '../../behaviour/facts.js';
import { storeOptions as stores } from '../../engines/store/open-stores.js';
import { type DoctorResult, examine, machineProbes } from '../../quality/doctor/doctor.js';
import { thisMachine } from '../../tensorrt/toolchain/find.js';
import { defineCommand, type TextOutput } from '../command.js';

type Finding = DoctorResult['findings'][number];

export const command = defineCommand({
  options: { store: stores.store, remote: stores.remote },
  examples: ['trtforge doctor', 'trtforge doctor --remote s3://team/engines', 'trtforge doctor --json'],
  schema: async () => (await import('../../quality/doctor/doctor.js')).doctorSchema,
  run: (_inputs, options, { environment, signal }) =>
    examine(machineProbes(thisMachine(environment), options), signal),
  render: (result, output) => {
    for (const [topic, title] of Object.entries(titles)) {
      const findings = result.findings.filter((finding) => finding.topic === topic);
      if (findings.length === 0) continue;
      output.line(output.colors.bold(title));
      for (const finding of findings) renderFinding(finding, output);
      output.line();
    }
    renderSupport(result.support, output);
    output.line();
    output.line(verdictOf(result, output));
  },
});

const titles: Readonly<Record<Finding['topic'], string>> = {
  machine: 'Machine',
  gpu: 'GPU',
  tensorrt: 'TensorRT',
  versions: 'Versions that meet',
  onnxruntime: 'ONNX Runtime',
  store: 'Store',
};

function renderFinding({ severity, what, remedy }: Finding, { line, colors }: TextOutput): void {
  const mark = {
    ok: colors.green('✓'),
    info: colors.dim('·'),
    warning: colors.yellow('!'),
    problem: colors.red('✗'),
  }[severity];
  line(`  ${mark} ${what}`);
  if (remedy !== null) line(`    ${colors.cyan('→')} ${remedy}`);
}

function renderSupport(rows: DoctorResult['support'], { line, colors }: TextOutput): void {
  const cells = (row: (typeof rows)[number]) => [
    row.tensorrt8,
    row.tensorrt10,
    row.tensorrt11,
    row.tensorrtRtx,
  ];
  const widths = [6, 11, 6, 6];
  const majors = behaviour.generations.value
    .filter(({ product }) => product === 'tensorrt')
    .map(({ since }) => since);
  const padded = (texts: readonly string[]) =>
    texts.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  ');
  line(colors.bold('Which TensorRT serves which GPU'));
  line(colors.dim(`  ${''.padEnd(8)}${padded([...majors, 'RTX'])}`));
  for (const row of rows) {
    const name = `sm_${row.computeCapability}`.padEnd(8);
    const text = `${name}${padded(cells(row))}  ${row.architecture}: ${row.examples}`;
    line(row.here ? colors.bold(`▸ ${text}`) : `  ${text}`);
  }
  line(colors.dim("  ? NVIDIA's support matrix of the exact version decides"));
}

function verdictOf({ findings }: DoctorResult, { colors }: TextOutput): string {
  const count = (severity: Finding['severity']) =>
    findings.filter((each) => each.severity === severity).length;
  const [problems, warnings] = [count('problem'), count('warning')];
  if (problems > 0) return colors.red(`${problems} to solve before trtforge can work here.`);
  if (warnings > 0) return colors.yellow(`trtforge works here; ${warnings} to look at.`);
  return colors.green('trtforge works here.');
}
