import { expect, test } from 'vitest';
import { renderBundle } from '../../../../src/products/bundle/commands/bundle-text.js';
import { plainColors } from '../../../support/plain-colors.js';
import { failedBundle, stoppedBundle } from '../report/sample.js';

function text(report: Parameters<typeof renderBundle>[0]): string {
  const lines: string[] = [];
  renderBundle(report, { line: (line = '') => lines.push(line), colors: plainColors });
  return lines.join('\n');
}

test('a component without an engine has none to name; one whose engine failed later still has it', () => {
  const [component] = stoppedBundle().components;
  const stopped = (engine_bytes: number | null) =>
    text({ ...stoppedBundle(), components: [{ ...component!, status: 'failed', engine_bytes }] });
  expect(stopped(1000)).toContain(`engine    ${component!.engine}`);
  expect(stopped(null)).not.toContain('engine  ');
});

test('one token is no tokens', () => {
  const report = failedBundle();
  const [check] = report.checks;
  const components = check!.components.map((each) => ({ ...each, token_changes: 1, duration_changes: 0 }));
  expect(text({ ...report, checks: [{ ...check!, components }] })).toContain('changes 1 token, 0 durations');
});
