import type { GuardListener } from './violation.js';

/**
 * A listener that reports through the OpenTelemetry API: `trtforge.guard.steps`, `.failed_steps`, `.violations` (rule, kind, tensor),
 * `.step.duration` in seconds, `.max_abs_error` (tensor). The API is loaded here and nowhere else. Where it is not installed, or the process has set up
 * no SDK, nothing is reported. `attributes` go with everything that is reported.
 */
export async function openGuardTelemetry(
  attributes: Readonly<Record<string, string | number | boolean>> = {},
): Promise<GuardListener> {
  const api = await import('@opentelemetry/api').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ERR_MODULE_NOT_FOUND') return undefined;
    throw error;
  });
  if (api === undefined) return { step: () => {}, violation: () => {}, error: () => {} };
  const { metrics } = api;
  const meter = metrics.getMeter('trtforge');
  const steps = meter.createCounter('trtforge.guard.steps', { description: 'Steps of guarded sessions.' });
  const failed = meter.createCounter('trtforge.guard.failed_steps', {
    description: 'Steps in which the session itself failed.',
  });
  const violations = meter.createCounter('trtforge.guard.violations', {
    description: 'Contract violations.',
  });
  const duration = meter.createHistogram('trtforge.guard.step.duration', {
    description: 'How long a step took, checks not counted.',
    unit: 's',
  });
  const maxAbs = meter.createGauge('trtforge.guard.max_abs_error', {
    description: 'Largest absolute error of an output when it was last compared with a reference.',
  });
  return {
    step: (seconds, hasFailed) => {
      steps.add(1, attributes);
      if (hasFailed) failed.add(1, attributes);
      duration.record(seconds, attributes);
    },
    violation: ({ rule, kind, tensor }) => violations.add(1, { ...attributes, rule, kind, tensor }),
    error: (tensor, error) => maxAbs.record(error, { ...attributes, tensor }),
  };
}
