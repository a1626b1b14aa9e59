import { expect, test } from 'vitest';
import { renderBundle } from '../../src/commands/bundle-text.js';
import { failedBundle, sampleComponent, stoppedBundle } from '../report/bundle-sample.js';

const plain = (said: string) => said;

function text(report: Parameters<typeof renderBundle>[0]): string {
  const lines: string[] = [];
  const colors = { bold: plain, dim: plain, red: plain, green: plain, yellow: plain, cyan: plain };
  renderBundle(report, { line: (line = '') => lines.push(line), colors });
  return lines.join('\n');
}

test('a component that failed has no engine to name', () => {
  const component = sampleComponent('encoder');
  const stopped = (status: 'failed' | 'built') =>
    text({ ...stoppedBundle(), components: [{ ...component, status }] });
  expect(stopped('built')).toContain(`engine    ${component.engine}`);
  expect(stopped('failed')).not.toContain('engine  ');
});

test('one token is no tokens', () => {
  const report = failedBundle();
  const [check] = report.checks;
  const components = check!.components.map((each) => ({ ...each, token_changes: 1, duration_changes: 0 }));
  expect(text({ ...report, checks: [{ ...check!, components }] })).toContain('changes 1 token, 0 durations');
});
