import { formatBytes, plural } from '../../../base/text/quantity.js';
import type { ReportPhase } from '../../../report/result.js';
import type { BundleReport, BundleStep, ComponentReport } from '../report-schema.js';

/** The steps of a run over a bundle as phases of a report: builds that were not reached too, conversions within the step that needed them. */
export function bundlePhases(report: BundleReport): readonly ReportPhase[] {
  const outer = report.steps.filter(({ step }) => step !== 'convert');
  const phases = outer.map((step) => phaseOf(step, report));
  return [...phases, ...unreached(report)];
}

/** The phase that the run stopped in: the failed component's own, where several were at work. */
export function failedPhase(report: BundleReport): ReportPhase | undefined {
  const failed = report.steps.filter(({ failed: stopped, step }) => stopped && step !== 'convert');
  const step =
    failed.findLast(({ component }) => component === (report.failure?.component ?? null)) ?? failed.at(-1);
  return step === undefined ? undefined : phaseOf(step, report);
}

function phaseOf(step: BundleStep, report: BundleReport): ReportPhase {
  const end = step.start_sec + step.sec;
  return {
    name: nameOf(step),
    status: step.failed ? 'failed' : 'done',
    startMs: step.start_sec * 1000,
    ms: step.sec * 1000,
    detail: detailOf(step, report),
    steps: report.steps
      .filter((inner) => inner.step === 'convert' && inner.component === step.component)
      .filter(({ start_sec }) => start_sec >= step.start_sec && start_sec <= end)
      .map((inner) => ({ name: nameOf(inner), startMs: inner.start_sec * 1000, ms: inner.sec * 1000 })),
  };
}

const nameOf = ({ step, component }: BundleStep): string =>
  component === null ? (step === 'read' ? 'read and check' : step) : `${step} ${component}`;

function detailOf(step: BundleStep, report: BundleReport): string {
  if (step.failed) return stoppedBy(step, report);
  const component = report.components.find((one) => one.component === step.component);
  switch (step.step) {
    case 'read':
      return report.warnings.length === 0
        ? 'the models agree with the meta file and with each other'
        : `no contradiction, ${plural(report.warnings.length, 'warning')}`;
    case 'prepare':
      return `${plural(report.components.length, 'component')} to build, or to find`;
    case 'build':
      return component === undefined ? '' : builtText(component);
    case 'smoke run':
      return component?.smoke ? `the ${component.smoke.ran} on ${component.smoke.backend}` : '';
    case 'chained check':
      return report.checks.map(({ candidate, outcome }) => `${candidate}: ${outcome}`).join(', ');
    case 'convert':
      return '';
  }
}

function stoppedBy(step: BundleStep, { failure, not_checked }: BundleReport): string {
  if (failure !== null) return `${failure.code}: ${failure.message.split('\n')[0]}`;
  // What stops a step but not the run is said there, by the component's name.
  return not_checked.find((text) => text.includes(step.component ?? 'bundle')) ?? 'stopped';
}

const builtText = ({ status, engine_bytes, failure }: ComponentReport): string =>
  failure !== null
    ? 'stopped later'
    : `${status === 'built' ? 'built' : status === 'kept' ? 'was there already' : 'found in a store'}${engine_bytes === null ? '' : `, ${formatBytes(engine_bytes)}`}`;

/** With nothing prepared there is no telling what would have been built. */
const unreached = ({ components, steps, failure }: BundleReport): readonly ReportPhase[] =>
  components
    .filter(({ status }) => failure !== null && status === 'not-reached')
    .filter(({ component }) => !steps.some((one) => one.step === 'build' && one.component === component))
    .map(({ component }) => ({
      name: `build ${component}`,
      status: 'not-reached',
      startMs: null,
      ms: null,
      detail: 'the run stopped before it',
      steps: [],
    }));
