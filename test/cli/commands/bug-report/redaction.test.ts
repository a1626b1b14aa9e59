import { expect, test } from 'vitest';
import { redaction } from '../../../../src/cli/commands/bug-report/redaction.js';

const redact = redaction({});

test.each([
  "curl -H 'Authorization: Bearer s3cr3tVALUE'",
  '{"line":"curl -H \\"Authorization: Bearer s3cr3tVALUE\\""}',
  'authorization=s3cr3tVALUE',
  'Proxy-Authorization: Basic s3cr3tVALUE==',
  'AWS_SECRET_ACCESS_KEY=s3cr3tVALUE',
  'export HF_TOKEN="s3cr3tVALUE"',
  '{"api_key": "s3cr3tVALUE"}',
  'X-Api-Key: s3cr3tVALUE',
  'judge --access-token s3cr3tVALUE {}',
  'judge --password=s3cr3tVALUE {}',
  'curl -u me:s3cr3tVALUE host',
  'ghp_s3cr3tVALUEs3cr3tVALUE',
  'https://me:s3cr3tVALUE@host/',
])('%s is packed without its secret', (text) => {
  expect(redact(text)).not.toContain('s3cr3tVALUE');
});

test.each([
  '{"tokens":123456789,"token":123456789,"decoded":"basic"}',
  'tokens agree in 67.7 %',
  '--sign-key ./engine.key',
  'basic form: 1x3x224x224',
  'the token that follows',
])('%s is packed as it is', (text) => {
  expect(redact(text)).toBe(text);
});

test('takes time in proportion to its text', () => {
  const hostile = ['authorization: ', '--secret', 'token:"\\', '-u a', 'eyJ'].map((part) =>
    part.repeat(200_000),
  );
  for (const text of hostile) expect(redact(text).length).toBeGreaterThan(0);
});
